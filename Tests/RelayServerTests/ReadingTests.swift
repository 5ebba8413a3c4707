import Nostr
import RelayServer
import Testing

@Suite struct ReadingTests {
  private let h = UInt8(ascii: "h")

  private func note(_ text: String, at time: Timestamp) -> Event {
    Bench.event(by: "ann", 1, [], text, at: time)
  }

  private func bench(_ rules: RelayRules = .withoutGroups, notes: [Event]) throws -> Bench {
    var bench = Bench(rules)
    try bench.machine.load(notes)
    return bench
  }

  /// 40 notes over 10 seconds, four in each.
  private var notes: [Event] {
    (0..<40).map { note("note \($0)", at: Bench.start + Int64($0 / 4)) }
  }

  @Test func `stored events come newest first, and ties by the lowest id`() throws {
    var bench = try bench(notes: notes.shuffled())
    let id = bench.connect()
    let answer = bench.ask(Filter(kinds: [1]), on: id)
    let expected = notes.sorted {
      $0.createdAt != $1.createdAt ? $0.createdAt > $1.createdAt : $0.id < $1.id
    }
    #expect(answer.ids == expected.map(\.id))
  }

  @Test func `each filter has its own limit, and an event comes once`() throws {
    var bench = try bench(notes: notes)
    let id = bench.connect()
    let newest = bench.ask(Filter(kinds: [1], limit: 3), on: id)
    #expect(newest.events.count == 3)
    let both = bench.ask(
      Filter(kinds: [1], limit: 3), Filter(until: Bench.start, limit: 2),
      Filter(ids: [newest.ids[0]]), on: id)
    #expect(both.events.count == 5)
    #expect(Set(both.ids).count == 5)
    #expect(Array(both.ids.prefix(3)) == newest.ids)
  }

  @Test func `a limit of nothing asks for live events only`() throws {
    var bench = try bench(notes: notes)
    let id = bench.connect()
    bench.say(.req("live", [Filter(kinds: [1], limit: 0)]), on: id)
    #expect(bench.take(id) == [.eose("live", hints: [])])
    let late = note("late", at: Bench.start + 100)
    #expect(bench.publish(late, on: bench.connect())?.accepted == true)
    #expect(bench.takeEvents(id) == [late])
  }

  @Test func `since and until are inclusive`() throws {
    var bench = try bench(notes: notes)
    let id = bench.connect()
    let answer = bench.ask(Filter(since: Bench.start + 2, until: Bench.start + 3), on: id)
    #expect(Set(answer.events.map(\.createdAt)) == [Bench.start + 2, Bench.start + 3])
    #expect(answer.events.count == 8)
  }

  @Test func `paging with until below the oldest second walks everything`() throws {
    var rules = RelayRules.withoutGroups
    rules.reading.pageMax = 7
    var bench = try bench(rules, notes: notes)
    let id = bench.connect()
    var seen: Set<EventID> = []
    var until: Timestamp?
    for _ in 0..<40 {
      let page = bench.ask(Filter(kinds: [1], until: until, limit: 100), on: id)
      #expect(page.events.count <= 7)
      guard let oldest = page.events.last else { break }
      seen.formUnion(page.ids)
      until = oldest.createdAt == until ? oldest.createdAt - 1 : oldest.createdAt
    }
    #expect(seen == Set(notes.map(\.id)))
  }

  @Test(arguments: [true, false])
  func `filters are evaluated unless the rule is off`(evaluates: Bool) throws {
    var rules = RelayRules.withoutGroups
    rules.reading.evaluatesFilters = evaluates
    var bench = try bench(rules, notes: notes)
    let answer = bench.ask(Filter(kinds: [7]), on: bench.connect())
    #expect(answer.events.isEmpty == evaluates)
  }

  @Test(arguments: [true, false])
  func `until is heard unless the rule is off`(ignores: Bool) throws {
    var rules = RelayRules.withoutGroups
    rules.reading.ignoresUntil = ignores
    var bench = try bench(rules, notes: notes)
    let answer = bench.ask(Filter(until: Bench.start - 1), on: bench.connect())
    #expect(answer.events.count == (ignores ? 40 : 0))
  }

