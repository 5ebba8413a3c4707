import Nostr
import SyncCore
import Testing

@Suite struct OutboxPolicyTests {
  private func connected(isRedating: Bool = true) -> OutboxBench {
    var bench = OutboxBench(isRedating: isRedating)
    bench.take(.connected)
    return bench
  }

  @Test func `what is handed over was recorded as handed over first`() {
    var policy = OutboxPolicy(limits: Limits(), isRedating: true)
    let bench = OutboxBench()
    _ = policy.handle(.connected, at: .zero, wall: 5, using: bench.random)
    let effects = policy.handle(
      .added(bench.item(1, "g", nil, 5)), at: .zero, wall: 7, using: bench.random)
    guard case .record(let delivery) = effects[0], case .publish = effects[1] else {
      Issue.record("\(effects)")
      return
    }
    #expect(delivery.state == .sending && delivery.handedAt == 7 && delivery.attempts == 1)
  }

  @Test func `one group keeps its order and another does not wait for it`() {
    var bench = connected()
    bench.add(1, group: "a")
    bench.add(2, group: "a")
    bench.add(3, group: "b")
    #expect(bench.takePublished() == [1, 3])
    bench.answer(1, true)
    #expect(bench.takePublished() == [2])
  }

  @Test func `a wait that is over rings no alarm while something else is in the way`() {
    var policy = OutboxPolicy(limits: Limits(), isRedating: true)
    let bench = OutboxBench()
    _ = policy.handle(.connected, at: .zero, wall: 5, using: bench.random)
    _ = policy.handle(.added(bench.item(1, "g", nil, 5)), at: .zero, wall: 5, using: bench.random)
    var delivery = bench.item(2, "g", nil, 5).delivery
    delivery.nextAttemptAt = 8
    _ = policy.handle(
      .added(OutboxPolicy.Item(delivery: delivery, createdAt: 5)), at: .zero, wall: 5,
      using: bench.random)
    #expect(policy.deadline == .seconds(3))
    #expect(policy.handle(.tick, at: .seconds(3), wall: 8, using: bench.random).isEmpty)
    #expect(policy.deadline == nil)
  }

  @Test func `a poisoned message steps aside and is kept`() {
    var bench = connected()
    for number in 1...3 { bench.add(number) }
    #expect(bench.takePublished() == [1])
    bench.answer(1, false, "invalid: no such group")
    #expect(bench.state(1) == .refused && bench.reason(1) == "invalid: no such group")
    #expect(bench.takePublished() == [2])
    bench.answer(2, true)
    #expect(bench.takePublished() == [3])
  }

  @Test func `a reply waits for its parent's acceptance`() {
    var bench = connected()
    bench.add(1, group: "a")
    bench.add(2, group: nil, waitsFor: 1)
    #expect(bench.takePublished() == [1])
    #expect(bench.state(2) == .held)
    bench.answer(1, true)
    #expect(bench.takePublished() == [2])
  }

  @Test func `a reply to a refused message is held, and goes when the user wants it`() {
    var bench = connected()
    bench.add(1)
    bench.add(2, waitsFor: 1)
    bench.add(3)
    _ = bench.takePublished()
    bench.answer(1, false, "blocked: no")
    #expect(bench.state(2) == .held)
    #expect(bench.takePublished() == [3])
    bench.answer(3, true)
    bench.take(.retry(MessageID(2), isOutdated: false))
    #expect(bench.takePublished() == [2])
  }

  @Test func `what stands behind a held message is at rest, and says so, until that may go`() {
    var bench = connected()
    bench.add(1)
    bench.add(2)
    #expect(!bench.policy.isAtRest)
    bench.answer(1, false, "restricted: you are timed out until 1000060")
    #expect(bench.state(1) == .held && bench.state(2) == .queued)
    #expect(bench.policy.isAtRest)
    #expect(bench.reason(2) == "stands behind message 1 of its group, which is held")
    // The twin: what nothing holds up is still to be done.
    bench.add(3, group: "other")
    #expect(!bench.policy.isAtRest)
    bench.answer(3, true)
    #expect(bench.policy.isAtRest)
    _ = bench.takePublished()
    bench.pass(.seconds(70))
    #expect(bench.takePublished() == [1] && !bench.policy.isAtRest)
    bench.answer(1, true)
    #expect(bench.takePublished() == [2] && bench.reason(2) == nil)
  }

