package import RelayServer
package import SimulationKit

/// A night on lines that routers have forgotten: a connection looks open and is dead, in one direction or
/// in both.
package struct HalfOpenNight: StormScenario {
  package init() {}

  package var name: String { "half-open-night" }
  package var summary: String {
    "lines go silent for hours, or lose one direction, and nobody is told"
  }

  package func recipe(_ random: inout SplitMix64) -> Recipe {
    var recipe = Recipe.standing
    recipe[.minutes] = 480
    recipe[.devices] = 2
    recipe[.others] = 200
    recipe[.cutEvery] = random.number(in: 300..<3600)
    recipe[.silentPercent] = random.number(in: 50..<90)
    recipe[.oneWayPercent] = random.number(in: 10..<60)
    recipe[.refusedPercent] = random.number(in: 0..<50)
    return recipe
  }
}
