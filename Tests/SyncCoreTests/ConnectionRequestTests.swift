import Nostr
import SyncCore
import Testing

@Suite struct ConnectionRequestTests {
  private func ready(_ limits: Limits = Limits()) -> ConnectionBench {
    var bench = ConnectionBench(limits: limits)
    bench.becomeReady()
    return bench
  }

  @Test func `what is wanted before the connection is asked for once it is open`() {
    var bench = ConnectionBench()
    bench.take(.want("a", [Filter(kinds: [9])]))
    bench.becomeReady()
    #expect(bench.takeRequests().count == 1)
  }

  @Test func `every REQ has an id of its own, also after a reconnection`() {
    var bench = ConnectionBench()
    for number in 0..<5 { bench.take(.want(Text("\(number)"), [Filter(kinds: [9])])) }
    var ids: Set<SubscriptionID> = []
    var count = 0
    bench.take(.start)
    for _ in 0..<6 {
      while bench.machine.state.name != "connecting" { bench.pass(.milliseconds(100)) }
      bench.take(.opened)
      bench.pass(.seconds(4))
      for request in bench.takeRequests() {
        ids.insert(request.id)
        count += 1
        #expect(request.filters.count == 1 && request.id.count <= 32)
      }
      bench.take(.ended("gone"))
    }
    #expect(ids.count == count && count >= 25)
  }

  @Test func `confirmed means its own EOSE`() throws {
    var bench = ready()
    bench.take(.want("a", [Filter(kinds: [9])]))
    let request = try #require(bench.takeRequests().first)
    #expect(bench.machine.subscription("a") == .asked)
    bench.take(.received(.eose("other", hints: [])))
    #expect(bench.machine.subscription("a") == .asked)
    bench.take(.received(.eose(request.id, hints: [])))
    #expect(bench.machine.subscription("a") == .live)
  }

  @Test func `a subscription without EOSE is asked again under a new id`() throws {
    var bench = ready()
    bench.take(.want("a", [Filter(kinds: [9])]))
    let first = try #require(bench.takeRequests().first)
    for _ in 0..<5 {
      bench.pass(.seconds(3))
      bench.take(.heard)
    }
    let second = try #require(bench.takeRequests().first)
    #expect(first.id != second.id)
  }