  @Test func `what stands behind another message than before says so, and nothing once it may go`()
  {
    var bench = connected()
    for number in 1...3 { bench.add(number) }
    bench.answer(1, false, "restricted: you are timed out until 1000060")
    #expect(bench.reason(3) == "stands behind message 1 of its group, which is held")
    bench.pass(.seconds(70))
    bench.answer(1, true)
    #expect(bench.reason(3) == nil)
    bench.answer(2, false, "restricted: you are timed out until 1000200")
    #expect(bench.reason(3) == "stands behind message 2 of its group, which is held")
    bench.take(.discarded(MessageID(2)))
    #expect(bench.reason(3) == nil)
    bench.answer(3, true)
    #expect(bench.state(3) == .sent || bench.state(3) == nil)
  }

  @Test func `what ends by its date behind a held message says so, and not what it stood behind`() {
    var bench = OutboxBench(isRedating: false)
    bench.take(.dateWindow(900))
    bench.take(.connected)
    bench.add(1)
    bench.add(2)
    bench.answer(1, false, "restricted: you are timed out until 1001800")
    #expect(bench.reason(2) == "stands behind message 1 of its group, which is held")
    bench.pass(.seconds(1900))
    bench.answer(1, true)
    #expect(bench.state(2) == .expired)
    #expect(bench.reason(2) == "its date is outside the relay's window")
  }

  @Test func `a reply that waits for a refused parent holds up nobody`() {
    var bench = connected()
    bench.add(1)
    bench.add(2, waitsFor: 1)
    _ = bench.takePublished()
    bench.answer(1, false, "blocked: no")
    #expect(bench.state(2) == .held && bench.policy.isAtRest)
    bench.add(3)
    #expect(bench.takePublished() == [3])
    bench.answer(3, true)
    // What will go as soon as the relay is back is not at rest.
    bench.take(.disconnected)
    #expect(bench.policy.isAtRest)
    bench.add(4)
    #expect(!bench.policy.isAtRest)
  }

  @Test
  func `what names a message of ours by its old id goes signed anew, once the relay lacks it`() {
    var bench = connected()
    bench.add(1)
    #expect(bench.takePublished() == [1])
    bench.answer(1, false, "invalid: unknown parent")
    bench.take(.retry(MessageID(1), isOutdated: true))
    #expect(bench.takePublished().isEmpty && bench.looks == [OutboxBench.id(1)])
    bench.take(.looked(OutboxBench.id(1), isThere: false))
    #expect(bench.redates == [MessageID(1)] && bench.takePublished().isEmpty)
    bench.take(.redated(bench.item(1, "g", nil, bench.wall, event: 11)))
    #expect(bench.takePublished() == [11])
  }

  @Test func `such a message that the relay has after all is sent`() {
    var bench = connected()
    bench.add(1)
    bench.answer(1, false, "invalid: unknown parent")
    bench.take(.retry(MessageID(1), isOutdated: true))
    bench.take(.looked(OutboxBench.id(1), isThere: true))
    #expect(bench.state(1) == .sent && bench.redates.isEmpty)
  }

  @Test(
    arguments: [
      ("duplicate: already have this event", DeliveryState.sent),
      ("rate-limited: retry in 5s", .queued), ("auth-required: not in whitelist", .refused),
      ("pow: 20 bits", .refused), ("blocked: duplicate content", .refused),
      ("restricted: not a member", .refused), ("invalid: missing h tag", .refused),
      ("mute: no", .refused), ("error: database", .queued), ("policy: who knows", .queued),
      ("not a member", .queued), ("restricted: you are timed out until 1000060", .held),
      ("invalid: event timestamp too far from server time", .expired),
    ] as [(Text, DeliveryState)])
  func `a refusal is classed by its prefix`(text: Text, state: DeliveryState) {
    var bench = connected()
    bench.add(1)
    bench.answer(1, false, text)
    #expect(bench.state(1) == state)
  }

