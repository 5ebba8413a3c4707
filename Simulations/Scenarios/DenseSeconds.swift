package import RelayServer
package import SimulationKit

/// Many events in single seconds, behind small pages.
package struct DenseSeconds: StormScenario {
  package init() {}

  package var name: String { "dense-seconds" }
  package var summary: String { "seconds that fill a page, or more than one, behind page caps" }

  package func recipe(_ random: inout SplitMix64) -> Recipe {
    var recipe = Recipe.standing
    recipe[.history] = 600
    recipe[.pageMax] = random.number(in: 5..<60)
    recipe[.densePercent] = random.number(in: 30..<98)
    recipe[.negentropy] = random.chance(30) ? random.number(in: 1..<8) : 0
    recipe[.buzz] = random.chance(20) ? 1 : 0
    recipe[.lateEvery] = random.number(in: 30..<300)
    recipe[.cutEvery] = random.number(in: 20..<300)
    recipe[.crashEvery] = random.number(in: 100..<900)
    return recipe
  }
}
