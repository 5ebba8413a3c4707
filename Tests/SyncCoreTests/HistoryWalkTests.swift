import Nostr
import SyncCore
import Testing

@Suite struct HistoryWalkTests {
  @Test func `a cap below the asked limit loses nothing`() {
    var relay = ModelRelay(
      stored: (0..<250).map { ModelRelay.position(1000 + Int64($0), $0) }, cap: 100)
    let run = WalkRun(&relay)
    #expect(run.held.count == 250)
    #expect(run.end == .drained)
    #expect(run.gaps.isEmpty)
    #expect(run.isProved(0) && run.isProved(1249) && run.isProved(1_000_000))
  }

  @Test func `the rest of a second cut by a page edge is read`() {
    var relay = ModelRelay(
      stored: ModelRelay.burst(50, 3) + [ModelRelay.position(60, 9), ModelRelay.position(40, 10)],
      cap: 3)
    // The cap is seen before the burst is met alone.
    let run = WalkRun(&relay)
    #expect(run.held.count == 5)
  }

  @Test func `the only second of a scope is proved once the relay gives more of other events`() {
    var relay = ModelRelay(stored: ModelRelay.burst(50, 5))
    relay.others = ModelRelay.burst(900, 1, from: 20)
    let run = WalkRun(&relay)
    #expect(run.held.count == 5 && run.gaps.isEmpty && run.end == .drained)
    #expect(run.isProved(50) && run.isProved(0) && run.isProved(1_000_000))
    // A few events, twice.
    #expect(relay.requests.filter { $0.isGauge }.map { $0.filter.limit } == [6, 6])
  }

  @Test func `without more events the only second of a scope is a gap that says so`() {
    var relay = ModelRelay(stored: ModelRelay.burst(50, 5))
    let run = WalkRun(&relay)
    #expect(run.held.count == 5 && run.end == .drained)
    #expect(run.gaps.map(\.span) == [HistoryWalk.Span(from: 50, to: 50)])
    #expect(run.gaps.allSatisfy { $0.why.string.contains("ever seen to give in a page") })
    #expect(run.isProved(49) && run.isProved(51))
    #expect(relay.requests.count { $0.isGauge } == 1)
  }

  @Test func `a second that is cut is a gap, however many events arrive while the relay is gauged`()
  {
    var relay = ModelRelay(stored: ModelRelay.burst(50, 7), cap: 5)
    relay.others = ModelRelay.burst(900, 9, from: 20)
    let gauges = 8...
    relay.arrivals = { number in
      gauges.contains(number) ? [(place: 0, ModelRelay.position(950, 100 + number))] : []
    }
    let run = WalkRun(&relay)
    #expect(!run.isProved(50) && run.lies.isEmpty)
    #expect(relay.requests.contains { $0.isGauge })
  }

  @Test func `a search is one page, leads to no other and proves nothing`() {
    var relay = ModelRelay(
      stored: (0..<40).map { ModelRelay.position(100 + Int64($0), $0) }, cap: 10)
    let run = WalkRun(&relay, scope: Filter(kinds: [9], search: "found"))
    #expect(relay.requests.count == 1 && run.held.count == 10)
    #expect(run.proofs.isEmpty && run.gaps.isEmpty)
    #expect(run.end == .unpageable("a search is one page"))
  }

  @Test(arguments: [false, true])
  func `the rest of a cut second is read also where until is exclusive`(isExclusive: Bool) {
    var relay = ModelRelay(
      stored: (0..<40).flatMap { ModelRelay.burst(100 + Int64($0), 3, from: $0 * 10) }, cap: 10)
    relay.isUntilExclusive = isExclusive
    let run = WalkRun(&relay)
    #expect(run.held.count == 120)
    #expect(run.end == .drained && run.gaps.isEmpty)
    #expect(run.isProved(100) && run.isProved(0) && run.isProved(1_000_000))
  }

