/// One option of a command, as both the parser and the help read it.
struct OptionSpec: Sendable, Hashable {
  /// Without the dashes.
  let name: String
  /// What stands for the value in the help; nil where the option takes none.
  let value: String?
  let repeats: Bool
  let about: String

  static func flag(_ name: String, _ about: String) -> OptionSpec {
    OptionSpec(name: name, value: nil, repeats: false, about: about)
  }

  static func value(
    _ name: String, _ value: String, _ about: String, repeats: Bool = false
  ) -> OptionSpec {
    OptionSpec(name: name, value: value, repeats: repeats, about: about)
  }

  var usage: String { value.map { "--\(name) \($0)" } ?? "--\(name)" }

  /// The options that every command has, before or after its name.
  static let common: [OptionSpec] = [
    .value("home", "DIR", "where everything is kept (also SKEP_HOME)"),
    .value("community", "URL|HOST[:PORT]", "which community; not needed where there is only one"),
    .flag("json", "one JSON object a line on stdout"),
    .flag("quiet", "no talk and no progress on stderr"),
    .flag("verbose", "more talk on stderr"),
    .flag("version", "the version"),
    .flag("help", "this help"),
  ]
}

/// One command, or one verb of a command, as both the parser and the help read it.
struct CommandSpec: Sendable {
  let name: String
  /// What follows the name in the usage line, options apart.
  let operands: String
  let operandCount: ClosedRange<Int>
  let options: [OptionSpec]
  let about: String
  /// Whole command lines that run as they stand.
  let examples: [String]
  let verbs: [CommandSpec]
  /// The verb that is meant where none is given.
  let defaultVerb: String?

  init(
    _ name: String, _ operands: String = "", count: ClosedRange<Int> = 0...0,
    options: [OptionSpec] = [], about: String, examples: [String], verbs: [CommandSpec] = [],
    defaultVerb: String? = nil
  ) {
    self.name = name
    self.operands = operands
    operandCount = count
    self.options = options
    self.about = about
    self.examples = examples
    self.verbs = verbs
    self.defaultVerb = defaultVerb
  }

  func verb(_ name: String) -> CommandSpec? { verbs.first { $0.name == name } }
}
