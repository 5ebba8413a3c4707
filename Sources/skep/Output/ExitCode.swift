/// How the program ends; scripts rely on the numbers.
enum ExitCode: Int32, Sendable, CaseIterable {
  case done = 0
  /// Something failed for part of the input, and each part was named.
  case partial = 1
  /// The data does not verify, or the store is damaged.
  case invalid = 2
  /// No relay could be reached, or none succeeded in the time given.
  case noRelay = 3
  /// Done, but completeness could not be proved.
  case unproved = 4
  case usage = 64
  /// Disk full, read-only home, other input and output.
  case io = 74
  /// Another process uses the home.
  case busy = 75
  /// The key file is too open or does not decrypt.
  case key = 77
  case interrupted = 130
  case terminated = 143
}

/// A command that could not do its work; the sentence says what and what to do.
struct Failure: Error, CustomStringConvertible {
  let code: ExitCode
  let message: String

  init(_ code: ExitCode, _ message: String) {
    self.code = code
    self.message = message
  }

  var description: String { message }
}

/// Whoever read our output has gone. Nothing is wrong, and nobody is left to tell.
struct OutputClosed: Error {}