  @Test(arguments: [false, true])
  func `a filter without conditions is read also where it needs both bounds`(needs: Bool) {
    var relay = ModelRelay(
      stored: (0..<40).map { ModelRelay.position(100 + Int64($0), $0) }, cap: 10)
    relay.needsBothBounds = needs
    let run = WalkRun(&relay, scope: Filter())
    #expect(run.held.count == 40)
    #expect(run.end == .drained && run.gaps.isEmpty)
    #expect(run.isProved(0) && run.isProved(1) && run.isProved(1_000_000))
  }

  @Test func `a relay that serves one event of the second until loses nothing`() {
    for size in 1...6 {
      var relay = ModelRelay(
        stored: (0..<30).flatMap { ModelRelay.burst(100 + Int64($0), size, from: $0 * 10) }, cap: 11
      )
      relay.servesOneOfUntil = true
      relay.isSinceExclusive = true
      let run = WalkRun(&relay)
      #expect(run.held.count == 30 * size, "\(size) events a second")
      #expect(run.end == .drained && run.gaps.isEmpty)
    }
  }

  @Test(arguments: [false, true], [false, true])
  func `bounds that exclude their own second lose nothing and claim nothing`(
    since: Bool, until: Bool
  ) {
    var relay = ModelRelay(
      stored: (0..<30).flatMap { ModelRelay.burst(100 + Int64($0), 4, from: $0 * 10) }, cap: 7)
    (relay.isSinceExclusive, relay.isUntilExclusive) = (since, until)
    let run = WalkRun(&relay)
    #expect(run.held.count == 120)
    #expect(run.end == .drained && run.gaps.isEmpty)
    #expect(run.isProved(100) && run.isProved(0) && run.isProved(1_000_000))

    let legs = [HistoryWalk.Leg(from: 110, to: 119)]
    let bounded = WalkRun(&relay, legs: legs)
    #expect(bounded.held.count == 40 && bounded.gaps.isEmpty)
    #expect(!bounded.isProved(109) && bounded.isProved(110) && bounded.isProved(119))
    #expect(!bounded.isProved(120))
  }

  @Test func `an empty relay is believed at the second time of asking`() {
    var relay = ModelRelay()
    let run = WalkRun(&relay, scope: Filter())
    #expect(run.end == .drained && run.isProved(0) && run.isProved(1_000_000))
    #expect(run.asked <= 4)
  }

  @Test func `a second denser than a page is a gap, and the walk goes on below it`() {
    var relay = ModelRelay(
      stored: ModelRelay.burst(5000, 700) + ModelRelay.burst(10, 3, from: 9000), cap: 500)
    let run = WalkRun(&relay)
    #expect(run.held.count == 503)
    #expect(run.end == .drained)
    #expect(run.gaps.map(\.span) == [HistoryWalk.Span(from: 5000, to: 5000)])
    #expect(!run.isProved(5000) && run.isProved(4999) && run.isProved(5001) && run.isProved(10))
  }

  @Test func `a keyset cursor reads a second denser than a page`() {
    var relay = ModelRelay(
      stored: ModelRelay.burst(5000, 700) + ModelRelay.burst(10, 3, from: 9000), cap: 200)
    relay.servesKeyset = true
    var options = HistoryWalk.Options(limits: Limits())
    options.hasKeysetCursor = true
    let run = WalkRun(&relay, options: options)
    #expect(run.held.count == 703)
    #expect(run.gaps.isEmpty && run.isProved(5000))
  }

  @Test func `a relay that ignores the keyset cursor is seen through`() {
    var relay = ModelRelay(stored: ModelRelay.burst(5000, 700), cap: 200)
    var options = HistoryWalk.Options(limits: Limits())
    options.hasKeysetCursor = true
    let run = WalkRun(&relay, options: options)
    #expect(!run.isProved(5000) && run.isGap(5000))
    #expect(run.asked <= 10)
  }

  @Test func `where the keyset cursor is ignored a small second is read as at other relays`() {
    // Nothing else is there to show that the relay gives more than two events in a page.
    var relay = ModelRelay(stored: ModelRelay.burst(5000, 2))
    relay.others = ModelRelay.burst(9000, 5, from: 100)
    var options = HistoryWalk.Options(limits: Limits())
    options.hasKeysetCursor = true
    let run = WalkRun(&relay, options: options)
    #expect(run.isProved(5000) && run.gaps.isEmpty)
    relay.others = []
    let alone = WalkRun(&relay, options: options)
    #expect(alone.isGap(5000))
  }

