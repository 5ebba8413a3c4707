package import RelayServer
package import SimulationKit

/// A community of three hundred channels at a relay that counts frames.
package struct QuotaStorm: StormScenario {
  package init() {}

  package var name: String { "quota-storm" }
  package var summary: String { "three hundred channels behind a rate limit, in three wordings" }

  package func recipe(_ random: inout SplitMix64) -> Recipe {
    var recipe = Recipe.standing
    recipe[.minutes] = 60
    recipe[.devices] = 1
    recipe[.groups] = 300
    recipe[.history] = 900
    recipe[.writes] = 30
    recipe[.others] = 100
    recipe[.buzz] = random.number(in: 0..<2)
    recipe[.troubleEvery] = random.number(in: 60..<600)
    recipe[.troubleMax] = random.number(in: 60..<900)
    recipe[.troubles] = Trouble.bits([.rateLimited, .rateLimitedByNotice])
    recipe[.cutEvery] = random.number(in: 300..<2000)
    return recipe
  }
}
