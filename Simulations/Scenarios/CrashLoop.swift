package import RelayServer
package import SimulationKit

/// A program that is killed every few minutes, most of all while it sends.
package struct CrashLoop: StormScenario {
  package init() {}

  package var name: String { "crash-loop" }
  package var summary: String { "the program is killed again and again, between any two steps" }

  package func recipe(_ random: inout SplitMix64) -> Recipe {
    var recipe = Recipe.standing
    recipe[.crashEvery] = random.number(in: 20..<200)
    recipe[.downMax] = random.number(in: 1..<60)
    recipe[.cacheDamagePercent] = random.chance(50) ? random.number(in: 1..<60) : 0
    recipe[.writes] = 120
    recipe[.replyPercent] = 40
    recipe[.troubleEvery] = 300
    recipe[.troubles] = Trouble.bits([.okLate, .okNever, .eoseLate])
    return recipe
  }
}