  @Test func `CLOSED for one of five feeds leaves four and never reconnects`() throws {
    var bench = ready()
    for number in 0..<5 { bench.take(.want(Text("\(number)"), [Filter(kinds: [9])])) }
    bench.pass(.seconds(2))
    let requests = bench.takeRequests()
    for request in requests { bench.take(.received(.eose(request.id, hints: []))) }
    bench.take(.received(.closed(requests[2].id, "restricted: not a channel member")))
    let live = (0..<5).filter { bench.machine.subscription(Text("\($0)")) == .live }
    #expect(live.count == 4)
    #expect(
      bench.machine.subscription("2") == .refused("restricted: not a channel member"))
    #expect(bench.opens == 1 && bench.machine.state == .ready)
  }

  @Test
  func `an error that passes is asked again, a refusal is not, until there is news of access`()
    throws
  {
    var bench = ready()
    bench.take(.want("a", [Filter(kinds: [9])]))
    var request = try #require(bench.takeRequests().first)
    bench.take(.received(.closed(request.id, "error: shutting down")))
    bench.pass(.seconds(2))
    request = try #require(bench.takeRequests().first)
    bench.take(.received(.closed(request.id, "restricted: no")))
    bench.pass(.seconds(25))
    bench.take(.want("a", [Filter(kinds: [9])]))
    #expect(bench.takeRequests().isEmpty)
    bench.take(.readmit("a"))
    #expect(bench.takeRequests().count == 1)
  }

  @Test func `a refusal holds on the next connection too`() throws {
    var bench = ready()
    bench.take(.want("a", [Filter(kinds: [9])]))
    let request = try #require(bench.takeRequests().first)
    bench.take(.received(.closed(request.id, "restricted: no")))
    bench.take(.ended("gone"))
    while bench.machine.state.name != "connecting" { bench.pass(.milliseconds(100)) }
    bench.take(.opened)
    bench.pass(.seconds(20))
    #expect(bench.takeRequests().isEmpty)
  }

  @Test func `a rate limit pauses everything and asks again after it`() throws {
    var bench = ready()
    bench.take(.ask(AskID(1), ConnectionBench.request()))
    let request = try #require(bench.takeRequests().first)
    bench.take(.received(.closed(request.id, "rate-limited: quota exceeded; retry in 7s")))
    bench.take(.ask(AskID(2), ConnectionBench.request()))
    bench.pass(.seconds(6))
    #expect(bench.takeRequests().isEmpty)
    bench.pass(.seconds(8))
    #expect(bench.takeRequests().count == 2)
    #expect(bench.takeEffects().contains(.restarted(AskID(1))))
  }

  @Test func `a page ends with its own EOSE and carries the hint`() throws {
    var bench = ready()
    bench.take(.ask(AskID(1), ConnectionBench.request()))
    let request = try #require(bench.takeRequests().first)
    bench.take(.received(.event(request.id, ConnectionBench.event(1))))
    bench.take(.received(.eose(request.id, hints: ["finish", "zzz"])))
    let effects = bench.takeEffects()
    #expect(effects.contains(.event(.ask(AskID(1)), ConnectionBench.event(1), .inside)))
    #expect(effects.contains(.answered(AskID(1), .complete(.finish))))
    #expect(bench.sent.contains(.close(request.id)))
  }

  @Test func `events that nobody asked for are dropped and counted`() throws {
    var bench = ready()
    let filter = Filter(kinds: [9], since: 500, until: 2000)
    bench.take(.ask(AskID(1), ConnectionBench.request(filter)))
    let request = try #require(bench.takeRequests().first)
    _ = bench.takeEffects()
    bench.take(.received(.event("nobody", ConnectionBench.event(1))))
    bench.take(.received(.event(request.id, ConnectionBench.event(2, kind: 7))))
    #expect(bench.takeEffects().isEmpty)
    bench.take(.received(.event(request.id, ConnectionBench.event(3, at: 3000))))
    bench.take(.received(.event(request.id, ConnectionBench.event(4, at: 1))))
    let fits = bench.takeEffects().compactMap { effect in
      if case .event(_, _, let fit) = effect { fit } else { nil }
    }
    #expect(fits == [.aboveUntil, .belowSince])
    #expect(bench.machine.faults[.unknownSubscription] == 1)
    #expect(bench.machine.faults[.foreignEvent] == 1)
    #expect(bench.machine.faults[.outsideTimes] == 2)
  }

  @Test func `a frame that crossed our CLOSE is dropped and is no lie`() throws {
    var bench = ready()
    bench.take(.ask(AskID(1), ConnectionBench.request()))
    let request = try #require(bench.takeRequests().first)
    bench.take(.received(.eose(request.id, hints: [])))
    _ = bench.takeEffects()
    bench.take(.received(.event(request.id, ConnectionBench.event(1))))
    bench.take(.received(.closed(request.id, "")))
    #expect(bench.takeEffects().isEmpty)
    #expect(bench.machine.faults.total == 0)
    bench.take(.received(.eose("never-opened", hints: [])))
    #expect(bench.machine.faults[.unknownSubscription] == 1)
  }

  @Test func `an EVENT that does not say whose may be of any page that is being read`() throws {
    var bench = ready()
    for number: UInt64 in [1, 2] { bench.take(.ask(AskID(number), ConnectionBench.request())) }
    _ = bench.takeEffects()
    func lacking() -> [ConnectionMachine.Target] {
      bench.takeEffects().compactMap { effect in
        if case .unreadable(let target, _) = effect { target } else { nil }
      }
    }
    bench.take(.malformed(.shape(label: "EVENT", "the subscription id is not a string")))
    #expect(Set(lacking()) == [.ask(AskID(1)), .ask(AskID(2))])
    // What is no EVENT holds no event.
    bench.take(.malformed(.shape(label: "EOSE", "the subscription id is not a string")))
    bench.take(.malformed(.json(offset: 0, "nothing")))
    #expect(lacking().isEmpty)
    #expect(bench.machine.faults[.malformedFrame] == 3)
  }

  @Test func `a malformed frame is counted and nothing more`() {
    var bench = ready()
    bench.take(.malformed(.notAMessage("x")))
    bench.take(.malformed(.unknownLabel("WAT")))
    #expect(bench.machine.faults[.malformedFrame] == 2)
    #expect(bench.machine.state == .ready)
  }

  @Test func `a page that streams slowly is one page, and chatter does not keep a dead one`() throws
  {
    var limits = Limits()
    limits.answerIdleMax = .milliseconds(500)
    var bench = ready(limits)
    bench.take(.ask(AskID(1), ConnectionBench.request()))
    var request = try #require(bench.takeRequests().first)
    for number in 0..<6 {
      bench.pass(.milliseconds(150))
      bench.take(.received(.event(request.id, ConnectionBench.event(number))))
    }
    bench.take(.received(.eose(request.id, hints: [])))
    #expect(bench.takeEffects().contains(.answered(AskID(1), .complete(.none))))
    bench.take(.ask(AskID(2), ConnectionBench.request()))
    request = try #require(bench.takeRequests().first)
    for _ in 0..<6 {
      bench.pass(.milliseconds(100))
      bench.take(.received(.notice("hello")))
    }
    #expect(bench.takeEffects().contains(.answered(AskID(2), .timedOut)))
  }

  @Test func `a NOTICE that can only mean one request ends it, and no other`() throws {
    var bench = ready()
    bench.take(.ask(AskID(1), ConnectionBench.request()))
    let request = try #require(bench.takeRequests().first)
    bench.take(.received(.event(request.id, ConnectionBench.event(1))))
    bench.take(.ask(AskID(2), ConnectionBench.request()))
    let first = try #require(bench.takeRequests().first)
    bench.take(.received(.notice("ERROR: bad req: subscription id too long")))
    bench.pass(.seconds(3))
    // Once more under a shorter id; then it is over.
    let second = try #require(bench.takeRequests().first)
    #expect(second.id.count < first.id.count && second.filters == first.filters)
    bench.take(.received(.notice("ERROR: bad req: subscription id too long")))
    bench.pass(.seconds(3))
    #expect(bench.takeRequests().isEmpty)
    let effects = bench.takeEffects()
    #expect(
      effects.contains(
        .answered(AskID(2), .noticed("ERROR: bad req: subscription id too long"))))
    #expect(!effects.contains { if case .answered(AskID(1), _) = $0 { true } else { false } })
  }

  @Test func `a refusal of AUTH by NOTICE is like one by CLOSED`() throws {
    var bench = ready()
    bench.take(.received(.auth(challenge: "one")))
    bench.take(.ask(AskID(1), ConnectionBench.request()))
    #expect(bench.takeRequests().count == 1)
    bench.take(.received(.notice("auth-required: log in")))
    bench.take(.signed(ConnectionBench.event(9, kind: 22242), challenge: "one"))
    bench.take(
      .received(.ok(ConnectionBench.event(9, kind: 22242).id, accepted: true, "")))
    #expect(bench.takeRequests().count == 1)
  }

  @Test func `feeds above what the relay keeps open are parked and told, not lost`() {
    var limits = Limits()
    limits.rotationInterval = .seconds(3600)
    limits.subscriptionsMax = 20
    var bench = ready(limits)
    for number in 0..<40 { bench.take(.want(Text("\(number)"), [Filter(kinds: [9])])) }
    for _ in 0..<60 {
      bench.pass(.seconds(1))
      bench.take(.heard)
      for request in bench.takeRequests() {
        bench.take(.received(.eose(request.id, hints: [])))
      }
    }
    let states = (0..<40).map { bench.machine.subscription(Text("\($0)")) }
    let live = states.count { $0 == .live }
    #expect(live >= 12 && live < 20)
    #expect(states.count { $0 == .parked } == 40 - live)
    bench.take(.unwant("0"))
    bench.pass(.seconds(1))
    #expect(bench.takeRequests().count == 1)
  }

  /// A relay that keeps 32 subscriptions and tells by NOTICE; `isLate` says it before the answers.
  @Test(arguments: [false, true])
  func `a NOTICE of too many subscriptions teaches how many, and leaves room to ask`(
    isLate: Bool
  ) {
    var bench = ready()
    for number in 0..<43 { bench.take(.want(Text("\(number)"), [Filter(kinds: [9])])) }
    var kept: Set<SubscriptionID> = []
    for _ in 0..<80 {
      bench.pass(.seconds(isLate ? 6 : 1))
      bench.take(.heard)
      let frames = bench.sent
      bench.sent = []
      var answered: [SubscriptionID] = []
      for frame in frames {
        if case .close(let id) = frame { kept.remove(id) }
        guard case .req(let id, _) = frame else { continue }
        if kept.count < 32 {
          kept.insert(id)
          answered.append(id)
        } else {
          bench.take(.received(.notice("rejected: too many subscriptions")))
        }
      }
      for id in answered { bench.take(.received(.eose(id, hints: []))) }
    }
    let states = (0..<43).map { bench.machine.subscription(Text("\($0)")) }
    let live = states.count { $0 == .live }
    #expect(live >= 20 && live <= 28, "\(live)")
    #expect(states.count { $0 == .parked } == 43 - live)
    bench.sent = []
    bench.take(.ask(AskID(1), ConnectionBench.request()))
    #expect(bench.takeRequests().count == 1 && kept.count < 32)
  }

  @Test func `every feed gets its turn where more are wanted than the relay keeps`() {
    var limits = Limits()
    limits.subscriptionsMax = 20
    var bench = ready(limits)
    bench.take(.want("pinned", [Filter(kinds: [0])], isPinned: true))
    for number in 0..<60 { bench.take(.want(Text("\(number)"), [Filter(kinds: [9])])) }
    var open: Set<SubscriptionID> = []
    var wasLive: Set<Text> = []
    var resumed: Set<SubscriptionName> = []
    for _ in 0..<1200 {
      bench.pass(.seconds(1))
      bench.take(.heard)
      for frame in bench.sent {
        if case .close(let id) = frame { open.remove(id) }
        guard case .req(let id, _) = frame else { continue }
        open.insert(id)
        bench.take(.received(.eose(id, hints: [])))
      }
      bench.sent = []
      #expect(open.count <= 20)
      for number in 0..<60 where bench.machine.subscription(Text("\(number)")) == .live {
        wasLive.insert(Text("\(number)"))
      }
      #expect(bench.now < .seconds(40) || bench.machine.subscription("pinned") == .live)
      for case .resumed(let name) in bench.takeEffects() { resumed.insert(name) }
    }
    #expect(wasLive.count == 60)
    #expect(resumed.count >= 45)
  }

  @Test func `a feed that was lost and is live again is to be caught up with`() throws {
    var bench = ready()
    bench.take(.want("a", [Filter(kinds: [9])]))
    var request = try #require(bench.takeRequests().first)
    bench.take(.received(.eose(request.id, hints: [])))
    #expect(!bench.takeEffects().contains(.resumed("a")))
    bench.take(.received(.closed(request.id, "error: shutting down")))
    bench.pass(.seconds(2))
    request = try #require(bench.takeRequests().first)
    bench.take(.received(.eose(request.id, hints: [])))
    #expect(bench.takeEffects().contains(.resumed("a")))
  }

  @Test func `access that came back is a feed to catch up with`() throws {
    var bench = ready()
    bench.take(.want("a", [Filter(kinds: [9])]))
    var request = try #require(bench.takeRequests().first)
    bench.take(.received(.closed(request.id, "restricted: channel access revoked")))
    bench.take(.readmit("a"))
    request = try #require(bench.takeRequests().first)
    bench.take(.received(.eose(request.id, hints: [])))
    #expect(bench.takeEffects().contains(.resumed("a")))
  }

  @Test func `a deaf feed is counted and asked for under a new id`() throws {
    var bench = ready()
    bench.take(.want("a", [Filter(kinds: [9])]))
    let first = try #require(bench.takeRequests().first)
    bench.take(.renew("a"))
    #expect(bench.machine.faults.total == 0)
    bench.take(.received(.eose(first.id, hints: [])))
    bench.take(.renew("a"))
    let second = try #require(bench.takeRequests().first)
    #expect(second.id != first.id && bench.machine.faults[.deafFeed] == 1)
  }

  @Test func `an answer that comes while the frame is being sent is not lost`() throws {
    var bench = ready()
    bench.take(.ask(AskID(1), ConnectionBench.request()))
    // The machine knew the request before its frame could leave.
    guard case .req(let id, _)? = bench.sent.last else {
      Issue.record("no REQ")
      return
    }
    bench.take(.received(.event(id, ConnectionBench.event(1))))
    bench.take(.received(.eose(id, hints: [])))
    #expect(bench.takeEffects().contains(.answered(AskID(1), .complete(.none))))
    #expect(bench.machine.faults.total == 0)
  }

  @Test func `sixty channels and a message at once: the message goes first`() {
    var bench = ConnectionBench()
    for number in 0..<60 { bench.take(.want(Text("\(number)"), [Filter(kinds: [9])])) }
    bench.take(.start)
    bench.take(.opened)
    let event = ConnectionBench.event(1)
    bench.take(.publish(event))
    bench.pass(.seconds(2))
    guard case .event(let first)? = bench.sent.first else {
      Issue.record("the first frame is \(String(describing: bench.sent.first))")
      return
    }
    #expect(first.id == event.id)
    #expect(bench.sent.count <= 10)
  }

  @Test func `an OK without id is the verdict on the one event in flight`() {
    var bench = ready()
    bench.take(.publish(ConnectionBench.event(1)))
    bench.take(.publish(ConnectionBench.event(2)))
    #expect(bench.takeEvents().count == 1)
    bench.take(.received(.ok(nil, accepted: false, "invalid: no")))
    #expect(
      bench.takeEffects().contains(
        .verdict(ConnectionBench.event(1).id, accepted: false, "invalid: no")))
    #expect(bench.takeEvents() == [ConnectionBench.event(2).id])
  }

  @Test func `no OK at all is told as unknown, and a late one still counts`() {
    var bench = ready()
    let event = ConnectionBench.event(1)
    bench.take(.publish(event))
    for _ in 0..<7 {
      bench.pass(.seconds(3))
      bench.take(.heard)
    }
    #expect(
      bench.takeEffects().contains {
        if case .unanswered(event.id, true, _) = $0 { true } else { false }
      })
    bench.take(.received(.ok(event.id, accepted: true, "")))
    #expect(bench.takeEffects().contains(.verdict(event.id, accepted: true, "")))
  }

  @Test func `ten thousand requests leave nothing behind`() {
    var bench = ready()
    for number in 0..<10_000 {
      bench.take(.ask(AskID(UInt64(number)), ConnectionBench.request()))
      bench.pass(.milliseconds(200))
      for request in bench.takeRequests() {
        bench.take(.received(.eose(request.id, hints: [])))
      }
      _ = bench.takeEffects()
    }
    #expect(bench.machine.openCount == 0)
  }
}
