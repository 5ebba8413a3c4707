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