  @Test func `errors are retried a bounded number of times, with the same bytes`() {
    var bench = connected()
    bench.add(1)
    var attempts = 0
    for _ in 0..<50 {
      for number in bench.takePublished() {
        #expect(number == 1)
        attempts += 1
        bench.answer(1, false, "error: database")
      }
      bench.pass(.seconds(60))
    }
    #expect(attempts == Limits().errorAttemptsMax)
    #expect(bench.state(1) == .refused)
  }

  @Test func `a rate limit is waited out and never given up`() {
    var bench = connected()
    bench.add(1)
    for _ in 0..<30 {
      #expect(bench.takePublished() == [1])
      bench.answer(1, false, "rate-limited: retry in 5s")
      bench.pass(.seconds(4))
      #expect(bench.takePublished().isEmpty)
      bench.take(.disconnected)
      bench.take(.connected)
      #expect(bench.takePublished().isEmpty)
      bench.pass(.seconds(3))
    }
    bench.answer(1, true)
    #expect(bench.state(1) == .sent)
  }

  @Test(arguments: [("5", 5), ("999999999", 108_000)] as [(String, Int64)])
  func `a wait that the relay names is kept, and bounded`(named: String, secondsMax: Int64) throws {
    var bench = connected()
    bench.add(1)
    bench.answer(1, false, Text("rate-limited: retry in \(named)s"))
    let wait = try #require(bench.policy.deadline)
    #expect(wait >= .seconds(5) && wait <= .seconds(secondsMax) * 1.25)
  }

  @Test func `an unknown outcome is asked by id before anything is sent again`() {
    var bench = connected()
    bench.add(1)
    _ = bench.takePublished()
    bench.take(.unanswered(OutboxBench.id(1), isHanded: true, "no answer"))
    #expect(bench.state(1) == .unknown)
    bench.pass(.seconds(60))
    #expect(bench.looks == [OutboxBench.id(1)])
    #expect(bench.takePublished().isEmpty)
    bench.take(.looked(OutboxBench.id(1), isThere: true))
    #expect(bench.state(1) == .sent)
  }

  @Test func `what the relay does not have is sent again as it is`() {
    var bench = connected()
    bench.add(1)
    _ = bench.takePublished()
    bench.take(.unanswered(OutboxBench.id(1), isHanded: true, "no answer"))
    bench.pass(.seconds(60))
    bench.take(.looked(OutboxBench.id(1), isThere: false))
    #expect(bench.takePublished() == [1])
  }

  @Test func `a relay that does not say is asked again later`() {
    var bench = connected()
    bench.add(1, state: .unknown, handedAt: 900_000)
    #expect(bench.looks.count == 1)
    bench.take(.looked(OutboxBench.id(1), isThere: nil))
    #expect(bench.state(1) == .unknown)
    bench.pass(.seconds(60))
    #expect(bench.looks.count == 2 && bench.takePublished().isEmpty)
  }

  @Test(arguments: ["ok", "echo", "ok echo", "echo ok", "unanswered ok", "unanswered echo"])
  func `whatever order acceptance and echo come in, the message is sent once`(order: String) {
    var bench = connected()
    bench.add(1)
    #expect(bench.takePublished() == [1])
    for word in order.split(separator: " ") {
      switch word {
      case "ok": bench.answer(1, true)
      case "echo": bench.take(.echoed(OutboxBench.id(1)))
      default: bench.take(.unanswered(OutboxBench.id(1), isHanded: true, "no answer"))
      }
    }
    #expect(bench.state(1) == .sent)
    bench.pass(.seconds(600))
    #expect(bench.takePublished().isEmpty)
    #expect(bench.records[MessageID(1)]?.last == .sent)
  }

  @Test func `a late refusal does not undo what was found out meanwhile`() {
    var bench = connected()
    bench.add(1)
    bench.take(.unanswered(OutboxBench.id(1), isHanded: true, "no answer"))
    bench.answer(1, false, "invalid: x")
    #expect(bench.state(1) == .unknown)
  }

  @Test func `after a crash what was being sent is asked for, what was queued is sent`() {
    var bench = OutboxBench()
    bench.add(1, group: "a", state: .sending, handedAt: 999_000)
    bench.add(2, group: "b")
    #expect(bench.state(1) == .unknown)
    bench.take(.connected)
    #expect(bench.looks == [OutboxBench.id(1)])
    #expect(bench.takePublished() == [2])
  }

