package import RelayServer
package import SimulationKit

/// A disk that has no room or does not keep its word for a while. Nothing that was told is stored is lost.
package struct DiskFilling: StormScenario {
  package init() {}

  package var name: String { "disk-filling" }
  package var summary: String { "the disk is full, fails to write or fails to sync" }

  package func recipe(_ random: inout SplitMix64) -> Recipe {
    var recipe = Recipe.standing
    recipe[.diskFullEvery] = random.number(in: 120..<1500)
    recipe[.syncFailEvery] = random.number(in: 120..<1500)
    recipe[.diskFaultMax] = random.number(in: 10..<300)
    recipe[.diskDelay] = random.chance(30) ? random.number(in: 1..<60) : 0
    recipe[.crashEvery] = random.chance(50) ? random.number(in: 300..<2000) : 0
    recipe[.powerPercent] = 50
    return recipe
  }
}
