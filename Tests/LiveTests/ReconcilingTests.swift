import Foundation
import Glibc
import Testing

/// NIP-77 against LocalRelay, which nobody here wrote. `SKEP_LIVE_EVENTS=100000` is the measured run.
@Suite(.live, .serialized) struct ReconcilingTests {
  @Test func `a first mirror comes by NIP-77 alone, and what is missing later costs little`()
    async throws
  {
    let data = try Scratch()
    let count = Live.eventCount
    let corpus = try await Corpus.file(count)
    try await Relay.load(corpus, into: data.path("data"))
    try await Relay.with(.localRelay, in: data.path("data")) { relay in
      let served = try await relay.ids()
      try await CountingProxy.with(relay, in: data) { proxy in
        let skep = try Skep()
        let first = try await mirror(skep, proxy)
        #expect(first.status == 0, "\(first.story)")
        #expect(via(first) == ["negentropy": served.count, "paging": 0], "\(first.story)")
        #expect(try await skep.ids() == served)
        try await skep.expectSound()

        // A replica that lacks one in a hundred, drawn by chance.
        let lines = try String(contentsOfFile: corpus, encoding: .utf8).split(separator: "\n")
        let kept = lines.filter { _ in Int.random(in: 0..<100) != 0 }
        let replica = try Skep()
        let community = ["--community", proxy.url]
        let file = data.path("kept.jsonl")
        try kept.joined(separator: "\n").write(toFile: file, atomically: true, encoding: .utf8)
        _ = try await replica.run(["import", file] + community)
        let before = try await replica.ids()
        let start = try proxy.bytes()
        let completed = try await mirror(replica, proxy)
        let bytes = try proxy.bytes() - start
        #expect(completed.status == 0, "\(completed.story)")
        #expect(try await replica.ids().isSuperset(of: served))
        let stored = completed.summary["stored"] as? Int ?? -1
        #expect(stored == served.subtracting(before).count, "\(completed.story)")
        // Events, their ids and the comparison; in proportion to what the full corpus may cost.
        #expect(bytes < max(1_500_000 * count / 100_000, 150_000), "\(bytes) bytes")
        print("completed \(stored) of \(served.count) events with \(bytes) bytes")

        let mark = try proxy.bytes()
        let again = try await mirror(replica, proxy)
        #expect(again.summary["stored"] as? Int == 0, "\(again.story)")
        #expect(again.summary["duplicates"] as? Int == 0, "\(again.story)")
        #expect(again.summary["complete"] as? Bool == true, "\(again.story)")
        print("the second run took \(try proxy.bytes() - mark) bytes")
      }
    }
  }

  @Test func `a log with superseded, deleted and ephemeral events transfers nothing twice`()
    async throws
  {
    let data = try Scratch()
    let file = data.path("more.jsonl")
    // The corpus holds deletions and replaced profiles itself; the log gets what the relay dropped.
    let corpus = try await Corpus.file()
    let lines = try String(contentsOfFile: corpus, encoding: .utf8)
    _ = try await Live.peer("ephemeral.py", [file])
    try await Relay.load(corpus, into: data.path("data"))
    try await Relay.with(.localRelay, in: data.path("data")) { relay in
      let skep = try Skep()
      let all = data.path("all.jsonl")
      try (lines + (try String(contentsOfFile: file, encoding: .utf8)))
        .write(toFile: all, atomically: true, encoding: .utf8)
      let imported = try await skep.run(["import", all, "--community", relay.url])
      #expect(imported.status == 0, "\(imported.story)")
      let held = try await skep.ids()
      #expect(!held.subtracting(try await relay.ids()).isEmpty)
      _ = try await skep.mirror(relay)
      let again = try await skep.mirror(relay)
      #expect(again.summary["stored"] as? Int == 0, "\(again.story)")
      #expect(again.summary["duplicates"] as? Int == 0, "\(again.story)")
      #expect(again.summary["complete"] as? Bool == true, "\(again.story)")
      #expect(try await skep.ids() == held)
    }
  }

  private func mirror(_ skep: Skep, _ proxy: CountingProxy) async throws -> ProgramRun {
    try await skep.run(["mirror", proxy.url, "--all", "--json", "--quiet"], seconds: 300)
  }

  private func via(_ run: ProgramRun) -> [String: Int] {
    run.summary["via"] as? [String: Int] ?? [:]
  }
}

/// A port that passes on to a relay and counts what goes by.
final class CountingProxy: Sendable {
  let port: UInt16
  private let file: String
  private let process: Int32

  var url: String { "ws://127.0.0.1:\(port)" }

  static func with(
    _ relay: Relay, in data: Scratch, _ body: (CountingProxy) async throws -> Void
  ) async throws {
    let proxy = try CountingProxy(relay, data.path("count"))
    defer { kill(proxy.process, SIGKILL) }
    _ = try await Live.peer("wait-port.py", ["\(proxy.port)", "30"])
    try await body(proxy)
  }

  private init(_ relay: Relay, _ file: String) throws {
    port = try Relay.freePort()
    self.file = file
    let launch = Process()
    launch.executableURL = URL(filePath: "\(try Live.python.get())/bin/python")
    launch.arguments = [
      Live.peers.appending(path: "count-proxy.py").path, "\(port)", "\(relay.port)", file,
    ]
    launch.standardInput = FileHandle.nullDevice
    launch.standardOutput = FileHandle.nullDevice
    launch.standardError = FileHandle.nullDevice
    try launch.runWithSignals()
    process = launch.processIdentifier
  }

  /// What went by so far, in both directions.
  func bytes() throws -> Int {
    try #require(Int(try String(contentsOfFile: file, encoding: .utf8)))
  }
}
