package import RelayServer
package import SimulationKit

/// No faults at all: nothing may be found.
package struct Calm: StormScenario {
  package init() {}

  package var name: String { "calm" }
  package var summary: String { "no faults: everything arrives and nothing is done twice" }

  package func recipe(_ random: inout SplitMix64) -> Recipe {
    var recipe = Recipe()
    recipe[.minutes] = 30
    recipe[.history] = 300
    recipe[.writes] = 30
    recipe[.others] = 30
    recipe[.groups] = 2
    recipe[.relays] = 1
    return recipe
  }
}
