import Testing

/// `kill -9` while messages are written, sent and accepted; `make torture` runs more of it.
@Suite(.live, .serialized) struct TortureTests {
  @Test(arguments: ["nostr-relay", "local-relay"])
  func `every message is at the relay exactly once and in order, whatever was killed`(
    relay: String
  ) async throws {
    let run = try await Live.peer(
      "torture.py", [Live.skep, relay, "\(Live.tortureKills)", "\(Live.seed)"],
      seconds: 120 + 10 * Double(Live.tortureKills))
    print(run.output)
    #expect(run.summary["kills"] as? Int == Live.tortureKills, "\(run.story)")
  }
}
