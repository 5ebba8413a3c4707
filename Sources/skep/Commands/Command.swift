import Foundation
import Nostr
import RelaySocket
import SyncCore

/// One command of the program: what the parser must know of it, and what it does.
protocol Command: SendableMetatype {
  static var spec: CommandSpec { get }

  /// Does the work and says how it went; throws `Failure`, `UsageError` or `OutputClosed`, or an
  /// error of the engine, where it could not.
  static func run(_ context: Context) async throws -> ExitCode
}

/// What every command is given.
struct Context {
  let invocation: Invocation
  let out: StandardOutput
  let talk: Talk
  let stop: Stop
  let environment: [String: String]

  /// The wall clock, shifted where a test asks for it.
  let clock: any SyncClock = SystemClock.fromEnvironment()

  var wantsJSON: Bool { invocation.wantsJSON }

  func home() throws -> Home {
    try Home(option: invocation.value("home"), environment: environment)
  }

  func usage(_ message: String) -> UsageError {
    UsageError(message, command: invocation.command.joined(separator: " "))
  }

  /// A time bound such as `--since`.
  func time(_ name: String) throws -> Timestamp? {
    guard let word = invocation.value(name) else { return nil }
    guard let time = TimeWords.time(word) else {
      throw usage(
        "--\(name) “\(SafeText.line(word, cells: 40))” is no time: expected Unix seconds or RFC 3339"
          + " such as 2026-01-31T12:00:00Z")
    }
    return time
  }

  func duration(_ name: String) throws -> Duration? {
    guard let word = invocation.value(name) else { return nil }
    guard let duration = TimeWords.duration(word) else {
      throw usage(
        "--\(name) “\(SafeText.line(word, cells: 40))” is no duration: expected 30s, 5m, 2h or 7d")
    }
    return duration
  }

  func number(_ name: String, in range: ClosedRange<Int>) throws -> Int? {
    guard let word = invocation.value(name) else { return nil }
    guard let number = Int(word), range.contains(number) else {
      throw usage(
        "--\(name) “\(SafeText.line(word, cells: 40))” is not a number from \(range.lowerBound) to"
          + " \(range.upperBound)")
    }
    return number
  }
}
