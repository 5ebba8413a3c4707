import Foundation
import Nostr
import Testing

/// NIP-77 at relays that serve it or refuse it in their own ways, over real sockets.
@Suite(
  .enabled(if: MisbehavingRelay.isAvailable, "python3 is not installed"), .timeLimit(.minutes(4)))
struct MisbehavingNegentropyTests {
  private static var document: [String: Any] {
    ["supported_nips": [1, 77], "limitation": ["auth_required": false]]
  }

  @Test(
    arguments: [
      "notice", "closed", "blocked", "error", "silence", "drop", "garbled", "version",
    ])
  func `refused in any way, the walk gives the same set`(form: String) async throws {
    let skep = try SkepProcess()
    let events = try Scripted.messages(120, perSecond: 3, until: Scripted.now() - 60)
    let relay = try MisbehavingRelay(
      skep.scratch, events: events,
      ["negentropy": form, "cap": 50, "document": Self.document])
    let outcome = try await skep.runAside("mirror", relay.url, "--all", "--json")
    #expect(outcome.code == 0, "\(outcome.text) \(outcome.stderr)")
    let told = try #require(try outcome.rows().last)
    #expect(told["complete"] as? Bool == true, "\(told)")
    #expect(try await skep.ids() == Set(events.map(\.id.hex)))
    #expect(try !relay.frames("NEG-OPEN").isEmpty)
    #expect(try relay.frames("NEG-OPEN").count <= 5)
  }

  @Test func `a second denser than a page is proved by reconciliation`() async throws {
    let skep = try SkepProcess()
    let end = Scripted.now() - 60
    let events = try Scripted.aroundDenseSecond(until: end)
    let relay = try MisbehavingRelay(
      skep.scratch, events: events, ["negentropy": "served", "document": Self.document])
    let outcome = try await skep.runAside("mirror", relay.url, "--all", "--json")
    #expect(outcome.code == 0, "\(outcome.text) \(outcome.stderr)")
    let told = try #require(try outcome.rows().last)
    #expect(told["complete"] as? Bool == true, "\(told)")
    #expect(try await skep.ids() == Set(events.map(\.id.hex)))
    #expect((told["via"] as? [String: Int])?["negentropy"] ?? 0 > 0, "\(told)")
  }
}
