import Nostr
import SyncCore
import Testing

@Suite struct BackoffTests {
  @Test func `delays double up to the cap, with full jitter`() {
    #expect(Backoff.delay(attempt: 1, fraction: 0.5) == .milliseconds(500))
    #expect(Backoff.delay(attempt: 3, fraction: 0.5) == .seconds(2))
    #expect(Backoff.delay(attempt: 40, fraction: 0.5) == .seconds(15))
    #expect(Backoff.delay(attempt: 9, fraction: 0) == .zero)
  }

  @Test func `a connection that drops early does not reset the count`() {
    var backoff = Backoff()
    var now: Duration = .zero
    for _ in 0..<6 {
      backoff.opened(at: now)
      now += .seconds(1)
      now += backoff.failed(at: now, fraction: 0.99)
    }
    #expect(backoff.failures == 6)
  }

  @Test func `a minute of stable connection resets the count`() {
    var backoff = Backoff()
    for _ in 0..<6 { _ = backoff.failed(at: .zero, fraction: 0.5) }
    backoff.opened(at: .seconds(100))
    _ = backoff.failed(at: .seconds(160), fraction: 0.5)
    #expect(backoff.failures == 1)
  }

  @Test(arguments: Seeds.kept)
  func `accept then drop makes at most thirty attempts in ten minutes`(seed: UInt64) {
    let random = SeededRandom(seed)
    var backoff = Backoff()
    var now: Duration = .zero
    var attempts = 0
    while now < .seconds(600) {
      attempts += 1
      backoff.opened(at: now)
      now += .seconds(1)
      let wait = backoff.failed(at: now, fraction: random.fraction())
      #expect(wait <= Backoff.cap)
      now += wait
    }
    #expect(attempts <= 30, "seed \(seed)")
  }

  @Test(arguments: Seeds.kept)
  func `those who lost a relay together never fall into step`(seed: UInt64) {
    let randoms = [SeededRandom(seed), SeededRandom(seed + 1)]
    var backoffs = [Backoff(), Backoff()]
    var times: [Duration] = [.zero, .zero]
    var inStep = 0
    for _ in 0..<40 {
      for index in 0..<2 {
        times[index] += backoffs[index].failed(
          at: times[index], fraction: randoms[index].fraction())
      }
      let distance = max(times[0], times[1]) - min(times[0], times[1])
      inStep += distance < .milliseconds(100) ? 1 : 0
    }
    #expect(inStep < 10, "seed \(seed)")
  }

  @Test func `two clients do not come back at the same times`() {
    var first = Backoff()
    var second = Backoff()
    let (one, other) = (SeededRandom(1), SeededRandom(2))
    let waits = (0..<5).map { _ in
      (
        first.failed(at: .zero, fraction: one.fraction()),
        second.failed(at: .zero, fraction: other.fraction())
      )
    }
    #expect(waits.allSatisfy { $0.0 != $0.1 })
  }
}

@Suite struct FrameBudgetTests {
  @Test func `backfill leaves room for what the user writes`() {
    var budget = FrameBudget(at: .zero)
    var sent = 0
    while budget.take(.backfill, at: .zero) == nil { sent += 1 }
    #expect(sent > 0)
    #expect(budget.take(.userEvent, at: .zero) == nil)
    #expect(budget.take(.auth, at: .zero) == nil)
  }

  @Test func `a burst of live requests stays under ten a second`() {
    var budget = FrameBudget(at: .zero)
    var now: Duration = .zero
    var sent = 0
    while now < .seconds(5) {
      if let later = budget.take(.liveRequest, at: now) { now = later } else { sent += 1 }
    }
    #expect(sent <= 50 && sent >= 35)
  }

  @Test func `a pause is only ever made longer`() {
    var budget = FrameBudget(at: .zero)
    budget.refused(retryAfter: .seconds(20), at: .zero)
    budget.refused(retryAfter: .seconds(5), at: .seconds(1))
    #expect(budget.pausedUntil == .seconds(20))
    #expect(budget.take(.userEvent, at: .seconds(19)) == .seconds(20))
    budget.refused(retryAfter: .seconds(40), at: .seconds(2))
    #expect(budget.pausedUntil == .seconds(42))
    #expect(budget.take(.userEvent, at: .seconds(42)) == nil)
  }

