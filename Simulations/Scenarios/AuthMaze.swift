package import RelayServer
package import SimulationKit

/// A relay that wants to know who asks, at any time and again, read by clocks that are off.
package struct AuthMaze: StormScenario {
  package init() {}

  package var name: String { "auth-maze" }
  package var summary: String { "AUTH is demanded, demanded late, demanded again" }

  package func recipe(_ random: inout SplitMix64) -> Recipe {
    var recipe = Recipe.standing
    recipe[.authentication] = random.number(in: 1..<3)
    recipe[.buzz] = random.number(in: 0..<2)
    recipe[.troubleEvery] = random.number(in: 60..<600)
    recipe[.troubleMax] = random.number(in: 10..<300)
    recipe[.troubles] = Trouble.bits([.challengesAgain, .silentToBadRequests, .okLate])
    recipe[.clockSkewMax] = random.chance(50) ? random.number(in: 1..<300) : 0
    recipe[.cutEvery] = random.number(in: 60..<900)
    recipe[.relayRestartEvery] = random.number(in: 300..<2000)
    return recipe
  }
}
