import Foundation
import Nostr
import Testing

/// Mirrors of relays that misbehave, over real sockets: what is held, what is said to be proved,
/// and what it cost.
@Suite(
  .enabled(if: MisbehavingRelay.isAvailable, "python3 is not installed"), .timeLimit(.minutes(4)))
struct MisbehavingMirrorTests {
  private func summary(_ outcome: SkepProcess.Outcome) throws -> [String: Any] {
    try #require(
      try outcome.rows().last { $0["type"] as? String == "summary" }, "\(outcome.stderr)")
  }

  private func gaps(_ outcome: SkepProcess.Outcome) throws -> [[String: Any]] {
    try summary(outcome)["gaps"] as? [[String: Any]] ?? []
  }

  private func ids(_ events: [Event]) -> Set<String> { Set(events.map(\.id.hex)) }

  private func expectComplete(
    _ outcome: SkepProcess.Outcome, _ events: [Event], _ skep: SkepProcess,
    _ location: SourceLocation = #_sourceLocation
  ) async throws {
    #expect(outcome.code == 0, "\(outcome.text) \(outcome.stderr)", sourceLocation: location)
    let told = try summary(outcome)
    #expect(told["complete"] as? Bool == true, sourceLocation: location)
    #expect(try gaps(outcome).isEmpty, sourceLocation: location)
    #expect(try await skep.ids() == ids(events), sourceLocation: location)
  }

  @Test func `a cap below the asked limit costs pages and no event`() async throws {
    let skep = try SkepProcess()
    let events = try Scripted.messages(100, perSecond: 3, until: Scripted.now() - 60)
    let relay = try MisbehavingRelay(
      skep.scratch, events: events, ["cap": 7, "document": ["limitation": ["max_limit": 500]]])
    let outcome = try await skep.runAside("mirror", relay.url, "--all", "--json")
    try await expectComplete(outcome, events, skep)
    #expect(try relay.frames("REQ").count < 60)
  }

  @Test(arguments: [false, true])
  func `a relay that drops the connection amid large answers is read in small ones`(
    hasNegentropy: Bool
  ) async throws {
    let skep = try SkepProcess()
    let events = try Scripted.messages(120, perSecond: 3, until: Scripted.now() - 60)
    var rules: [String: Any] = ["drops_after": 30]
    if hasNegentropy {
      rules["negentropy"] = "served"
      rules["document"] = ["supported_nips": [1, 77]]
    }
    let relay = try MisbehavingRelay(skep.scratch, events: events, rules)
    let outcome = try await skep.runAside("mirror", relay.url, "--all", "--json")
    try await expectComplete(outcome, events, skep)
    let drops = try relay.rows("open").count - 1
    #expect(drops > 1 && drops < 10)
    // Whether it does NIP-77 is asked of every relay, once.
    #expect(try relay.frames("NEG-OPEN").count > (hasNegentropy ? 1 : 0))
  }

  @Test
  func `a relay that drops the connection amid every answer ends a mirror, which keeps what came`()
    async throws
  {
    let skep = try SkepProcess()
    let events = try Scripted.messages(120, perSecond: 3, until: Scripted.now() - 60)
    let relay = try MisbehavingRelay(skep.scratch, events: events, ["drops_after": 1])
    let outcome = try await skep.runAside("mirror", relay.url, "--all", "--json")
    #expect(outcome.code == 4, "\(outcome.text) \(outcome.stderr)")
    #expect(try gaps(outcome).map { $0["why"] as? String } == ["the connection was lost"])
    #expect(try await skep.ids().isSubset(of: ids(events)))
    #expect(try relay.rows("open").count < 10)
  }

  @Test func `a mirror that is stopped tells what it had done until then`() async throws {
    let skep = try SkepProcess()
    let events = try Scripted.messages(100, until: Scripted.now() - 60)
    let relay = try MisbehavingRelay(skep.scratch, events: events, ["cap": 20, "endless_after": 2])
    let running = try skep.start(["mirror", relay.url, "--all", "--json"])
    while running.process.isRunning, try relay.frames("REQ").count < 3 { sched_yield() }
    kill(running.process.processIdentifier, SIGINT)
    let outcome = try running.finish()
    #expect(outcome.code == 130)
    let told = try summary(outcome)
    let stored = try #require(told["stored"] as? Int)
    #expect(stored > 0 && (told["via"] as? [String: Int])?["paging"] == stored)
    let relays = try #require(told["relays"] as? [[String: Any]])
    #expect(relays.map { $0["reached"] as? Bool } == [true])
    #expect(told["complete"] as? Bool == false)
    #expect(try gaps(outcome).contains { $0["why"] as? String == "stopped" })
  }

  @Test func `a second denser than a page is named as unproven, and everything else is there`()
    async throws
  {
    let skep = try SkepProcess()
    let end = Scripted.now() - 60
    let events = try Scripted.aroundDenseSecond(until: end)
    let dense = events.filter { $0.createdAt == end - 100 }
    let others = events.filter { $0.createdAt != end - 100 }
    let relay = try MisbehavingRelay(skep.scratch, events: events)
    let outcome = try await skep.runAside("mirror", relay.url, "--all", "--json")
    #expect(outcome.code == 4, "\(outcome.text)")
    #expect(try summary(outcome)["complete"] as? Bool == false)
    let spans = try gaps(outcome).map { [$0["from"] as? Int64, $0["to"] as? Int64] }
    #expect(spans == [[(end - 100).seconds, (end - 100).seconds]])
    let held = try await skep.ids()
    #expect(held.isSuperset(of: ids(others)))
    #expect(held.intersection(ids(dense)).count == 500)
  }

  @Test func `a keyset cursor proves a second denser than a page`() async throws {
    let skep = try SkepProcess()
    let end = Scripted.now() - 60
    let events = try Scripted.aroundDenseSecond(until: end)
    let relay = try MisbehavingRelay(
      skep.scratch, events: events,
      ["keyset": true, "document": ["supported_extensions": ["before_id"]]])
    let outcome = try await skep.runAside("mirror", relay.url, "--all", "--json")
    try await expectComplete(outcome, events, skep)
    #expect(try relay.filters().contains { $0["before_id"] != nil })
  }

  @Test func `a relay that says it pages by a cursor and does not is not believed`() async throws {
    let skep = try SkepProcess()
    let end = Scripted.now() - 60
    let events = try Scripted.messages(700, perSecond: 700, until: end)
    let relay = try MisbehavingRelay(
      skep.scratch, events: events, ["document": ["supported_extensions": ["before_id"]]])
    let outcome = try await skep.runAside("mirror", relay.url, "--all", "--json")
    #expect(outcome.code == 4, "\(outcome.text)")
    #expect(try gaps(outcome).map { $0["from"] as? Int64 } == [end.seconds])
    #expect(try relay.frames("REQ").count < 20)
  }

  @Test(arguments: [500, 5])
  func `a relay that takes an until of nothing for no bound is walked to its end`(
    cap: Int
  ) async throws {
    let skep = try SkepProcess()
    let events =
      try Scripted.messages(12, perSecond: 12, group: "dawn", until: 0)
      + Scripted.messages(10, until: Scripted.now() - 60)
    let relay = try MisbehavingRelay(
      skep.scratch, events: events, ["until_zero_is_none": true, "cap": cap])
    let outcome = try await skep.runAside("mirror", relay.url, "--all", "--json")
    #expect(try relay.frames("REQ").count < 20)
    #expect(try relay.filters().allSatisfy { ($0["until"] as? Int64 ?? 0) >= 0 })
    if cap == 500 {
      try await expectComplete(outcome, events, skep)
    } else {
      #expect(outcome.code == 4, "\(outcome.text)")
      #expect(try gaps(outcome).allSatisfy { $0["to"] as? Int64 == 0 })
      #expect(try await skep.ids().isSuperset(of: ids(events.filter { $0.createdAt > 0 })))
    }
  }

  @Test func `neither a forged nor a valid date far ahead moves a cursor`() async throws {
    let skep = try SkepProcess()
    let now = Scripted.now()
    let future = try Scripted.event("eve", 9, [["h", "den"]], "far", at: 4_102_444_800)
    let forged = Scripted.forged(
      try Scripted.event("eve", 9, [["h", "den"]], "farther", at: 4_102_444_801))
    let events = try Scripted.messages(40, until: now - 60) + [future]
    let relay = try MisbehavingRelay(
      skep.scratch, events: events,
      ["cap": 10, "poison": [try Scripted.object(forged), try Scripted.object(future)]])
    let outcome = try await skep.runAside("mirror", relay.url, "--all", "--json")
    try await expectComplete(outcome, events, skep)
    #expect(try relay.rows("open").count == 2)
    let rejected = try summary(outcome)["rejected"] as? [String: Int] ?? [:]
    #expect(rejected.values.reduce(0, +) == 1, "\(rejected)")
    let again = try await skep.runAside("mirror", relay.url, "--all", "--json")
    try await expectComplete(again, events, skep)
    let latest = (now + 1000).seconds
    for filter in try relay.filters() {
      #expect(filter["since"] as? Int64 ?? 0 <= latest)
      #expect(filter["until"] as? Int64 ?? 0 <= latest)
    }
  }

  @Test func `where an id is dead once it was closed, the answer to AUTH is asked for anew`()
    async throws
  {
    let skep = try SkepProcess()
    _ = try await skep.runAside("key", "new")
    let events = try Scripted.messages(30, until: Scripted.now() - 60)
    let relay = try MisbehavingRelay(
      skep.scratch, events: events, ["auth": "when refused", "reused_ids_are_dead": true])
    let outcome = try await skep.runAside("mirror", relay.url, "--all", "--json")
    try await expectComplete(outcome, events, skep)
    let names = try relay.frames("REQ").compactMap { $0[1] as? String }
    #expect(Set(names).count == names.count)
    #expect(try relay.frames("AUTH").count == 1)
    #expect(try relay.rows("open").count == 1)
  }

  @Test func `an end that never comes leaves a gap, and the events that came`() async throws {
    let skep = try SkepProcess()
    let events = try Scripted.messages(30, until: Scripted.now() - 60)
    let relay = try MisbehavingRelay(
      skep.scratch, events: events, ["endless_kinds": [9], "notice_for_kindless": true])
    let outcome = try await skep.runAside("mirror", relay.url, "--group", "den", "--json")
    #expect(outcome.code == 4, "\(outcome.text)")
    let told = try gaps(outcome)
    #expect(told.count == 1)
    #expect((told.first?["why"] as? String)?.contains("in time") == true, "\(told)")
    #expect(try await skep.ids() == ids(events))
    #expect(try relay.rows("open").count == 1)
  }

  @Test func `a notice in place of a refusal leads to filters that the relay takes`() async throws {
    let skep = try SkepProcess()
    let events = try Scripted.messages(30, until: Scripted.now() - 60)
    let relay = try MisbehavingRelay(skep.scratch, events: events, ["notice_for_kindless": true])
    let outcome = try await skep.runAside("mirror", relay.url, "--all", "--json")
    try await expectComplete(outcome, events, skep)
  }

  @Test func `what only a notice refuses is a gap in the relay's words, and holds up nothing else`()
    async throws
  {
    let skep = try SkepProcess()
    let end = Scripted.now() - 60
    let messages = try Scripted.messages(30, until: end)
    let reaction = try Scripted.event(
      "bob", 7, [["h", "den"], ["e", Text(messages[0].id.hex)]], "+", at: end)
    let relay = try MisbehavingRelay(
      skep.scratch, events: messages + [reaction],
      ["notice_for_kinds": [7], "notice_for_kindless": true])
    let outcome = try await skep.runAside("mirror", relay.url, "--group", "den", "--json")
    #expect(outcome.code == 4, "\(outcome.text)")
    let told = try gaps(outcome)
    #expect(told.count == 1)
    #expect((told.first?["why"] as? String)?.contains("uninteresting") == true, "\(told)")
    #expect(try await skep.ids() == ids(messages))
  }

  @Test func `an event of another date that came in while away is found by the next run`()
    async throws
  {
    let skep = try SkepProcess()
    let now = Scripted.now()
    let events = try Scripted.messages(30, perSecond: 1, until: now - 60)
    let old = try Scripted.messages(10, group: "old", until: now - 30 * 86_400)
    let relay = try MisbehavingRelay(skep.scratch, events: events + old)
    try await expectComplete(
      try await skep.runAside("mirror", relay.url, "--all", "--json"), events + old, skep)
    let late = try Scripted.event("bob", 9, [["h", "den"]], "late", at: now - 36 * 3600)
    try relay.add(late)
    let second = try await skep.runAside("mirror", relay.url, "--all", "--json")
    try await expectComplete(second, events + old + [late], skep)
    #expect(try summary(second)["stored"] as? Int == 1)
    let later = try Scripted.event("bob", 9, [["h", "den"]], "later", at: now - 20 * 86_400)
    try relay.add(later)
    let third = try await skep.runAside("mirror", relay.url, "--all", "--full", "--json")
    try await expectComplete(third, events + old + [late, later], skep)
  }
}