  /// A relay that answers each request of backfill after a while; the frames of each second.
  private func paged(
    _ budget: inout FrameBudget, answerAfter: Duration, seconds: Int
  ) -> [Int] {
    var now: Duration = .zero
    var sent = [Int](repeating: 0, count: seconds)
    while now < .seconds(seconds) {
      if let later = budget.take(.backfill, at: now) {
        now = later
        continue
      }
      sent[Int(now.inSeconds)] += 1
      now += answerAfter
      budget.answered(at: now)
    }
    return sent
  }

  @Test func `a new connection gets ten frames in its first second, however fast it answers`() {
    var budget = FrameBudget(at: .zero)
    let sent = paged(&budget, answerAfter: .milliseconds(1), seconds: 1)
    #expect(sent[0] >= 7 && budget.rate == FrameBudget.rateAtFirst)
    var written = 0
    while budget.take(.userEvent, at: .milliseconds(999)) == nil { written += 1 }
    #expect(written >= 1 && sent[0] + written <= 10)
  }

  @Test func `no second sees more than ten frames of a relay that never answered`() {
    var budget = FrameBudget(at: .zero)
    var sent: [Duration] = []
    var now: Duration = .zero
    while now < .seconds(20) {
      let priority: FrameBudget.Priority = sent.count % 7 == 3 ? .userEvent : .liveRequest
      if let later = budget.take(priority, at: now) {
        // Now and then the client has nothing to say for a while.
        now = sent.count % 11 == 0 ? later + .milliseconds(900) : later
      } else {
        sent.append(now)
      }
    }
    #expect(sent.count > 80)
    for (index, start) in sent.enumerated() {
      let inSecond = sent[index...].prefix { $0 <= start + .seconds(1) }
      #expect(inSecond.count <= 10)
    }
  }

  @Test func `where nothing is written a relay's own answers set the pace from the start`() {
    var budget = FrameBudget(at: .zero, patience: .zero)
    #expect(paged(&budget, answerAfter: .milliseconds(20), seconds: 1)[0] >= 45)
  }

  @Test func `several requests at once are as many as the answers allow`() {
    var budget = FrameBudget(at: .zero, patience: .zero)
    var sent = 0
    var rounds = 0
    while rounds < 6 {
      let before = sent
      while budget.take(.backfill, at: .milliseconds(rounds * 10)) == nil { sent += 1 }
      rounds += 1
      for _ in before..<sent { budget.answered(at: .milliseconds(rounds * 10)) }
    }
    #expect(sent >= 12 && sent <= 64)
  }

  @Test func `an answer allows no more where the relay has complained, until long after`() {
    var budget = FrameBudget(at: .zero, patience: .zero)
    _ = paged(&budget, answerAfter: .milliseconds(20), seconds: 1)
    budget.refused(retryAfter: .seconds(1), at: .seconds(1))
    let ceiling = budget.rate
    #expect(ceiling <= 25)
    var now: Duration = .seconds(3)
    while now < .seconds(120) {
      while let later = budget.take(.backfill, at: now) { now = later }
      budget.answered(at: now)
      if now < .seconds(60) { #expect(budget.rate <= ceiling) }
    }
    #expect(budget.rate > ceiling && budget.rate <= ceiling * 1.6)
  }

  @Test func `a refusal teaches what was really sent, not what would have been allowed`() {
    var budget = FrameBudget(at: .zero, rate: 1024)
    for frame in 0..<10 {
      #expect(budget.take(.backfill, at: .milliseconds(frame * 90)) == nil)
    }
    budget.refused(retryAfter: .seconds(1), at: .milliseconds(900))
    #expect(budget.rate == 5)
  }

  @Test func `the rate grows while backfill is answered and never past a refusal`() {
    var budget = FrameBudget(at: .zero)
    var now: Duration = .zero
    for _ in 0..<200 {
      while let later = budget.take(.backfill, at: now) { now = later }
      budget.answered(at: now)
    }
    let grown = budget.rate
    #expect(grown > 30)
    budget.refused(retryAfter: .seconds(1), at: now)
    now += .seconds(2)
    for _ in 0..<200 {
      while let later = budget.take(.backfill, at: now) { now = later }
      budget.answered(at: now)
    }
    #expect(budget.rate <= grown / 2)
  }
}

@Suite struct WakeWatchTests {
  @Test func `a sleep shows where the wall clock ran on alone`() {
    var watch = WakeWatch(uptime: .zero, wall: 1000)
    // A clock that is set back, or stepped a little, is no sleep.
    let samples: [(Int, Timestamp)] = [(5, 1005), (6, 4600), (7, 4601), (8, 100), (9, 106)]
    let slept = samples.map { watch.hasSlept(uptime: .seconds($0.0), wall: $0.1) }
    #expect(slept == [false, true, false, false, false])
  }
}

@Suite struct FeedWatchTests {
  private static let filter = Filter.group("g", kinds: [9])

