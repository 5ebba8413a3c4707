package import RelayServer
package import SimulationKit

/// Hours offline at a relay that refuses old dates: what was written comes under a new date, once, and
/// replies go with what they answer.
package struct LongOfflineWriter: StormScenario {
  package init() {}

  package var name: String { "long-offline-writer" }
  package var summary: String {
    "somebody writes for hours without a connection, and then sends all of it"
  }

  package func recipe(_ random: inout SplitMix64) -> Recipe {
    var recipe = Recipe.standing
    recipe[.minutes] = 240
    recipe[.offlineEvery] = random.number(in: 600..<3000)
    recipe[.offlineMax] = random.number(in: 1800..<10_000)
    recipe[.writes] = 200
    recipe[.replyPercent] = 40
    recipe[.dateWindow] = random.chance(70) ? 900 : 0
    recipe[.buzz] = random.number(in: 0..<2)
    // What others wrote while nobody could connect reaches further back than is read again anyway.
    if random.chance(60) {
      recipe[.relayRestartEvery] = 4000
      recipe[.relayDownMax] = 9000
    }
    recipe[.crashEvery] = random.chance(50) ? random.number(in: 600..<4000) : 0
    return recipe
  }
}
