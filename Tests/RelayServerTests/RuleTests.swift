import Nostr
import NostrCrypto
import RelayServer
import SyncCore
import Testing

/// Rules that belong to no one preset, each with its opposite.
@Suite struct RuleTests {
  private let d = UInt8(ascii: "d")
  private let p = UInt8(ascii: "p")

  private func open(_ change: (inout RelayRules) -> Void = { _ in }) -> Bench {
    var rules = RelayRules.withoutGroups
    change(&rules)
    return Bench(rules)
  }

  private func strict(_ change: (inout RelayRules) -> Void = { _ in }) -> Bench {
    var rules = RelayRules.strict
    change(&rules)
    return Bench(rules)
  }

  // MARK: Writing

  @Test(arguments: [true, false])
  func `a deletion of several targets is refused where the rule says so`(needsOne: Bool) {
    var bench = open { $0.writing.needsOneDeletionTarget = needsOne }
    let id = bench.connect()
    let target = ["e", Bench.event(by: "ann", 1).id.hex]
    let address = ["a", "30078:\(Bench.hex("ann")):x"]
    #expect(bench.publish(Bench.event(by: "ann", 5, [target]), on: id)?.accepted == true)
    #expect(bench.publish(Bench.event(by: "ann", 5, [address]), on: id)?.accepted == true)
    for (tags, count) in [
      ([target, target], "(got e=2, a=0)"), ([target, address], "(got e=1, a=1)"),
      ([], "(got e=0, a=0)"),
    ] {
      let verdict = bench.publish(Bench.event(by: "ann", 5, tags, "several"), on: id)
      let text =
        "invalid: deletion events must reference exactly one target via e or a tag \(count)"
      #expect(verdict?.accepted == !needsOne && verdict?.text == (needsOne ? text : ""))
    }
  }

  @Test(
    arguments: [
      (WritingRules.Duplicates.accepted, true, "duplicate: already have this event"),
      (.acceptedInSilence, true, ""), (.refused, false, "duplicate: already have this event"),
    ])
  func `an event that is held is answered in the way of the rule`(
    rule: WritingRules.Duplicates, isAccepted: Bool, text: String
  ) {
    var bench = open { $0.writing.duplicates = rule }
    let id = bench.connect()
    let event = Bench.event(by: "ann", 1)
    #expect(bench.publish(event, on: id)?.text == "")
    let again = bench.publish(event, on: id)
    #expect(again?.accepted == isAccepted && again?.text == text)
    #expect(bench.kept == [event])
  }

  @Test(arguments: [true, false])
  func `ephemeral events are served from a store only where the rule says so`(stores: Bool) {
    var bench = open { $0.writing.storesEphemeralEvents = stores }
    let id = bench.connect()
    let typing = Bench.event(by: "ann", 20002)
    #expect(bench.publish(typing, on: id)?.accepted == true)
    #expect(bench.ask(Filter(kinds: [20002]), on: id).ids == (stores ? [typing.id] : []))
  }