  private func watch(liveAt: Timestamp = 1000) -> FeedWatch {
    var watch = FeedWatch()
    watch.want("group:g", [Self.filter])
    watch.changed("group:g", .live, at: liveAt)
    return watch
  }

  @Test func `what a live feed should have brought long ago proves it deaf`() {
    var watch = watch()
    #expect(!watch.isDeaf(at: 2000))
    #expect(watch.found([ConnectionBench.event(1, at: 1500)], at: 2000) == ["group:g"])
    #expect(watch.isDeaf(at: 2000) && !watch.isDeaf(at: 2000 + FeedWatch.memory))
  }

  @Test(arguments: [
    (at: 1030, now: 2000), (at: 500, now: 2000), (at: 1980, now: 2000), (at: 99_999, now: 2000),
  ])
  func `what may be older than the feed, on its way, or misdated proves nothing`(
    at: Int, now: Int
  ) {
    var watch = watch()
    let event = ConnectionBench.event(1, at: Timestamp(Int64(at)))
    #expect(watch.found([event], at: Timestamp(Int64(now))).isEmpty)
  }

  @Test func `a feed that is not live, or wants something else, is not to blame`() {
    var watch = watch()
    let other = ConnectionBench.event(1, at: 1500, group: "other")
    #expect(watch.found([other, ConnectionBench.event(2, kind: 7, at: 1500)], at: 2000).isEmpty)
    watch.changed("group:g", .parked, at: 1100)
    #expect(watch.found([ConnectionBench.event(1, at: 1500)], at: 2000).isEmpty)
    watch.changed("group:g", .live, at: 1600)
    #expect(watch.found([ConnectionBench.event(1, at: 1500)], at: 2000).isEmpty)
    #expect(watch.found([ConnectionBench.event(1, at: 1700)], at: 2000) == ["group:g"])
  }
}

extension FeedWatchTests {
  @Test func `news from a refused group, and nothing else, is a reason to ask again`() {
    var watch = FeedWatch()
    for name in ["group:g", "group:other"] as [Text] {
      watch.want(name, [Filter(kinds: [9])])
      watch.changed(name, .refused("restricted: no"), at: 1000)
    }
    let added = ConnectionBench.event(1, kind: .memberAdded)
    #expect(watch.readmitted(by: [added]) == ["group:g"])
    #expect(watch.readmitted(by: [ConnectionBench.event(2, kind: .memberRemoved)]).isEmpty)
    watch.changed("group:g", .wanted, at: 1001)
    #expect(watch.readmitted(by: [added]).isEmpty)
  }
}

@Suite struct FeedRotationTests {
  private func feed(
    _ name: Text, confirmed: Int? = nil, heard: Int? = nil, parked: Int? = nil,
    isPinned: Bool = false
  ) -> FeedRotation.Feed {
    var feed = FeedRotation.Feed(name)
    feed.confirmedAt = confirmed.map { .seconds($0) }
    feed.heardAt = heard.map { .seconds($0) }
    feed.parkedAt = parked.map { .seconds($0) }
    feed.isPinned = isPinned
    return feed
  }

