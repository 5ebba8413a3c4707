package import RelayServer
package import SimulationKit

/// Events of days ago that a relay takes only now: a cursor alone never finds them.
package struct LateArrivals: StormScenario {
  package init() {}

  package var name: String { "late-arrivals" }
  package var summary: String {
    "events come long after their date, and deletions before what they delete"
  }

  package func recipe(_ random: inout SplitMix64) -> Recipe {
    var recipe = Recipe.standing
    recipe[.versionPercent] = 20
    recipe[.lateEvery] = random.number(in: 10..<120)
    recipe[.deletionPercent] = random.number(in: 0..<40)
    recipe[.negentropy] = random.number(in: 0..<8)
    recipe[.cutEvery] = random.number(in: 60..<600)
    return recipe
  }
}
