/// A command line that was understood.
struct Invocation: Sendable, Equatable {
  /// The command and, where it has verbs, the verb; empty where none was named.
  var command: [String] = []
  var options: [String: [String]] = [:]
  var operands: [String] = []

  func has(_ name: String) -> Bool { options[name] != nil }

  func value(_ name: String) -> String? { options[name]?.last }

  func values(_ name: String) -> [String] { options[name] ?? [] }

  var wantsJSON: Bool { has("json") }
  var wantsHelp: Bool { has("help") }
  var wantsVersion: Bool { has("version") }
}

/// A command line that was not understood; the sentence says what was expected.
struct UsageError: Error, Equatable, CustomStringConvertible {
  let message: String
  /// The command whose help would answer.
  let command: String?

  init(_ message: String, command: String? = nil) {
    self.message = message
    self.command = command
  }

  var description: String { message }
}