  @Test func `the quietest leave, and those that waited longest come`() {
    var rotation = FeedRotation(interval: .seconds(30))
    let feeds = [
      feed("pinned", confirmed: 0, isPinned: true), feed("busy", confirmed: 0, heard: 99),
      feed("quiet", confirmed: 0, heard: 10), feed("new", confirmed: 90),
      feed("late", parked: 50), feed("early", parked: 20),
    ]
    let pairs = rotation.exchange(feeds, rate: 8, at: .seconds(100))
    #expect(pairs.map(\.leaving) == ["quiet"] && pairs.map(\.coming) == ["early"])
    #expect(rotation.due(parkedAt: .seconds(50)) == .seconds(130))
  }

  @Test func `where only pinned feeds have places they take turns as well`() {
    var rotation = FeedRotation(interval: .seconds(30))
    let feeds = [feed("pinned", confirmed: 0, isPinned: true), feed("other", parked: 0)]
    let pairs = rotation.exchange(feeds, rate: 8, at: .seconds(100))
    #expect(pairs.map(\.leaving) == ["pinned"] && pairs.map(\.coming) == ["other"])
  }

  @Test func `a slow relay exchanges fewer at a time, and never none`() {
    let feeds =
      (0..<100).map { feed(Text("live \($0)"), confirmed: 0) }
      + (0..<100).map { feed(Text("parked \($0)"), parked: 0) }
    var rotation = FeedRotation(interval: .seconds(30))
    #expect(rotation.exchange(feeds, rate: 0.5, at: .seconds(60)).count == 1)
    #expect(rotation.exchange(feeds, rate: 8, at: .seconds(60)).count == 6)
    #expect(rotation.exchange(feeds, rate: 2000, at: .seconds(60)).count == 25)
  }
}

@Suite struct FaultLedgerTests {
  @Test func `the first fault is written at once, and a flood of them once an interval`() {
    var ledger = FaultLedger(interval: .seconds(10))
    var faults = PeerFaults()
    #expect(ledger.due(faults) == nil && ledger.take(faults, at: .zero).isEmpty)
    var writes = 0
    var written = 0
    for step in 1...60_000 {
      faults.count(.foreignEvent)
      let now: Duration = .milliseconds(step)
      guard let due = ledger.due(faults), due <= now else { continue }
      writes += 1
      written += ledger.take(faults, at: now).reduce(0) { $0 + $1.count }
    }
    #expect(writes == 6)
    written += ledger.take(faults, at: .seconds(60)).reduce(0) { $0 + $1.count }
    #expect(written == 60_000 && ledger.due(faults) == nil)
  }
}

@Suite struct RefusalClassTests {
  @Test(
    arguments: [
      ("duplicate: already have this event", RefusalClass.duplicate),
      ("blocked: duplicate content", .blocked),
      ("rate-limited: quota exceeded; retry in 7s", .rateLimited(retryAfter: .seconds(7))),
      ("rate-limited", .rateLimited(retryAfter: nil)),
      ("auth-required: we only serve members", .authRequired),
      ("restricted: not a channel member", .restricted),
      ("restricted: you are timed out until 1700000000", .timedOut(until: 1_700_000_000)),
      ("invalid: event timestamp too far from server time", .outsideTimeWindow),
      ("invalid: created_at too late", .outsideTimeWindow),
      ("invalid: missing h tag", .invalid),
      ("pow: 28 bits needed", .pow),
      ("mute: no", .mute),
      ("error: database error", .error),
      ("ERROR: bad req", .error),
      ("not a member", .unknown),
      ("we said: invalid: this", .unknown),
      ("", .unknown),
      ("policy: owner only", .unknown),
    ] as [(Text, RefusalClass)])
  func `the word before the first colon decides`(text: Text, expected: RefusalClass) {
    #expect(RefusalClass(text) == expected)
  }

