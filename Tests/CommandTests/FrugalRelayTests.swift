import Foundation
import Nostr
import NostrCrypto
import Platform
import Testing

/// A relay that takes few frames, and one that takes connections and drops them.
@Suite struct FrugalRelayTests {
  /// Ten frames a second and not one more, whatever they are; it keeps what it is sent.
  private final class FrugalRules: Sendable {
    private struct State {
      var tokens = 10.0
      var refilledAt = ProcessInfo.processInfo.systemUptime
      var written: [String: String] = [:]
      var events = 0
      var refused = 0
    }

    private let state = Lock(State())
    let groups: [String]

    init(groups: [String]) { self.groups = groups }

    var eventFrames: Int { state.withLock { $0.events } }
    var refusals: Int { state.withLock { $0.refused } }
    var held: Int { state.withLock { $0.written.count } }

    private func isTaken() -> Bool {
      state.withLock { state in
        let now = ProcessInfo.processInfo.systemUptime
        state.tokens = min(10, state.tokens + (now - state.refilledAt) * 10)
        state.refilledAt = now
        guard state.tokens >= 1 else {
          state.refused += 1
          return false
        }
        state.tokens -= 1
        return true
      }
    }

    func answers(to frame: [Any]) -> [String] {
      let isTaken = isTaken()
      switch frame.first as? String {
      case "REQ":
        guard let id = frame[1] as? String, let filter = frame[2] as? [String: Any] else {
          return []
        }
        guard isTaken else {
          return [#"["CLOSED","\#(id)","rate-limited: quota exceeded; retry in 1s"]"#]
        }
        let isAskedFor = (filter["kinds"] as? [Int])?.contains(39000) ?? true
        let isHead = filter["until"] == nil && filter["#d"] == nil && filter["#h"] == nil
        let page = isAskedFor && isHead ? groups : []
        return page.map { #"["EVENT","\#(id)",\#($0)]"# } + [#"["EOSE","\#(id)","finish"]"#]
      case "EVENT":
        guard let event = frame[1] as? [String: Any], let id = event["id"] as? String else {
          return []
        }
        state.withLock { $0.events += 1 }
        guard isTaken else {
          return [#"["OK","\#(id)",false,"rate-limited: quota exceeded; retry in 1s"]"#]
        }
        state.withLock { $0.written[id] = "" }
        return [#"["OK","\#(id)",true,""]"#]
      default: return []
      }
    }
  }

  private static func groups(_ count: Int) throws -> [String] {
    let signer = RelaySigner(try SecretKey(bytes: [UInt8](repeating: 7, count: 32)))
    return try (0..<count).map { number in
      let event = try signer.sign(
        EventDraft(
          createdAt: 1_700_000_000, kind: .groupMetadata,
          tags: Tags([["d", Text("channel-\(number)")], ["name", Text("channel-\(number)")]]),
          content: .empty)
      ).event
      return String(decoding: event.json(), as: UTF8.self)
    }
  }

  @Test func `sixty channels on ten frames a second: a message is accepted at the first try`()
    async throws
  {
    let skep = try SkepProcess()
    let rules = FrugalRules(groups: try Self.groups(60))
    let relay = try await ScriptedRelay { rules.answers(to: $0) }
    _ = try skep.run("key", "new")
    let mirror = try skep.run("mirror", relay.url, "--json")
    #expect([0, 4].contains(mirror.code), "\(mirror.stderr)")
    let written = try skep.run(
      "chat", "--offline", "--json", stdin: "/open channel-7\nthrough the crowd\n/quit\n")
    #expect(written.text.contains("queued"), "\(written.text)")
    let sent = try skep.run("chat", "--json", stdin: "/wait outbox\n/status\n/quit\n")
    #expect(rules.eventFrames == 1 && rules.held == 1, "\(sent.text) \(sent.stderr)")
    #expect(try skep.run("outbox", "--json").rows().isEmpty)
  }

  @Test func `a relay that takes connections and drops them is not stormed`() async throws {
    let skep = try SkepProcess()
    let connections = Lock(0)
    let relay = try await ScriptedRelay { frame in
      connections.withLock { $0 += 1 }
      return nil
    }
    let outcome = try skep.run("mirror", relay.url, "--fail-after", "10s", "--json")
    #expect(outcome.code != 0)
    // In ten seconds the jitter alone would allow more.
    #expect(connections.withLock { $0 } <= 8)
  }
}
