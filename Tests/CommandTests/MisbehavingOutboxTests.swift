import Foundation
import Nostr
import NostrCrypto
import Testing

/// What becomes of messages at relays that refuse, forget to answer or count every frame, over real
/// sockets.
@Suite(
  .enabled(if: MisbehavingRelay.isAvailable, "python3 is not installed"), .timeLimit(.minutes(4)))
struct MisbehavingOutboxTests {
  /// A refusal and what it must lead to.
  struct Refusal: Sendable, CustomTestStringConvertible {
    let text: String
    /// Whether the relay says it each time or only once.
    var isLasting = true
    /// `sent`, or the state in which the message stays.
    let state: String
    /// How often the message is handed over.
    let frames: Int
    /// Whether the next message goes on; where the author is silenced, none does.
    var letsNextPass = true

    var testDescription: String { text + (isLasting ? "" : " (once)") }

    static let all: [Refusal] = [
      Refusal(text: "duplicate: already have this event", state: "sent", frames: 1),
      Refusal(
        text: "rate-limited: quota exceeded; retry in 1s", isLasting: false, state: "sent",
        frames: 2),
      Refusal(text: "rate-limited: slow down", isLasting: false, state: "sent", frames: 2),
      Refusal(
        text: "auth-required: who are you", isLasting: false, state: "sent", frames: 2),
      Refusal(text: "auth-required: not in whitelist", state: "refused", frames: 2),
      Refusal(text: "pow: difficulty 28 is needed", state: "refused", frames: 1),
      Refusal(text: "blocked: duplicate content", state: "refused", frames: 1),
      Refusal(text: "restricted: not a member", state: "refused", frames: 1),
      Refusal(
        text: "restricted: you are timed out until 4102444800", state: "held", frames: 1,
        letsNextPass: false),
      Refusal(text: "invalid: missing h tag", state: "refused", frames: 1),
      Refusal(
        text: "invalid: event timestamp too far from server time", state: "expired", frames: 1),
      Refusal(text: "mute: nobody listens to you", state: "refused", frames: 1),
      Refusal(text: "error: database error", isLasting: false, state: "sent", frames: 2),
      Refusal(text: "weather: too cold", state: "refused", frames: 3),
      Refusal(text: "unknown command kind: 9", state: "refused", frames: 3),
    ]
  }

  /// A program with a key that knows the relay, and two messages that wait, the second one plain.
  private func written(
    _ skep: SkepProcess, to relay: MisbehavingRelay, _ first: String = "first"
  ) async throws -> [String] {
    _ = try await skep.runAside("key", "new")
    #expect(try await skep.runAside("mirror", relay.url, "--all", "--quiet").code == 0)
    let chat = try await skep.runAside(
      "chat", "--offline", "--json", stdin: "/open den\n\(first)\nsecond\n/quit\n")
    let ids = try chat.rows().filter { $0["state"] as? String == "queued" }
      .compactMap { $0["id"] as? String }
    try #require(ids.count == 2, "\(chat.text) \(chat.stderr)")
    return ids
  }

  @Test(arguments: Refusal.all)
  func `each refusal has its own consequence, and holds up nobody`(refusal: Refusal) async throws {
    let skep = try SkepProcess()
    let relay = try MisbehavingRelay(
      skep.scratch, events: try Scripted.messages(5, until: Scripted.now() - 60),
      ["refusals": ["first": [refusal.text]], "refuses_for_ever": refusal.isLasting])
    let ids = try await written(skep, to: relay)
    let outcome = try await skep.runAside("sync", "--json")
    let rows = try await skep.runAside("outbox", "list", "--all", "--json").rows()
    func row(_ id: String) -> [String: Any] {
      rows.first { $0["event_id"] as? String == id } ?? [:]
    }
    #expect(row(ids[0])["state"] as? String == refusal.state, "\(rows) \(outcome.text)")
    #expect((row(ids[1])["state"] as? String == "sent") == refusal.letsNextPass, "\(rows)")
    let published = try relay.published()
    #expect(published.count { $0 == ids[0] } == refusal.frames)
    #expect(published.count { $0 == ids[1] } == (refusal.letsNextPass ? 1 : 0))
    #expect(published.allSatisfy(ids.contains))
    if refusal.state == "sent" {
      // What was accepted in the end kept its place.
      #expect(published.last == ids[1])
    } else {
      #expect(row(ids[0])["reason"] as? String == refusal.text)
    }
    let hasFailed = ["refused", "expired"].contains(refusal.state)
    let isAllSent = refusal.state == "sent" && refusal.letsNextPass
    #expect(outcome.code == (isAllSent ? 0 : 1), "\(outcome.text) \(outcome.stderr)")
    #expect(outcome.stderr.contains("not sent: ") == hasFailed)
    #expect(outcome.stderr.contains("waits: ") == (refusal.state == "held"))
    let told = try #require(try outcome.rows().last)
    let sent = (refusal.state == "sent" ? 1 : 0) + (refusal.letsNextPass ? 1 : 0)
    #expect(told["sent"] as? Int == sent, "\(outcome.text)")
  }

  @Test func `a relay that stores and never answers is asked, and the message is sent`()
    async throws
  {
    let skep = try SkepProcess()
    let relay = try MisbehavingRelay(
      skep.scratch, events: try Scripted.messages(5, until: Scripted.now() - 60),
      ["never_answers": true])
    let ids = try await written(skep, to: relay)
    for _ in 0..<2 { _ = try await skep.runAside("sync", "--json") }
    #expect(try await skep.runAside("outbox", "--json").rows().isEmpty)
    #expect(try relay.published() == ids)
    let asked = try relay.filters().compactMap { $0["ids"] as? [String] }
    #expect(Set(asked.flatMap { $0 }) == Set(ids))
  }

  @Test func `sixty channels leave room for what the user sends`() async throws {
    let skep = try SkepProcess()
    let end = Scripted.now() - 60
    let groups = (0..<60).map { Text("den\($0)") }
    var events = try groups.map {
      try Scripted.event("relay", 39000, [["d", $0], ["name", $0]], "", at: end)
    }
    for group in groups { events += try Scripted.messages(2, group: group, until: end) }
    let relay = try MisbehavingRelay(
      skep.scratch, events: events,
      ["document": ["self": try Scripted.key("relay").publicKey.hex]])
    _ = try await skep.runAside("key", "new")
    #expect(try await skep.runAside("mirror", relay.url, "--all", "--quiet").code == 0)
    try relay.order(["rules": ["budget": 10]])
    let chat = try await skep.runAside(
      "chat", "--json", stdin: "/open den7\nhello\n/wait outbox\n/wait 25\n/quit\n")
    #expect(chat.code == 0, "\(chat.text) \(chat.stderr)")
    #expect(try relay.published().count == 1)
    let verdicts = try relay.rows("answer").compactMap { $0["frame"] as? [Any] }
      .filter { $0.first as? String == "OK" }
    #expect(verdicts.map { $0[2] as? Bool } == [true], "\(verdicts)")
    #expect(try await skep.runAside("outbox", "--json").rows().isEmpty)
    // A live feed is the one request that names a group and asks for few events.
    let feeds = try relay.filters().filter { ($0["limit"] as? Int).map { $0 < 100 } == true }
    let groupsAsked = Set(feeds.compactMap { ($0["#h"] as? [String])?.first })
    #expect(groupsAsked.count == 60)
  }
}
