package import RelayServer

/// A storm written down: a line for the scenario it came from, one for its seed, and one for each
/// number that differs from a calm world.
package struct RecipeFile: StormScenario {
  package let name: String
  package let seed: UInt64
  package let recipe: Recipe

  package var summary: String { "a kept storm" }

  package init(name: String, seed: UInt64, recipe: Recipe) {
    self.name = name
    self.seed = seed
    self.recipe = recipe
  }

  package struct Malformed: Error {
    package let reason: String
  }

  /// Reads what `text` writes; a remark begins with a hash sign.
  package init(_ text: String, isScenario: (String) -> Bool) throws(Malformed) {
    var name: String?
    var seed: UInt64?
    var recipe = Recipe()
    var seen: Set<String> = []
    for line in text.split(separator: "\n") {
      let words = line.prefix { $0 != "#" }.split(separator: " ").map(String.init)
      if words.isEmpty { continue }
      guard words.count == 2 else { throw Malformed(reason: "not a name and a value: \(line)") }
      guard seen.insert(words[0]).inserted else {
        throw Malformed(reason: "\(words[0]) stands there twice")
      }
      switch words[0] {
      case "scenario":
        guard isScenario(words[1]) else {
          throw Malformed(reason: "there is no scenario \(words[1])")
        }
        name = words[1]
      case "seed":
        guard let number = UInt64(words[1]) else {
          throw Malformed(reason: "not a seed: \(words[1])")
        }
        seed = number
      default: try RecipeFile.set(words[0], words[1], in: &recipe)
      }
    }
    guard let name, let seed else { throw Malformed(reason: "the scenario or the seed is missing") }
    self.init(name: name, seed: seed, recipe: recipe)
  }

  private static func set(
    _ name: String, _ value: String, in recipe: inout Recipe
  ) throws(Malformed) {
    guard let knob = Knob(rawValue: name) else {
      throw Malformed(reason: "there is nothing called \(name)")
    }
    guard let number = Int(value), number >= 0, number <= knob.valueMax else {
      throw Malformed(reason: "\(name) is a number from 0 to \(knob.valueMax), not \(value)")
    }
    recipe[knob] = number
  }

  package var text: String {
    let lines = recipe.changes.map { "\($0.knob.rawValue) \($0.value)\n" }
    return "scenario \(name)\nseed \(seed)\n" + lines.joined()
  }

  package func recipe(_ random: inout SplitMix64) -> Recipe { recipe }
}
