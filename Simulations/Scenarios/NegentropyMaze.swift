package import RelayServer
package import SimulationKit

/// Sets that are compared where the relay can, and walked to the same end where it cannot.
package struct NegentropyMaze: StormScenario {
  package init() {}

  package var name: String { "negentropy-maze" }
  package var summary: String { "NIP-77 served, refused in every way, garbled and never answered" }

  package func recipe(_ random: inout SplitMix64) -> Recipe {
    var recipe = Recipe.standing
    recipe[.negentropy] = random.number(in: 1..<8)
    recipe[.relays] = 2
    recipe[.replicaLag] = random.number(in: 1..<300)
    recipe[.lateEvery] = random.number(in: 30..<300)
    recipe[.densePercent] = random.number(in: 0..<40)
    recipe[.cutEvery] = random.number(in: 30..<600)
    recipe[.stallEvery] = random.number(in: 30..<300)
    recipe[.crashEvery] = random.chance(50) ? random.number(in: 300..<2000) : 0
    return recipe
  }
}