  @Test func `nothing is sent while there is no connection, and all of it at the next`() {
    var bench = OutboxBench()
    for number in 1...3 { bench.add(number, group: Text("\(number)")) }
    bench.pass(.seconds(3600))
    #expect(bench.takePublished().isEmpty)
    bench.take(.connected)
    #expect(bench.takePublished() == [1, 2, 3])
  }

  @Test func `a failed round leads to another one without a new message`() {
    var bench = connected()
    bench.add(1)
    #expect(bench.takePublished() == [1])
    bench.answer(1, false, "error: busy")
    bench.pass(.seconds(10))
    #expect(bench.takePublished() == [1])
  }

  @Test func `discarding ends a message and tells those that answer it`() {
    var bench = OutboxBench()
    bench.add(1)
    bench.add(2, waitsFor: 1)
    bench.take(.discarded(MessageID(1)))
    #expect(bench.state(1) == nil)
    #expect(bench.state(2) == .refused)
    bench.take(.connected)
    #expect(bench.takePublished().isEmpty)
  }
}

@Suite struct RedatingTests {
  private func bench(isRedating: Bool = true, window: Int64? = 900) -> OutboxBench {
    var bench = OutboxBench(isRedating: isRedating)
    bench.take(.dateWindow(window))
    bench.take(.connected)
    return bench
  }

  @Test func `a message never handed over and outside the window gets a new date first`() {
    var bench = bench()
    bench.add(1, at: bench.wall - 1000)
    #expect(bench.redates == [MessageID(1)] && bench.takePublished().isEmpty)
    bench.take(.redated(bench.item(1, "g", nil, bench.wall, event: 500)))
    #expect(bench.takePublished() == [500])
    bench.answer(500, true)
    #expect(bench.state(1) == .sent)
  }

  @Test func `inside the window nothing is re-dated`() {
    var bench = bench()
    bench.add(1, at: bench.wall - 800)
    #expect(bench.redates.isEmpty && bench.takePublished() == [1])
  }

  @Test func `without a known window nothing is ever re-dated`() {
    var bench = bench(window: nil)
    bench.add(1, at: 10)
    #expect(bench.takePublished() == [1])
    bench.answer(1, false, "invalid: created_at too old")
    #expect(bench.redates.isEmpty && bench.state(1) == .expired)
  }

  @Test func `a refusal for its time re-dates after the relay said it has no such event`() {
    var bench = bench()
    bench.add(1, at: bench.wall - 1000, handedAt: 900_000)
    #expect(bench.takePublished() == [1])
    bench.answer(1, false, "invalid: event timestamp too far from server time")
    #expect(bench.looks == [OutboxBench.id(1)] && bench.redates.isEmpty)
    bench.take(.looked(OutboxBench.id(1), isThere: false))
    #expect(bench.redates == [MessageID(1)])
  }

  @Test func `a message that the relay has after all is not doubled`() {
    var bench = bench()
    bench.add(1, at: bench.wall - 1000, handedAt: 900_000)
    bench.answer(1, false, "invalid: event timestamp too far from server time")
    bench.take(.looked(OutboxBench.id(1), isThere: true))
    #expect(bench.state(1) == .sent && bench.redates.isEmpty)
  }

  @Test func `another refusal never re-dates`() {
    var bench = bench()
    bench.add(1, at: bench.wall - 1000, handedAt: 900_000)
    bench.answer(1, false, "restricted: no")
    #expect(bench.state(1) == .refused && bench.redates.isEmpty)
  }

  @Test func `without re-dating the message expires, and a retry by hand re-dates it`() {
    var bench = bench(isRedating: false)
    bench.add(1, at: bench.wall - 1000)
    #expect(bench.state(1) == .expired)
    #expect(bench.redates.isEmpty && bench.takePublished().isEmpty)
    bench.take(.retry(MessageID(1), isOutdated: false))
    #expect(bench.redates == [MessageID(1)])
  }

  @Test func `a new date that must wait for the clock is asked for again, and nothing passes by`() {
    var bench = bench()
    bench.add(1, at: bench.wall - 1000)
    bench.add(2)
    bench.take(.redatingDelayed(MessageID(1), "waits for the clock"))
    #expect(bench.state(1) == .queued && bench.reason(1) == "waits for the clock")
    #expect(bench.redates == [MessageID(1)] && bench.takePublished().isEmpty)
    bench.pass(.seconds(1))
    #expect(bench.redates == [MessageID(1), MessageID(1)] && bench.takePublished().isEmpty)
  }

