package import RelayServer
package import SimulationKit

/// Computers that do not know what time it is, and learn otherwise.
package struct ClockChaos: StormScenario {
  package init() {}

  package var name: String { "clock-chaos" }
  package var summary: String { "clocks are wrong, jump, and run too fast or too slow" }

  package func recipe(_ random: inout SplitMix64) -> Recipe {
    var recipe = Recipe.standing
    recipe[.clockSkewMax] = random.number(in: 10..<5000)
    recipe[.clockJumpEvery] = random.number(in: 60..<1500)
    recipe[.clockRatePercent] = random.number(in: 0..<10)
    recipe[.dateWindow] = random.chance(60) ? random.number(in: 300..<1800) : 0
    recipe[.cutEvery] = random.number(in: 100..<1000)
    recipe[.authentication] = random.number(in: 0..<3)
    return recipe
  }
}
