import Foundation
import Testing

/// Whether and how the live suite runs.
enum Live {
  static let environment = ProcessInfo.processInfo.environment

  static let root = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  static let peers = root.appending(path: "Tests/Peers")

  /// The program under test.
  static let skep: String =
    environment["SKEP_BIN"].map { URL(filePath: $0, relativeTo: root).path }
    ?? ["release", "debug"].map { root.appending(path: ".build/\($0)/skep").path }
    .first { FileManager.default.isExecutableFile(atPath: $0) } ?? "skep"

  /// Events in the corpus of a test; more take longer and find more.
  static let eventCount = environment["SKEP_LIVE_EVENTS"].flatMap { Int($0) } ?? 2000

  /// How often each crash test kills the program.
  static let killCount = environment["SKEP_LIVE_KILLS"].flatMap { Int($0) } ?? 3

  /// How often the torture test kills the program, at each relay.
  static let tortureKills = environment["SKEP_TORTURE_KILLS"].flatMap { Int($0) } ?? 10

  /// Draws the moments of the kills; printed by the tests, so that a run can be repeated.
  static let seed =
    environment["SKEP_LIVE_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0..<100_000)

  /// The folder of the peers' Python, or why there is none. Made on first use.
  static let python: Result<String, Reason> = {
    let setup = Process()
    let output = Pipe()
    setup.executableURL = peers.appending(path: "setup.sh")
    setup.standardOutput = output
    do { try setup.runWithSignals() } catch {
      return .failure(Reason(text: "Tests/Peers/setup.sh cannot be started: \(error)"))
    }
    let said = output.fileHandleForReading.readDataToEndOfFile()
    setup.waitUntilExit()
    let folder = String(decoding: said, as: UTF8.self).split(separator: "\n").last.map(String.init)
    guard setup.terminationStatus == 0, let folder else {
      return .failure(
        Reason(text: "the peers could not be installed from PyPI (Tests/Peers/setup.sh failed)"))
    }
    guard FileManager.default.isExecutableFile(atPath: skep) else {
      return .failure(Reason(text: "there is no program at \(skep); build it or set SKEP_BIN"))
    }
    return .success(folder)
  }()

  struct Reason: Error, CustomStringConvertible {
    let text: String
    var description: String { text }
  }

  static var isWanted: Bool { environment["SKEP_LIVE"] == "1" }

  /// Runs one of the peers' scripts.
  static func peer(_ script: String, _ arguments: [String], seconds: Double = 300) async throws
    -> ProgramRun
  {
    let folder = try python.get()
    let path = peers.appending(path: script).path
    let run = try await ProgramRun.of(
      "\(folder)/bin/python", [path] + arguments, environment: ["SKEP_PEERS": folder],
      seconds: seconds)
    try #require(run.status == 0, "\(script) \(arguments): \(run.story)")
    return run
  }
}

extension Trait where Self == ConditionTrait {
  /// Skips where the suite was not asked for. Where it was, missing peers or a missing program fail its tests.
  static var live: Self {
    .enabled(
      if: Live.isWanted, "the live suite runs only where SKEP_LIVE=1 is set (make live)")
  }
}
