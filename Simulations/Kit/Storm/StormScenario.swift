package import RelayServer

/// A scenario that is a storm: all that it says is how its recipe is drawn from a seed.
package protocol StormScenario: Scenario {
  func recipe(_ random: inout SplitMix64) -> Recipe
}

extension StormScenario {
  /// The recipe that a seed gives.
  package func recipe(seed: UInt64) -> Recipe {
    var random = World(seed: seed).generator("recipe of \(name)")
    return recipe(&random)
  }

  package func run(in world: World, flaw: SimulatedClient.Flaw?) {
    Storm(recipe(seed: world.seed), in: world).run()
  }
}