  @Test func `a closed subscription is dropped, retried, paused or authenticated by class`() {
    #expect(RefusalClass.subscriptionVerdict("restricted: no") == .terminal)
    #expect(RefusalClass.subscriptionVerdict("error: shutting down") == .retry)
    #expect(RefusalClass.subscriptionVerdict("rate-limited: retry in 3s") == .pause(.seconds(3)))
    #expect(RefusalClass.subscriptionVerdict("auth-required: x") == .authenticate)
    #expect(RefusalClass.subscriptionVerdict("error: too many subscriptions") == .crowded)
    #expect(
      RefusalClass.subscriptionVerdict("error: mixed search and non-search filters not supported")
        == .terminal)
  }
}

@Suite struct RelayInformationTests {
  // F35
  @Test func `a document that names a limit of nothing makes no page ask for nothing`() {
    let document = Array(#"{"limitation":{"max_limit":0}}"#.utf8)
    let options = HistoryWalk.Options(
      limits: Limits(), information: RelayInformation(document: document))
    #expect(options.pageLimit == Limits().pageLimit && options.secondLimit > 0)
    let small = Array(#"{"limitation":{"max_limit":7}}"#.utf8)
    let other = HistoryWalk.Options(
      limits: Limits(), information: RelayInformation(document: small))
    #expect(other.pageLimit == 7)
  }

  @Test func `hints are read and wrong types are left out`() throws {
    let document = """
      {"name":"x","software":"https://github.com/block/buzz","supported_nips":[1,42,"29"],
       "self":"\(String(repeating: "ab", count: 32))",
       "limitation":{"auth_required":true,"max_limit":250,"max_subscriptions":"many"}}
      """
    let information = try #require(RelayInformation(document: Array(document.utf8)))
    #expect(information.supportedNIPs == [1, 42])
    #expect(information.limitMax == 250)
    #expect(information.subscriptionsMax == nil)
    #expect(information.authRequired == true)
    #expect(information.selfKey != nil)
    #expect(information.hasKeysetCursor && information.dateWindow == 900)
    #expect(!information.neverChallenges)
  }

  @Test func `something that is not an object is no document`() {
    #expect(RelayInformation(document: Array("[1]".utf8)) == nil)
    #expect(RelayInformation(document: Array("{".utf8)) == nil)
    #expect(RelayInformation(document: Array("{}".utf8)) == RelayInformation())
  }
}

@Suite struct LimitsTests {
  @Test func `a relay that never challenges is asked long before somebody gives up`() {
    var limits = Limits()
    limits.fit(into: .seconds(2))
    #expect(limits.challengeGrace + limits.negotiationProbeMax == .seconds(1))
    limits = Limits()
    limits.fit(into: .seconds(30))
    #expect(limits == Limits())
  }
}

@Suite struct MessageDatesTests {
  private let dates = MessageDates(lead: 300, setBack: 10)

  @Test
  func `what is written in one second is dated one after another, and in time with the clock`() {
    #expect(dates.next(after: nil, at: 1000) == 1000)
    #expect(dates.next(after: 999, at: 1000) == 1000)
    #expect(dates.next(after: 1000, at: 1000) == 1001)
    #expect(dates.next(after: 1299, at: 1000) == 1300)
  }

  @Test
  func `a thousand messages of one moment keep their order and come no further than the lead`() {
    var (now, last): (Timestamp, Timestamp?) = (1000, nil)
    for _ in 0..<1000 {
      var date = dates.next(after: last, at: now)
      while date == nil {
        now = now + 1
        date = dates.next(after: last, at: now)
      }
      #expect(date.map { $0 > last ?? 0 && $0 <= now + 300 } == true)
      last = date
    }
    #expect(now == 1699)
  }

  @Test func `a clock that was set back a little is waited for, and one set back far is followed`()
  {
    #expect(dates.next(after: 1310, at: 1000) == nil)
    #expect(dates.next(after: 1311, at: 1000) == 1000)
  }
}
