import Foundation
import Testing

@Suite(.live, .serialized) struct OfflineTests {
  private static let messages = [
    "The relay is gone and all of this can still be read.",
    "Two lines here would be one too many, but \u{e9} and e\u{301} both stay as they are.",
    "It leaves when the relay is back. 🐝",
  ]
  private static let reply = "An answer, written offline too."

  /// What the line client is told while there is no relay.
  private func script(_ channel: String) -> String {
    (["/open \(channel)", "/history 3"] + Self.messages + ["/reply #1 \(Self.reply)", "/quit"])
      .joined(separator: "\n") + "\n"
  }

  /// Mirrors, loses the relay, writes, and returns the port to come back to and the key used.
  private func writeOffline(_ kind: Relay.Kind, data: Scratch, skep: Skep) async throws
    -> (port: UInt16, pubkey: String)
  {
    let pubkey = try await skep.newKey()
    let (port, channel) = try await Relay.with(kind, in: data.path("data")) { relay in
      try await relay.publish(try await Corpus.file(1000))
      let mirror = try await skep.mirror(relay)
      #expect(mirror.status == 0, "\(mirror.story)")
      let messages = try await relay.events(#"{"kinds":[9],"limit":1}"#)
      let tags = messages.first?["tags"] as? [[String]] ?? []
      let channel = try #require(tags.first { $0.first == "h" }?.last)
      return (relay.port, channel)
    }
    let chat = try await skep.run(["chat", "--offline", "--json"], input: script(channel))
    #expect(chat.status == 0, "\(chat.story)")
    let done = chat.rows.filter { $0["type"] as? String == "done" }
    #expect(done.allSatisfy { $0["ok"] as? Bool == true }, "\(chat.story)")
    #expect(chat.rows.contains { $0["type"] as? String == "message" }, "\(chat.story)")
    let outbox = try await skep.run(["outbox", "list", "--json"])
    #expect(outbox.rows.count == 4, "\(outbox.story)")
    #expect(outbox.rows.allSatisfy { $0["state"] as? String == "queued" }, "\(outbox.story)")
    return (port, pubkey)
  }

  /// Over LMDB, nostr-relay answers filters with several kinds and a tag in no order of time, so that
  /// nothing can be proved there, and gives nothing for a second asked alone that it has just shown
  /// in a page. The honest end is then exit 4 with one of these reasons for each gap, the second
  /// one only for a single second, and no other.
  private func expectProved(_ run: ProgramRun, at relay: Relay) {
    guard relay.kind == .nostrRelayLMDB, run.status == 4 else {
      #expect(run.status == 0, "\(run.story)")
      return
    }
    let gaps = run.summary["gaps"] as? [[String: Any]] ?? []
    #expect(!gaps.isEmpty, "\(run.story)")
    for gap in gaps {
      let isSingleSecond = gap["from"] as? Int == gap["to"] as? Int
      let expected =
        isSingleSecond
        ? "the relay shows this second in a page and not by itself"
        : "the relay does not answer newest first: unpageable"
      #expect(gap["why"] as? String == expected, "\(run.story)")
    }
  }

  private func expectFourOnce(_ relay: Relay, _ pubkey: String) async throws {
    let found = try await relay.events(#"{"authors":["\#(pubkey)"],"kinds":[9],"limit":50}"#)
    let contents = found.compactMap { $0["content"] as? String }.map { Array($0.utf8) }
    let wanted = (Self.messages + [Self.reply]).map { Array($0.utf8) }
    #expect(contents.count == 4 && Set(contents) == Set(wanted), "\(found)")
  }

  @Test(arguments: Relay.Kind.allCases)
  func `what was written without the relay is there exactly once when it is back`(
    kind: Relay.Kind
  ) async throws {
    let data = try Scratch()
    let skep = try Skep()
    let (port, pubkey) = try await writeOffline(kind, data: data, skep: skep)
    try await Relay.with(kind, in: data.path("data"), port: port) { relay in
      let sync = try await skep.run(["sync", "--once", "--json", "--quiet"])
      expectProved(sync, at: relay)
      #expect(sync.summary["sent"] as? Int == 4, "\(sync.story)")
      try await expectFourOnce(relay, pubkey)
      let again = try await skep.run(["sync", "--once", "--json", "--quiet"])
      #expect(again.summary["sent"] as? Int == 0, "\(again.story)")
      try await expectFourOnce(relay, pubkey)
      let outbox = try await skep.run(["outbox", "list", "--json"])
      #expect(outbox.rows.isEmpty, "\(outbox.story)")
    }
  }

  @Test func `a chat that is open when the relay comes back sends by itself`() async throws {
    let data = try Scratch()
    let skep = try Skep()
    let (port, pubkey) = try await writeOffline(.nostrRelaySQLite, data: data, skep: skep)
    try await Relay.with(.nostrRelaySQLite, in: data.path("data"), port: port) { relay in
      let chat = try await skep.run(
        ["chat", "--json"], input: "/wait outbox\n/status\n/quit\n", seconds: 90)
      #expect(chat.status == 0, "\(chat.story)")
      try await expectFourOnce(relay, pubkey)
    }
  }

  @Test func `a sync killed while it sends loses and doubles nothing`() async throws {
    let data = try Scratch()
    let skep = try Skep()
    let (port, pubkey) = try await writeOffline(.nostrRelaySQLite, data: data, skep: skep)
    try await Relay.with(.nostrRelaySQLite, in: data.path("data"), port: port) { relay in
      for milliseconds in [60, 120, 200, 320] {
        _ = try await skep.run(
          ["sync", "--once", "--json", "--quiet"], seconds: Double(milliseconds) / 1000,
          kill: true)
      }
      let sync = try await skep.run(["sync", "--once", "--json", "--quiet"])
      #expect(sync.status == 0, "\(sync.story)")
      try await expectFourOnce(relay, pubkey)
      try await skep.expectSound()
    }
  }
}