  @Test func `a relay that ignores until is unpageable after two pages`() {
    var relay = ModelRelay(
      stored: (0..<50).map { ModelRelay.position(100 + Int64($0), $0) }, cap: 10)
    relay.ignoresUntil = true
    let run = WalkRun(&relay)
    #expect(run.end == .unpageable("ignores until"))
    #expect(run.asked == 2)
    #expect(run.isGap(0) && !run.isProved(0) && !run.isProved(100))
  }

  @Test func `a page that an arrival disturbed is asked again, however often that happens`() {
    var walk = HistoryWalk(Filter(), options: .init(limits: Limits(), pageShown: 100))
    func page(_ times: [Int64]) -> PageTally {
      var tally = PageTally()
      for time in times {
        tally.addVerified(ModelRelay.position(time, Int(time)))
      }
      return tally
    }
    for times: [Int64] in [[90, 80, 85], [90, 85, 80], [80, 70, 75], [80, 75, 70], []] {
      guard case .ask = walk.next(now: 1000) else { break }
      _ = walk.received(page(times), .complete(.none))
    }
    #expect(walk.next(now: 1000) == .ended(.drained))
  }

  @Test func `a relay that is not newest first is unpageable`() {
    var relay = ModelRelay(
      stored: (0..<50).map { ModelRelay.position(100 + Int64($0), $0) }, cap: 10)
    relay.isOldestFirst = true
    let run = WalkRun(&relay)
    #expect(run.end == .unpageable("not newest first"))
    #expect(run.proofs.isEmpty)
    #expect(run.asked <= 4)
  }

  @Test func `the walk ends at zero and never asks below it`() {
    var relay = ModelRelay(
      stored: ModelRelay.burst(0, 12) + ModelRelay.burst(7, 20, from: 100), cap: 30)
    let run = WalkRun(&relay)
    #expect(run.end == .drained)
    #expect(run.held.count == 32)
    #expect(run.isProved(0))
    #expect(relay.requests.allSatisfy { ($0.filter.until?.seconds ?? 0) >= 0 })
  }

  @Test func `a relay that reads until 0 as no bound does not feed the walk for ever`() {
    var relay = ModelRelay(
      stored: ModelRelay.burst(0, 12) + ModelRelay.burst(7, 20, from: 100), cap: 15)
    relay.readsZeroAsNoBound = true
    let run = WalkRun(&relay)
    #expect(run.asked < 12)
  }

  @Test func `only an empty page with its own EOSE drains a leg`() {
    let stored = (0..<30).map { ModelRelay.position(100 + Int64($0), $0) }
    var limits = Limits()
    limits.walkRetriesMax = 1
    let options = HistoryWalk.Options(limits: limits)
    var relay = ModelRelay(stored: stored, cap: 10)
    #expect(WalkRun(&relay, options: options).end == .drained)
    let silent = WalkRun(&relay, options: options) { $0 >= 3 ? .timedOut : nil }
    #expect(silent.end == .timedOut)
    #expect(!silent.isProved(100) && silent.isGap(100))
    let refused = WalkRun(&relay, options: options) { $0 >= 3 ? .refused("restricted: no") : nil }
    #expect(refused.end == .refused("restricted: no"))
    #expect(refused.gaps.last?.why == "restricted: no")
    #expect(!refused.isProved(100))
  }

  @Test func `a page of invalid events alone is stepped over and proves nothing`() {
    let stored = (0..<30).map { ModelRelay.position(100 + Int64($0), $0) }
    var relay = ModelRelay(stored: stored, cap: 10)
    relay.forged = Set(stored[10..<20].map(\.id))
    let run = WalkRun(&relay)
    #expect(run.end == .drained)
    #expect(run.held.count == 20)
    #expect((111...119).allSatisfy { !run.isProved(Timestamp($0)) })
    #expect(run.isGap(115) && run.isProved(125) && run.isProved(100))
  }

