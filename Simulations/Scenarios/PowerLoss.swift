package import RelayServer
package import SimulationKit

/// Power cuts: what was not synced is there in part, torn at the size of a sector. What a person was told
/// is stored stays stored, and the log and its coverage agree.
package struct PowerLoss: StormScenario {
  package init() {}

  package var name: String { "power-loss" }
  package var summary: String { "the power goes, between two steps or in the middle of a write" }

  package func recipe(_ random: inout SplitMix64) -> Recipe {
    var recipe = Recipe.standing
    recipe[.crashEvery] = random.number(in: 60..<400)
    recipe[.powerPercent] = 100
    recipe[.cutInWritePercent] = random.number(in: 0..<100)
    recipe[.downMax] = random.number(in: 1..<120)
    recipe[.diskDelay] = random.chance(50) ? random.number(in: 1..<40) : 0
    recipe[.writes] = 120
    return recipe
  }
}
