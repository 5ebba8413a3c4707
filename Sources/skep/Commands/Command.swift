import Foundation
import Nostr
import RelaySocket
import SyncCore
import SyncEngine

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
  private let world = World()

  init(
    invocation: Invocation, out: StandardOutput, talk: Talk, stop: Stop,
    environment: [String: String]
  ) {
    self.invocation = invocation
    self.out = out
    self.talk = talk
    self.stop = stop
    self.environment = environment
  }

  /// Sockets, threads, randomness and the clocks, made when they are first needed.
  var ports: Ports { world.ports }

  /// The wall clock, shifted where a test asks for it.
  var clock: any SyncClock { world.clock }

  var wantsJSON: Bool { invocation.wantsJSON }

  func home() throws -> Home {
    let home = try Home.chosen(option: invocation.value("home"), environment: environment)
    try home.refuseUnreadable()
    return home
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

  /// `--since` and `--until`, which must leave some time between them.
  func span() throws -> (since: Timestamp?, until: Timestamp?) {
    let (since, until) = (try time("since"), try time("until"))
    if let since, let until, since > until {
      throw usage("--since is after --until, so nothing can be between them")
    }
    return (since, until)
  }

  /// The group ids of every `--group`; nil where none is given.
  func groups() throws -> [Text]? {
    let words = invocation.values("group")
    guard !words.contains("") else { throw usage("--group needs the id of a group") }
    return words.isEmpty ? nil : words.map { Text($0) }
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

/// What a command reaches the outside with. Most commands need no sockets, and then none are made.
private final class World {
  let clock = SystemClock.fromEnvironment()
  private(set) lazy var ports = Ports.system()
}
