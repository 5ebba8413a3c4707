package import RelayServer
package import SimulationKit

/// A relay that is restored from an old copy, again and again.
package struct RelayThatForgets: StormScenario {
  package init() {}

  package var name: String { "relay-that-forgets" }
  package var summary: String { "a relay comes back without the events that it took last" }

  package func recipe(_ random: inout SplitMix64) -> Recipe {
    var recipe = Recipe.standing
    recipe[.relayRestartEvery] = random.number(in: 60..<600)
    recipe[.relayForgetsPercent] = random.number(in: 30..<100)
    recipe[.negentropy] = random.number(in: 0..<8)
    return recipe
  }
}
