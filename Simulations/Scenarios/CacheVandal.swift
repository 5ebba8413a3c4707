package import RelayServer
package import SimulationKit

/// Whatever befalls the cache while nobody has it open, no answer may change.
package struct CacheVandal: StormScenario {
  package init() {}

  package var name: String { "cache-vandal" }
  package var summary: String { "the cache is deleted, cut short, overwritten or too small" }

  package func recipe(_ random: inout SplitMix64) -> Recipe {
    var recipe = Recipe.standing
    recipe[.versionPercent] = 20
    recipe[.crashEvery] = random.number(in: 60..<600)
    recipe[.cacheDamagePercent] = 100
    recipe[.downMax] = 10
    recipe[.cacheMapKibibytes] = random.chance(50) ? random.number(in: 100..<3000) : 0
    recipe[.deletionPercent] = 10
    return recipe
  }
}