  @Test
  func `an invalid event beside valid ones leaves its second unproven, and the rest is proved`() {
    let stored = (0..<30).map { ModelRelay.position(100 + Int64($0), $0) }
    var relay = ModelRelay(stored: stored, cap: 10)
    relay.forged = [stored[7].id, stored[20].id]
    let run = WalkRun(&relay)
    #expect(run.end == .drained && run.held.count == 28)
    let gaps = run.gaps.map(\.span)
    #expect(Set(gaps) == [HistoryWalk.Span(from: 107, to: 107), .init(from: 120, to: 120)])
    for second in 100...129 {
      #expect(run.isProved(Timestamp(Int64(second))) == ![107, 120].contains(second))
    }
  }

  @Test func `an invalid event costs no proof where the genuine one came or is held`() {
    let stored = (0..<5).map { ModelRelay.position(100 + Int64($0), $0) }
    func findings(_ change: (inout PageTally) -> Void) -> HistoryWalk.Findings {
      var walk = HistoryWalk(Filter(), options: .init(limits: Limits(), pageShown: 100))
      guard case .ask(let request) = walk.next(now: 1000) else { return .init() }
      var tally = request.tally(now: 1000)
      tally.addInvalid(stored[4], isDated: false)
      for position in stored.reversed() where position != stored[4] { tally.addVerified(position) }
      change(&tally)
      return walk.received(tally, .complete(.none))
    }
    let came = findings { $0.addVerified(stored[4]) }
    #expect(came.gaps.isEmpty || came.proofs.isEmpty)
    let held = findings { $0.dismissDoubts([stored[4].id]) }
    #expect(held.gaps.isEmpty && held.proofs == [HistoryWalk.Span(from: 101, to: 1000)])
    let missing = findings { _ in }
    #expect(missing.gaps.map(\.span) == [HistoryWalk.Span(from: 103, to: 1000)])
    #expect(missing.proofs == [HistoryWalk.Span(from: 101, to: 102)])
  }

  @Test func `content swapped with its date leaves in doubt all that lies between its neighbours`()
  {
    var walk = HistoryWalk(Filter(), options: .init(limits: Limits(), pageShown: 100))
    guard case .ask(let request) = walk.next(now: 1000) else { return }
    var tally = request.tally(now: 1000)
    tally.addVerified(ModelRelay.position(500, 1))
    tally.addInvalid(ModelRelay.position(450, 2), isDated: false)
    tally.addVerified(ModelRelay.position(400, 3))
    tally.addVerified(ModelRelay.position(300, 4))
    let findings = walk.received(tally, .complete(.none))
    #expect(findings.gaps.map(\.span) == [HistoryWalk.Span(from: 400, to: 500)])
    #expect(findings.proofs == [.init(from: 301, to: 399), .init(from: 501, to: 1000)])
  }

  @Test func `an arrival older than a page's last event does not stretch its proof`() {
    let stored = (0..<40).map { ModelRelay.position(1000 + Int64($0), $0) }
    var relay = ModelRelay(stored: stored, cap: 10)
    relay.arrivals = { number in
      number == 1
        ? [(.max, ModelRelay.position(500, 900)), (.max, ModelRelay.position(400, 901))] : []
    }
    let run = WalkRun(&relay)
    #expect(run.lies.isEmpty && run.end == .drained && run.gaps.isEmpty)
    #expect(run.held.count == 42)
  }

  @Test func `a page is asked for twice only until the relay has shown what it gives`() {
    let stored = (0..<1000).map { ModelRelay.position(1000 + Int64($0), $0) }
    var relay = ModelRelay(stored: stored, cap: 100)
    let run = WalkRun(&relay)
    #expect(run.held.count == 1000 && run.gaps.isEmpty)
    // Each page overlaps the one above by two seconds; the newest is asked for twice, and once it is
    // seen whether `until` counts.
    #expect(run.asked <= 17)
  }

