package import RelayServer
package import SimulationKit

/// Three relays of one community that hardly ever hold the same.
package struct ThreeReplicas: StormScenario {
  package init() {}

  package var name: String { "three-replicas" }
  package var summary: String {
    "a home relay and two replicas that lag, restart and lose what they had"
  }

  package func recipe(_ random: inout SplitMix64) -> Recipe {
    var recipe = Recipe.standing
    recipe[.relays] = 3
    recipe[.replicaLag] = random.number(in: 1..<600)
    recipe[.relayRestartEvery] = random.number(in: 100..<1000)
    recipe[.relayForgetsPercent] = random.number(in: 0..<60)
    recipe[.negentropy] = random.number(in: 0..<8)
    recipe[.authentication] = random.number(in: 0..<3)
    recipe[.cutEvery] = random.number(in: 100..<1000)
    return recipe
  }
}
