import Foundation
import Platform
import RelayServer
import SyncEngine

/// `skep demo-relay`.
enum DemoRelayCommand: Command {
  static let spec = CommandSpec(
    "demo-relay",
    options: [
      RelayServing.listen, .value("seed", "N", "which community is made up; 1 otherwise"),
      .value("events", "N", "how many events it has; 5000 otherwise"),
      .flag("auth", "serve authenticated readers only"),
      .value("windows", "N", "serve windows of a channel (NIP-CW) of N rows at most, by HTTP"),
    ],
    about:
      "A relay with a made-up community: six channels, twelve people. With --home it remembers.",
    examples: [
      "skep demo-relay --listen 127.0.0.1:7777",
      "skep demo-relay --listen 127.0.0.1:0 --seed 7 --events 1000 --json",
    ])

  static func run(_ context: Context) async throws -> ExitCode {
    let serving = try RelayServing(context)
    let seed = try context.number("seed", in: 0...Int.max) ?? 1
    let events = try context.number("events", in: 1...1_000_000) ?? 5000
    // Only a home that was asked for: a demo must not leave anything where real things are kept.
    var folder: String?
    if context.invocation.has("home") {
      let home = try context.home()
      try FileManager.default.createDirectory(
        atPath: home.path, withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700])
      folder = home.path
    }
    var rules = RelayRules()
    if context.invocation.has("auth") { rules = .membersOnly }
    if let rows = try context.number("windows", in: 1...1000) {
      rules.reading.windows = .served(rowsMax: rows, projectsReplies: true)
    }
    context.talk.detail("signing \(events) events")
    let demo: DemoRelay
    do throws(DemoError) {
      demo = try await DemoRelay.make(
        seed: UInt64(seed), eventsCount: events, folder: folder, rules: rules,
        version: Shell.versionText, on: WorkPool())
    } catch {
      if case .journal(.inUse) = error { throw Failure(.busy, error.description) }
      throw Failure(.io, error.description)
    }
    return try await serving.run(demo.machine, journal: demo.journal, context)
  }
}
