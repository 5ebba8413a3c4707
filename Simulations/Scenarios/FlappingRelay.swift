package import RelayServer
package import SimulationKit

/// A relay that restarts every minute: nobody may storm it, and all must arrive in the end.
package struct FlappingRelay: StormScenario {
  package init() {}

  package var name: String { "flapping-relay" }
  package var summary: String {
    "the relay goes up and down, and takes no connection half of the time"
  }

  package func recipe(_ random: inout SplitMix64) -> Recipe {
    var recipe = Recipe.standing
    recipe[.relayRestartEvery] = random.number(in: 10..<120)
    recipe[.relayDownMax] = random.number(in: 1..<(random.chance(30) ? 900 : 90))
    recipe[.refusedPercent] = random.number(in: 0..<70)
    // A relay that takes a connection and drops it.
    if random.chance(40) { recipe[.cutEvery] = random.number(in: 1..<6) }
    return recipe
  }
}
