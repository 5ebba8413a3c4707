package import RelayServer
package import SimulationKit

/// Half of what is written is deleted, and the deletion is often there first.
package struct DeletionsFirst: StormScenario {
  package init() {}

  package var name: String { "deletions-first" }
  package var summary: String { "deletions come before their targets" }

  package func recipe(_ random: inout SplitMix64) -> Recipe {
    var recipe = Recipe.standing
    recipe[.versionPercent] = 40
    recipe[.offlineEvery] = random.number(in: 100..<600)
    recipe[.offlineMax] = 300
    recipe[.deletionPercent] = random.number(in: 30..<90)
    recipe[.lateEvery] = random.number(in: 30..<300)
    recipe[.relays] = 2
    recipe[.replicaLag] = random.number(in: 1..<300)
    recipe[.crashEvery] = random.number(in: 300..<2000)
    return recipe
  }
}
