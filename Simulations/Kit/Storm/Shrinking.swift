/// Makes a failing storm smaller while it still fails in the same way: fewer faults, less time, fewer
/// people, a shorter script.
package struct Shrinking {
  /// So many worlds are tried at most.
  private let attemptsMax: Int
  private let name: String
  private let seed: UInt64
  private let onProgress: (String) -> Void
  private var attempts = 0
  /// The smallest that failed so far.
  package private(set) var recipe: Recipe
  package private(set) var outcome: Outcome

  /// Nil where the storm does not fail as it is.
  package init?(
    _ scenario: any StormScenario, seed: UInt64, attemptsMax: Int = 150,
    onProgress: @escaping (String) -> Void = { _ in }
  ) {
    self.attemptsMax = attemptsMax
    self.onProgress = onProgress
    self.seed = seed
    name = scenario.name
    recipe = scenario.recipe(seed: seed)
    outcome = RecipeFile(name: name, seed: seed, recipe: recipe).outcome(seed: seed)
    if outcome.verdict == .pass { return nil }
  }

  package mutating func run() {
    var isSmaller = true
    while isSmaller, attempts < attemptsMax {
      isSmaller = dropFaults()
      if lessen() { isSmaller = true }
    }
  }

  private mutating func dropFaults() -> Bool {
    var isSmaller = false
    for (knob, _) in recipe.changes where knob.isFault {
      var less = recipe
      less[knob] = knob.calm
      if tries(less, "without \(knob.rawValue)") { isSmaller = true }
    }
    return isSmaller
  }

  /// Halves the size of the world, number by number, as far as each goes.
  private mutating func lessen() -> Bool {
    let sizes: [Knob] = [
      .minutes, .history, .others, .writes, .devices, .relays, .groups, .people, .replyPercent,
    ]
    var isSmaller = false
    for knob in sizes {
      while recipe[knob] > least(knob) {
        var less = recipe
        less[knob] = max(least(knob), recipe[knob] / 2)
        guard tries(less, "\(knob.rawValue) \(less[knob])") else { break }
        isSmaller = true
      }
    }
    return isSmaller
  }

  private func least(_ knob: Knob) -> Int {
    switch knob {
    case .minutes, .devices, .relays, .groups, .people: 1
    default: 0
    }
  }

  private mutating func tries(_ less: Recipe, _ what: String) -> Bool {
    guard attempts < attemptsMax, less != recipe else { return false }
    attempts += 1
    let result = RecipeFile(name: name, seed: seed, recipe: less).outcome(seed: seed)
    guard result.verdict == outcome.verdict, Shrinking.kind(result) == Shrinking.kind(outcome)
    else {
      return false
    }
    onProgress("still fails: \(what)")
    recipe = less
    outcome = result
    return true
  }

  /// The rule without what is in it of names and numbers.
  private static func kind(_ outcome: Outcome) -> String {
    let words = (outcome.rule ?? "").split(separator: " ")
    return words.filter { word in word.allSatisfy { $0.isLetter || $0 == ":" } }.prefix(6)
      .joined(separator: " ")
  }

  package var file: RecipeFile { RecipeFile(name: name, seed: seed, recipe: recipe) }
}
