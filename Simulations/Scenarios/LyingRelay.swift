package import RelayServer
package import SimulationKit

/// A relay whose events are not to be believed, now and then.
package struct LyingRelay: StormScenario {
  package init() {}

  package var name: String { "lying-relay" }
  package var summary: String {
    "a relay sends what nobody asked for, what nobody wrote, and OKs that mean nothing"
  }

  package func recipe(_ random: inout SplitMix64) -> Recipe {
    var recipe = Recipe.standing
    recipe[.troubleEvery] = random.number(in: 30..<300)
    recipe[.troubleMax] = random.number(in: 10..<600)
    recipe[.troubles] = Trouble.bits([
      .foreignEvents, .unaskedEvents, .swappedContent, .okWithoutID, .eoseTwice,
      .silentToBadRequests, .duplicatesRefused, .okLate, .tampered, .backdated,
    ])
    recipe[.pageMax] = random.number(in: 20..<500)
    recipe[.negentropy] = random.number(in: 0..<8)
    return recipe
  }
}
