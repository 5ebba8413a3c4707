import Foundation
import Testing

/// The program under test with a home of its own.
struct Skep: Sendable {
  let home: String
  private let scratch: Scratch

  init() throws {
    scratch = try Scratch()
    home = scratch.path("home")
  }

  func run(
    _ arguments: [String], input: String? = nil, seconds: Double = 180, kill: Bool = false
  ) async throws -> ProgramRun {
    try await ProgramRun.of(
      Live.skep, arguments, environment: ["SKEP_HOME": home, "NO_COLOR": "1"], input: input,
      seconds: seconds, kill: kill)
  }

  func mirror(_ relay: Relay, _ more: [String] = ["--all"]) async throws -> ProgramRun {
    try await run(["mirror", relay.url, "--json", "--quiet"] + more)
  }

  /// The ids of every event in the log.
  func ids() async throws -> Set<String> {
    let file = scratch.path("export.jsonl")
    let run = try await run(["export", "--out", file])
    try #require(run.status == 0, "\(run.story)")
    let text = try String(contentsOfFile: file, encoding: .utf8)
    return Set(
      text.split(separator: "\n").compactMap { line in
        let row = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        return row?["id"] as? String
      })
  }

  /// Expects that the log verifies and that the cache is what a rebuild gives.
  func expectSound(_ moment: String = "") async throws {
    let run = try await run(["verify", "--json"])
    #expect(run.status == 0, "\(moment) \(run.story)")
    #expect(run.summary["rejected"] as? Int == 0, "\(moment) \(run.story)")
  }

  /// Makes an identity and returns its public key.
  func newKey() async throws -> String {
    let run = try await run(["key", "new", "--json"])
    return try #require(run.summary["pubkey"] as? String, "\(run.story)")
  }

  var hasLog: Bool {
    let paths = FileManager.default.enumerator(atPath: home)
    return paths?.contains { ($0 as? String)?.hasSuffix("log.sqlite") ?? false } ?? false
  }
}