  @Test func `re-dating that fails leaves the message for the user`() {
    var bench = bench()
    bench.add(1, at: bench.wall - 1000)
    bench.take(.redatingFailed(MessageID(1), "no key"))
    #expect(bench.state(1) == .expired && bench.reason(1) == "no key")
  }
}

@Suite struct ReferencesPolicyTests {
  private static let refusal: Text = "invalid: missing previous tag"

  private func refused(isRedating: Bool = true) -> OutboxBench {
    var bench = OutboxBench(isRedating: isRedating)
    bench.take(.connected)
    bench.add(1)
    #expect(bench.takePublished() == [1])
    bench.answer(1, false, Self.refusal)
    return bench
  }

  @Test func `a message refused for its references gets fresh ones, once`() {
    var bench = refused()
    #expect(bench.looks == [OutboxBench.id(1)] && bench.refreshes.isEmpty)
    bench.take(.looked(OutboxBench.id(1), isThere: false))
    #expect(bench.refreshes == [MessageID(1)] && bench.redates.isEmpty)
    bench.take(.redated(bench.item(1, "g", nil, bench.wall, event: 500)))
    #expect(bench.takePublished() == [500])
    bench.answer(500, false, "invalid: previous id 'abcd' wasn't found in this relay")
    #expect(bench.state(1) == .expired && bench.refreshes.count == 1)
    bench.pass(.seconds(600))
    #expect(bench.takePublished().isEmpty)
    bench.take(.retry(MessageID(1), isOutdated: false))
    #expect(bench.refreshes.count == 2)
  }

  @Test func `a message that the relay has after all is not signed anew`() {
    var bench = refused()
    bench.take(.looked(OutboxBench.id(1), isThere: true))
    #expect(bench.state(1) == .sent && bench.refreshes.isEmpty)
  }

  @Test func `without re-dating a message refused for its references waits for the user`() {
    let bench = refused(isRedating: false)
    #expect(bench.state(1) == .expired && bench.reason(1) == Self.refusal)
    #expect(bench.looks.isEmpty && bench.refreshes.isEmpty)
  }
}

@Suite struct OutboxPropertyTests {
  /// Whatever the relay and the connection do: one event a message, in order, and nothing is lost.
  @Test(arguments: Seeds.kept)
  func `every message ends at the relay once and in order, or is explained`(seed: UInt64) {
    let random = SeededRandom(seed)
    var bench = OutboxBench()
    var stored: [Int] = []
    let count = 1 + random.below(12)
    for number in 1...count { bench.add(number, group: Text("\(random.below(3))")) }
    for step in 0..<3000 {
      let isCalm = step > 1500
      if isCalm || random.chance(0.7) { bench.take(.connected) } else { bench.take(.disconnected) }
      for number in bench.takePublished() {
        let fault = isCalm ? 9 : random.below(7)
        if fault != 0, fault != 2, !stored.contains(number) { stored.append(number) }
        switch fault {
        case 0: bench.take(.unanswered(OutboxBench.id(number), isHanded: true, "lost"))
        case 1: bench.take(.unanswered(OutboxBench.id(number), isHanded: true, "OK lost"))
        case 2: bench.answer(number, false, "rate-limited: retry in 1s")
        case 3: bench.take(.echoed(OutboxBench.id(number)))
        default: bench.answer(number, true)
        }
      }
      for id in bench.looks {
        let isThere = stored.contains { OutboxBench.id($0) == id }
        bench.take(.looked(id, isThere: !isCalm && random.chance(0.3) ? nil : isThere))
      }
      bench.looks = []
      bench.pass(.seconds(random.below(20)))
    }
    #expect(Set(stored) == Set(1...count), "seed \(seed)")
    #expect(bench.policy.isSettled, "seed \(seed)")
    for group in 0..<3 {
      let lane = stored.filter { number in
        bench.policy.deliveries.first { $0.message == MessageID(Int64(number)) }?.group
          == Text("\(group)")
      }
      #expect(lane == lane.sorted(), "seed \(seed)")
    }
  }
}