  @Test func `an event from the far future does not move the cursor or the coverage`() {
    let future = ModelRelay.burst(4_102_444_800, 40)
    let past = (0..<30).map { ModelRelay.position(100 + Int64($0), 1000 + $0) }
    var relay = ModelRelay(stored: future + past, cap: 12)
    let run = WalkRun(&relay)
    // One second more, because the relay has not yet shown whether it counts `until` itself.
    #expect(relay.requests[1].filter.until == Timestamp(1_000_000 + 900 + 1))
    #expect(Set(past).isSubset(of: run.held))
    #expect(run.proofs.allSatisfy { $0.to <= 1_000_000 })
    #expect(run.isProved(100))
  }

  @Test func `future events denser than the page are read after the present`() {
    let future = (0..<40).map { ModelRelay.position(2_000_000 + Int64($0), $0) }
    let past = (0..<30).map { ModelRelay.position(100 + Int64($0), 1000 + $0) }
    var relay = ModelRelay(stored: future + past, cap: 12)
    let run = WalkRun(&relay)
    #expect(run.held.count == 70)
    #expect(run.end == .drained)
  }

  @Test func `finish closes a leg at its first page`() {
    var relay = ModelRelay(stored: ModelRelay.burst(100, 5), cap: 10)
    relay.saysFinish = true
    let run = WalkRun(&relay)
    #expect(run.asked == 1)
    #expect(run.isProved(0) && run.isProved(100))
  }

  @Test func `a run with bounds proves its own span only`() {
    let stored = (0..<100).map { ModelRelay.position(100 + Int64($0), $0) }
    var relay = ModelRelay(stored: stored, cap: 10)
    let run = WalkRun(&relay, legs: [HistoryWalk.Leg(from: 120, to: 149)])
    #expect(run.held.count == 30)
    #expect(!run.isProved(119) && run.isProved(120) && run.isProved(149) && !run.isProved(150))
  }

  @Test func `legs apart from one another are walked each`() {
    let stored = (0..<100).map { ModelRelay.position(100 + Int64($0), $0) }
    var relay = ModelRelay(stored: stored, cap: 7)
    let legs = [HistoryWalk.Leg(from: 180), HistoryWalk.Leg(from: 110, to: 119)]
    let run = WalkRun(&relay, legs: legs)
    // The second above a leg may come along; it was read before.
    let wanted = run.held.filter { $0.createdAt >= 180 || (110...119).contains($0.createdAt) }
    #expect(wanted.count == 30 && run.held.count <= 31)
    #expect(run.end == .drained)
    #expect(!run.isProved(150) && run.isProved(115) && run.isProved(199))
  }

  @Test(arguments: [99, 100, 300])
  func `a second as large as the limit that was asked is not taken for all of it`(count: Int) {
    var relay = ModelRelay()
    relay.stored = ModelRelay.burst(1000, count) + ModelRelay.burst(500, 3, from: 5000)
    relay.limitMax = 100
    // To another walk of the round it has given more.
    let run = WalkRun(&relay, options: .init(limits: Limits(), pageShown: 500))
    #expect(run.end == .drained && run.lies.isEmpty)
    #expect(run.isProved(1000) == (count < 100) && run.isGap(1000) == (count >= 100))
    #expect(run.isProved(500) && run.held.count == min(count, 100) + 3)
  }

  @Test func `a relay that refuses a large limit is asked for less`() {
    var walk = HistoryWalk(Filter(kinds: [9]), options: HistoryWalk.Options(limits: Limits()))
    guard case .ask(let first) = walk.next(now: 1000) else { return }
    #expect(first.filter.limit == 500)
    _ = walk.received(PageTally(), .refused("invalid: limit too large"))
    guard case .ask(let second) = walk.next(now: 1000) else {
      Issue.record("the walk ended")
      return
    }
    #expect(second.filter.limit == 100)
    _ = walk.received(PageTally(), .refused("invalid: limit too large"))
    #expect(walk.next(now: 1000) == .ended(.refused("invalid: limit too large")))
  }
}