  @Test(arguments: [true, false])
  func `a newer version takes its slot unless the rule is off`(replaces: Bool) throws {
    var bench = open { $0.writing.replacesVersions = replaces }
    let id = bench.connect()
    func version(_ second: Int64) -> Event {
      Bench.event(by: "ann", 30078, [["d", "read"]], "\(second)", at: Bench.start + second)
    }
    let versions = [2, 3, 1].map { version($0) }
    for event in versions { #expect(bench.publish(event, on: id)?.accepted == true) }
    let filter = Filter(kinds: [30078], tags: [d: ["read"]])
    let all = [version(3).id, version(2).id, version(1).id]
    #expect(bench.ask(filter, on: id).ids == (replaces ? [version(3).id] : all))
    try bench.machine.restart { _ in true }
    let other = bench.connect()
    #expect(bench.ask(filter, on: other).ids == (replaces ? [version(3).id] : all))
    let address = ["a", "30078:\(Bench.hex("ann")):read"]
    _ = bench.publish(Bench.event(by: "ann", 5, [address], at: Bench.start + 2), on: other)
    #expect(bench.ask(filter, on: other).ids == [version(3).id])
  }

  @Test(arguments: [9, 7, 9005, 40003, 40002, 20002, 9000, 9001, 9002] as [EventKind])
  func `a strict relay takes such a kind only with h`(kind: EventKind) {
    var bench = strict()
    let id = bench.connect(as: "ann")
    let bare = Bench.event(by: "ann", kind, [["e", Bench.event(by: "ann", 1).id.hex]])
    #expect(bench.publish(bare, on: id)?.text == "invalid: missing h tag")
    bench.machine.rules.groups.kindsNeedingGroup = []
    #expect(bench.publish(bare, on: id)?.accepted == true)
  }

  // MARK: Reading

  @Test(arguments: [true, false])
  func `an until of nothing is no bound where the rule says so`(isNone: Bool) throws {
    var bench = open { $0.reading.readsZeroUntilAsNone = isNone }
    try bench.machine.load([Bench.event(by: "ann", 1)])
    let id = bench.connect()
    #expect(bench.ask(Filter(until: 0), on: id).events.count == (isNone ? 1 : 0))
    #expect(bench.ask(Filter(until: 1), on: id).events.isEmpty)
  }

  @Test(arguments: [true, false])
  func `a keyset cursor goes on inside a second where it is served`(serves: Bool) throws {
    var bench = open {
      $0.reading.servesKeysetCursor = serves
      $0.reading.refusesUnknownKeys = false
      $0.reading.pageMax = 5
    }
    let notes = (0..<12).map { Bench.event(by: "ann", 1, [], "\($0)") }.sorted { $0.id < $1.id }
    let older = Bench.event(by: "ann", 1, [], "older", at: Bench.start - 1)
    try bench.machine.load(notes + [older])
    let id = bench.connect()
    let first = bench.ask(Filter(kinds: [1]), on: id).ids
    #expect(first == notes.prefix(5).map(\.id))
    func page(after last: EventID) -> [EventID] {
      bench.say(
        #"["REQ","k",{"kinds":[1],"until":\#(Bench.start),"before_id":"\#(last.hex)"}]"#, on: id)
      return bench.takeEvents(id).map(\.id)
    }
    #expect(page(after: first[4]) == (serves ? notes[5..<10].map(\.id) : first))
    #expect(page(after: notes[9].id).last == (serves ? older.id : first.last))
    let document = String(decoding: bench.machine.document, as: UTF8.self)
    #expect(document.contains("\"supported_extensions\":[\"before_id\"]") == serves)
  }

  @Test(arguments: [true, false])
  func `a filter with a key that is not known is refused by its name unless the rule is off`(
    refuses: Bool
  ) throws {
    var bench = open {
      $0.reading.refusesUnknownKeys = refuses
      $0.reading.reconciliation = .served(itemsMax: 10)
    }
    try bench.machine.load([Bench.event(by: "ann", 1)])
    let id = bench.connect()
    func answer(_ text: String) -> RelayMessage? {
      _ = bench.take(id)
      bench.say(text, on: id)
      return bench.take(id).last
    }
    let why: Text = "unsupported: filter contains unknown elements: kind"
    #expect(
      answer(#"["REQ","a",{"kinds":[1]},{"kind":[2]}]"#)
        == (refuses ? .closed("a", why) : .eose("a", hints: ["finish"])))
    #expect(
      answer(#"["COUNT","b",{"kind":[2]}]"#)
        == (refuses ? .closed("b", why) : .count("b", 1, approximate: false)))
    let opening = answer(#"["NEG-OPEN","c",{"kind":[2]},"6100000000"]"#)
    #expect((opening == .negError("c", why, recordsMax: nil)) == refuses)
    #expect(
      answer(##"["REQ","d",{"kinds":[1],"#t":["x"],"since":1,"limit":1}]"##)
        == .eose("d", hints: ["finish"]))
  }

  @Test(arguments: [true, false])
  func `a cursor is a key that is known where it is served`(serves: Bool) {
    var bench = open { $0.reading.servesKeysetCursor = serves }
    let id = bench.connect()
    _ = bench.take(id)
    let last = String(repeating: "a", count: 64)
    bench.say(#"["REQ","k",{"kinds":[1],"until":9,"before_id":"\#(last)"}]"#, on: id)
    let why: Text = "unsupported: filter contains unknown elements: before_id"
    #expect(
      bench.take(id).last == (serves ? .eose("k", hints: ["finish"]) : .closed("k", why)))
  }

  @Test(arguments: [10_000, nil])
  func `a page is cut at the relay's own size, whatever its document says`(told: Int?) throws {
    var bench = open {
      $0.reading.pageMax = 3
      $0.limits.advertisedPageMax = told
    }
    try bench.machine.load((0..<5).map { Bench.event(by: "ann", 1, [], "\($0)") })
    #expect(bench.ask(Filter(kinds: [1], limit: 5), on: bench.connect()).events.count == 3)
    let document = String(decoding: bench.machine.document, as: UTF8.self)
    #expect(document.contains("\"max_limit\":\(told ?? 3)"))
  }

  @Test(arguments: [PageOrder.newestFirst, .oldestFirst])
  func `notices of membership come back in the order of the history`(order: PageOrder) {
    var bench = strict { $0.reading.order = order }
    bench.found("g", by: "ann")
    let ann = bench.connect(as: "ann")
    let bob = Bench.hex("bob")
    for (kind, second) in [(9000, 1), (9001, 2), (9000, 3)] as [(EventKind, Int64)] {
      bench.now = Bench.start + second
      let change = Bench.event(by: "ann", kind, [["h", "g"], ["p", bob]], at: bench.now)
      #expect(bench.publish(change, on: ann)?.accepted == true)
    }
    let notices = bench.ask(
      Filter(kinds: [44100, 44101], tags: [p: [Text(bob)]]), on: bench.connect(as: "bob")
    ).events
    #expect(notices.map(\.kind) == [44100, 44101, 44100])
    let times = notices.map(\.createdAt)
    #expect(times == (order == .newestFirst ? times.sorted(by: >) : times.sorted()))
    #expect(Set(times).count == 3)
  }

  @Test(arguments: [true, false])
  func `since is heard unless the rule is off`(ignores: Bool) throws {
    var bench = open { $0.reading.ignoresSince = ignores }
    try bench.machine.load([Bench.event(by: "ann", 1)])
    let answer = bench.ask(Filter(since: Bench.start + 1), on: bench.connect())
    #expect(answer.events.count == (ignores ? 1 : 0))
  }

  @Test(arguments: [true, false])
  func `a filter without kinds is answered with nothing where the rule says so`(
    ignores: Bool
  ) throws {
    var bench = open { $0.reading.ignoresKindlessFilters = ignores }
    let note = Bench.event(by: "ann", 1)
    try bench.machine.load([note])
    let id = bench.connect()
    #expect(bench.ask(Filter(since: 1), on: id).ids == (ignores ? [] : [note.id]))
    #expect(bench.ask(Filter(kinds: [1]), on: id).ids == [note.id])
    #expect(bench.ask(Filter(ids: [note.id]), on: id).ids == [note.id])
  }

  @Test(arguments: [true, false])
  func `reading needs authentication where the rule says so`(isNeeded: Bool) {
    var bench = open {
      $0.authentication.challenges = true
      $0.authentication.isNeededToRead = isNeeded
    }
    let id = bench.connect()
    let text = "auth-required: we only serve authenticated users"
    #expect(bench.ask(Filter(kinds: [1]), on: id).refusal == (isNeeded ? text : nil))
    _ = bench.authenticate(id, as: "ann")
    #expect(bench.ask(Filter(kinds: [1]), on: id).refusal == nil)
  }

  // MARK: Groups

  @Test(arguments: [true, false])
  func `a relay without groups takes h for a tag like any other`(areManaged: Bool) {
    var bench = strict { $0.groups.areManaged = areManaged }
    let ann = bench.connect(as: "ann")
    let message = Bench.event(by: "ann", 9, [["h", "nowhere"]])
    #expect(bench.publish(message, on: ann)?.text == (areManaged ? "invalid: no such group" : ""))
    _ = bench.publish(Bench.event(by: "ann", 9007, [["h", "g"]]), on: ann)
    #expect(bench.kept.contains { $0.kind == 39000 } == areManaged)
  }

  @Test(arguments: [true, false])
  func `roles are listed where the rule says so`(lists: Bool) {
    var bench = strict { $0.groups.announcesRoles = lists }
    bench.found("g", by: "ann")
    #expect(bench.kept.contains { $0.kind == 39003 } == lists)
  }

  @Test(arguments: [true, false])
  func `making, joining and leaving are announced where the rule says so`(announces: Bool) {
    var bench = strict { $0.groups.announcesMembership = announces }
    bench.found("g", by: "ann")
    let bob = bench.connect(as: "bob")
    for kind: EventKind in [9021, 9022] {
      let change = Bench.event(by: "bob", kind, [["h", "g"]])
      #expect(bench.publish(change, on: bob)?.accepted == true)
    }
    let notices = bench.kept.filter { $0.kind == 44100 || $0.kind == 44101 }
    let told = notices.map { ($0.kind, $0.tags.firstValue("p")?.string) }
    let expected: [(EventKind, String?)] = [
      (44100, Bench.hex("ann")), (44100, Bench.hex("bob")), (44101, Bench.hex("bob")),
    ]
    #expect(told.elementsEqual(announces ? expected : [], by: ==))
    #expect(notices.allSatisfy { $0.pubkey == Bench.relayKey.publicKey && $0.group == "g" })
    #expect(bench.kept.count { $0.kind == 39002 } == 3)
  }

  @Test(arguments: [true, false])
  func `lost access is told unless the rule is off, and ends the subscription either way`(
    announces: Bool
  ) {
    var bench = strict { $0.groups.announcesRevokedAccess = announces }
    bench.found("g", by: "ann", [["private"]], members: ["bob"])
    let bob = bench.connect(as: "bob")
    bench.say(.req("live", [.group("g", kinds: [9])]), on: bob)
    _ = bench.take(bob)
    let ann = bench.connect(as: "ann")
    let removal = Bench.event(by: "ann", 9001, [["h", "g"], ["p", Bench.hex("bob")]])
    #expect(bench.publish(removal, on: ann)?.accepted == true)
    let closed = RelayMessage.closed("live", "restricted: channel access revoked")
    #expect(bench.take(bob) == (announces ? [closed] : []))
    #expect(bench.publish(Bench.event(by: "ann", 9, [["h", "g"]]), on: ann)?.accepted == true)
    #expect(bench.take(bob).isEmpty)
  }

  @Test(arguments: AnswerRules.Wording.allCases)
  func `the same refusals are said in the words of the rule`(wording: AnswerRules.Wording) {
    var bench = strict { $0.answers.wording = wording }
    bench.found("g", by: "ann", [["private"]])
    let ann = bench.connect(as: "ann")
    let eve = bench.connect(as: "eve")
    func refusal(_ name: String, _ kind: EventKind, _ tags: [[String]]) -> String? {
      let verdict = bench.publish(
        Bench.event(by: name, kind, tags), on: name == "ann" ? ann : eve)
      return verdict.flatMap { $0.accepted ? nil : $0.text }
    }
    let said = [
      refusal("ann", 9, []), refusal("ann", 9007, [["h", "g"]]), refusal("eve", 9, [["h", "g"]]),
      refusal("ann", 39000, [["d", "g"]]), refusal("ann", 44100, [["p", Bench.hex("ann")]]),
      refusal("eve", 9021, [["h", "g"]]),
    ]
    let plain = [
      "invalid: missing h tag", "duplicate: that group already exists",
      "restricted: you are not a member of that group",
      "invalid: kind 39000 is signed by the relay", "invalid: kind 44100 is signed by the relay",
      nil,
    ]
    let buzz = [
      "invalid: channel-scoped events must include an h tag", "duplicate: channel already exists",
      "restricted: not a channel member", "restricted: relay-only kind",
      "invalid: membership notifications are relay-signed only", "restricted: channel is private",
    ]
    #expect(said == (wording == .buzz ? buzz : plain))
  }

  // MARK: Limits

  @Test(arguments: [64, 65])
  func `without a rule an id is as long as NIP-01 allows`(count: Int) {
    var bench = open { _ in }
    let id = bench.connect()
    let name = Text(String(repeating: "a", count: count))
    bench.say(.req(name, [Filter(kinds: [1])]), on: id)
    let refusal = RelayMessage.closed(name, "invalid: subscription id too long")
    #expect((bench.take(id) == [refusal]) == (count > 64))
  }

  @Test(arguments: [4, 5])
  func `an id longer than the rule allows is refused`(bytesMax: Int) {
    var bench = open { $0.limits.subscriptionIDBytesMax = bytesMax }
    let id = bench.connect()
    bench.say(.req("12345", [Filter(kinds: [1])]), on: id)
    let refusal = RelayMessage.closed("12345", "invalid: subscription id too long")
    #expect((bench.take(id) == [refusal]) == (bytesMax < 5))
  }

  @Test(arguments: [1, 2])
  func `one session more than the rule allows is refused`(sessionsMax: Int) {
    var bench = open {
      $0.limits.reconciliationsMax = sessionsMax
      $0.reading.reconciliation = .served(itemsMax: 10)
    }
    let id = bench.connect()
    let client = NegentropyMachine(set: NegentropySet([]), isClient: true, frameBytesMax: nil)
    for name in ["a", "b"] {
      bench.say(.negOpen(Text(name), Filter(), client.opening()), on: id)
    }
    let refusal = RelayMessage.negError("b", "blocked: too many sessions", recordsMax: nil)
    #expect((bench.take(id).last == refusal) == (sessionsMax < 2))
  }

  @Test(arguments: RateBudget.Wording.allCases)
  func `a spent budget is told in the words of the rule`(wording: RateBudget.Wording) {
    var budget = RateBudget(framesMax: 1, window: .seconds(5))
    budget.wording = wording
    var bench = strict { $0.limits.budget = budget }
    let id = bench.connect(as: "ann")
    #expect(bench.ask(Filter(kinds: [9]), on: id).refusal == nil)
    bench.pass(.seconds(2))
    let text =
      switch wording {
      case .quotaExceeded: "rate-limited: quota exceeded; retry in 3s"
      case .admissionUnavailable: "rate-limited: shared admission unavailable"
      case .tooManyRequests: "rate-limited: too many concurrent requests"
      }
    #expect(bench.ask(Filter(kinds: [9]), on: id).refusal == text)
    #expect(bench.publish(Bench.event(by: "ann", 0, [], "{}"), on: id)?.text == text)
    bench.pass(.seconds(3))
    #expect(bench.ask(Filter(kinds: [9]), on: id).refusal == nil)
  }
}