  @Test(arguments: [PageOrder.newestFirst, .newestSentAscending, .oldestFirst])
  func `the order is the rule's`(order: PageOrder) throws {
    var rules = RelayRules.withoutGroups
    rules.reading.order = order
    var bench = try bench(rules, notes: notes)
    let times = bench.ask(Filter(kinds: [1], limit: 8), on: bench.connect()).events.map(\.createdAt)
    switch order {
    case .newestFirst: #expect(times == times.sorted(by: >) && times.first == Bench.start + 9)
    case .newestSentAscending: #expect(times == times.sorted() && times.last == Bench.start + 9)
    case .oldestFirst: #expect(times == times.sorted() && times.first == Bench.start)
    }
  }

  @Test func `a whole answer says finish, a cut one says more, and hints can be off`() throws {
    var rules = RelayRules.withoutGroups
    rules.reading.pageMax = 40
    var bench = try bench(rules, notes: notes)
    let id = bench.connect()
    #expect(bench.ask(Filter(kinds: [1]), on: id).hints == ["finish"])
    #expect(bench.ask(Filter(kinds: [1], limit: 39), on: id).hints == ["more"])
    bench.machine.rules.answers.hints = false
    #expect(bench.ask(Filter(kinds: [1]), on: id).hints == [])
  }

  @Test func `a truncated page ends like a whole one and says nothing`() throws {
    var rules = RelayRules.withoutGroups
    rules.reading.truncatedTo = 5
    var bench = try bench(rules, notes: notes)
    let answer = bench.ask(Filter(kinds: [1]), on: bench.connect())
    #expect(answer.events.count == 5 && answer.hints == [])
  }

  @Test func `counting is exact, approximate or unsupported`() throws {
    var bench = try bench(notes: notes)
    let id = bench.connect()
    bench.say(.count("c", [Filter(kinds: [1]), Filter(until: Bench.start)]), on: id)
    #expect(bench.take(id) == [.count("c", 40, approximate: false)])
    bench.machine.rules.reading.counting = .approximate
    bench.say(.count("c", [Filter(kinds: [1])]), on: id)
    #expect(bench.take(id) == [.count("c", 40, approximate: true)])
    bench.machine.rules.reading.counting = .unsupported
    bench.say(.count("c", [Filter(kinds: [1])]), on: id)
    guard case .closed("c", let text)? = bench.take(id).first else {
      Issue.record("a relay that does not count says so")
      return
    }
    #expect(text.hasPrefix("unsupported:"))
  }

  @Test func `a refused kind closes its whole REQ`() throws {
    var bench = try bench(notes: notes)
    let id = bench.connect()
    #expect(bench.ask(Filter(kinds: [1]), Filter(kinds: [9735]), on: id).events.count == 40)
    bench.machine.rules.reading.refusedKinds = [9735]
    let refused = bench.ask(Filter(kinds: [1]), Filter(kinds: [9735]), on: id)
    #expect(refused.events.isEmpty)
    #expect(refused.refusal == "restricted: this relay does not serve those kinds")
    #expect(bench.ask(Filter(kinds: [1]), on: id).events.count == 40)
  }

  @Test func `kinds gated by recipient need p of one's own key`() throws {
    var rules = RelayRules()
    rules.reading.kindsGatedByRecipient = [44100]
    var bench = Bench(rules)
    let id = bench.connect(as: "ann")
    let p = UInt8(ascii: "p")
    let own = Text(Bench.hex("ann"))
    let other = Text(Bench.hex("bob"))
    let bare = "restricted: these kinds need a #p scope"
    let foreign = "restricted: you may only scope those kinds to yourself"
    #expect(bench.ask(Filter(kinds: [44100]), on: id).refusal == bare)
    #expect(bench.ask(Filter(), on: id).refusal == bare)
    #expect(bench.ask(Filter(kinds: [44100], tags: [p: [own, other]]), on: id).refusal == foreign)
    #expect(bench.ask(Filter(kinds: [44100], tags: [p: [own]]), on: id).refusal == nil)
    bench.machine.rules.answers.wording = .buzz
    #expect(
      bench.ask(Filter(kinds: [44100]), on: id).refusal
        == "restricted: p-gated events require #p matching your pubkey")
    bench.machine.rules.reading.kindsGatedByRecipient = []
    #expect(bench.ask(Filter(kinds: [44100]), on: id).refusal == nil)
  }

  @Test func `a bad filter is answered in the form of the rule`() throws {
    var bench = try bench(notes: notes)
    let id = bench.connect()
    let bad = #"["REQ","bad",{"ids":["ABC"]}]"#
    bench.say(bad, on: id)
    guard case .closed("bad", let text)? = bench.take(id).first else {
      Issue.record("a bad filter is answered by CLOSED")
      return
    }
    #expect(text.hasPrefix("invalid:"))
    bench.machine.rules.answers.toBadRequest = .notice
    bench.say(bad, on: id)
    guard case .notice(let notice)? = bench.take(id).first else {
      Issue.record("a bad filter is answered by NOTICE")
      return
    }
    #expect(notice.hasPrefix("invalid message:"))
    bench.machine.rules.answers.toBadRequest = .silence
    bench.say(bad, on: id)
    #expect(bench.take(id).isEmpty)
  }

  @Test func `too many filters and subscriptions are refused`() throws {
    var rules = RelayRules.withoutGroups
    rules.limits.filtersMax = 2
    rules.limits.subscriptionsMax = 2
    var bench = try bench(rules, notes: [])
    let id = bench.connect()
    #expect(bench.ask(Filter(), Filter(), on: id).refusal == nil)
    #expect(bench.ask(Filter(), Filter(), Filter(), on: id).refusal == "invalid: too many filters")
    for name in ["a", "b", "b", "c"] { bench.say(.req(Text(name), [Filter()]), on: id) }
    #expect(bench.take(id).last == .closed("c", "error: too many subscriptions"))
    bench.say(.close("a"), on: id)
    bench.say(.req("c", [Filter()]), on: id)
    #expect(bench.take(id).last == .eose("c", hints: ["finish"]))
  }

  @Test(arguments: [true, false])
  func `an id that was closed is dead where the rule says so`(isDead: Bool) throws {
    var rules = RelayRules.withoutGroups
    rules.reading.closedIDsAreDead = isDead
    var bench = try bench(rules, notes: notes)
    let id = bench.connect()
    bench.say(.req("s", [Filter(limit: 1)]), on: id)
    bench.say(.close("s"), on: id)
    _ = bench.take(id)
    bench.say(.req("s", [Filter(limit: 1)]), on: id)
    #expect(bench.take(id).isEmpty == isDead)
  }

  @Test func `the end of stored events can be missing, late, early or double`() throws {
    var bench = try bench(notes: notes)
    let id = bench.connect()
    func ends(_ messages: [RelayMessage]) -> [Int] {
      messages.indices.filter { if case .eose = messages[$0] { true } else { false } }
    }
    bench.machine.rules.answers.endOfStored = .never
    bench.say(.req("a", [Filter(limit: 2)]), on: id)
    #expect(ends(bench.take(id)) == [])
    bench.machine.rules.answers.endOfStored = .twice
    bench.say(.req("b", [Filter(limit: 2)]), on: id)
    #expect(ends(bench.take(id)) == [2, 3])
    bench.machine.rules.answers.endOfStored = .early
    bench.say(.req("c", [Filter(limit: 2)]), on: id)
    #expect(ends(bench.take(id)) == [0])
    bench.machine.rules.answers.endOfStored = .late(.seconds(9))
    bench.say(.req("d", [Filter(limit: 2)]), on: id)
    #expect(ends(bench.take(id)) == [])
    #expect(bench.machine.nextDeadline == bench.uptime + .seconds(9))
    bench.pass(.seconds(9))
    #expect(ends(bench.take(id)) == [0])
  }

  @Test func `a lying relay is recognised by what it sends`() throws {
    var bench = try bench(notes: notes)
    let id = bench.connect()
    #expect(bench.ask(Filter(kinds: [1]), on: id).events.count == 40)
    bench.machine.rules.answers.lies = [.unasked, .swappedContent, .foreignSubscription]
    bench.say(.req("s", [Filter(kinds: [1])]), on: id)
    let messages = bench.take(id)
    guard case .event("never-opened", _)? = messages.first else {
      Issue.record("the first lie is an event for a subscription that nobody opened")
      return
    }
    let events = messages.compactMap { if case .event("s", let event) = $0 { event } else { nil } }
    #expect(events.contains { $0.kind != 1 })
    #expect(events.contains { $0.content == "swapped by the relay" })
  }

  @Test func `expired events are not served`() throws {
    var bench = try bench(
      notes: [
        Bench.event(by: "ann", 1, [["expiration", "\(Bench.start + 10)"]]),
        Bench.event(by: "ann", 1, [["expiration", "\(Bench.start + 1000)"]]),
      ])
    let id = bench.connect()
    #expect(bench.ask(Filter(kinds: [1]), on: id).events.count == 2)
    bench.now = Bench.start + 10
    #expect(bench.ask(Filter(kinds: [1]), on: id).events.count == 1)
  }
}
