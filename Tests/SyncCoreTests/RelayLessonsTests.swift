import Nostr
import SyncCore
import Testing

/// A relay that takes so many frames in a sliding window, and names the wait for the next.
private struct Quota {
  let framesMax: Int
  let window: Duration
  private(set) var refusals = 0
  private var taken: [Duration] = []

  init(framesMax: Int, window: Duration) {
    self.framesMax = framesMax
    self.window = window
  }

  /// Nil where the frame is taken, else the wait in whole seconds.
  mutating func offer(at now: Duration) -> Duration? {
    taken.removeAll { $0 <= now - window }
    guard taken.count >= framesMax else {
      taken.append(now)
      return nil
    }
    refusals += 1
    return .seconds(max(1, (taken[0] + window - now).components.seconds))
  }

  /// A client that has more to ask for than there is time, each answered after a while.
  mutating func serve(_ budget: inout FrameBudget, from start: Duration, seconds: Int) -> Int {
    var now = start
    var answered = 0
    while now < start + .seconds(seconds) {
      if let later = budget.take(.backfill, at: now) {
        now = later
        continue
      }
      if let wait = offer(at: now) {
        budget.refused(retryAfter: wait, at: now)
      } else {
        answered += 1
        now += .milliseconds(15)
        budget.answered(at: now)
      }
    }
    return answered
  }
}

@Suite struct QuotaTests {
  @Test(arguments: [Duration.zero, .seconds(1)])
  func `the first refusal that names the wait teaches a quota of fifty frames in five seconds`(
    patience: Duration
  ) {
    var quota = Quota(framesMax: 50, window: .seconds(5))
    var budget = FrameBudget(at: .zero, patience: patience)
    let answered = quota.serve(&budget, from: .zero, seconds: 60)
    // One more where the wait was rounded down.
    #expect(quota.refusals <= 2 && budget.refusals == 1)
    #expect(budget.rate > 6 && budget.rate <= 10)
    #expect(answered > 300)
  }

  @Test func `a wait that no window explains teaches no more than the half`() {
    var budget = FrameBudget(at: .zero, rate: 64)
    for frame in 0..<40 {
      #expect(budget.take(.userEvent, at: .milliseconds(frame * 20)) == nil)
    }
    budget.refused(retryAfter: .seconds(600), at: .milliseconds(800))
    #expect(budget.rate == 20)
  }

  @Test func `each refusal makes the next attempt to go faster come later`() {
    var quota = Quota(framesMax: 50, window: .seconds(5))
    var budget = FrameBudget(at: .zero)
    _ = quota.serve(&budget, from: .zero, seconds: 3600)
    // Tried again after minutes at first, and then after ever more.
    #expect(budget.refusals <= 8)
  }
}

@Suite struct RelayLessonsTests {
  private func lessons(rate: Double? = 5, at: Timestamp = 1000) -> RelayLessons {
    var lessons = RelayLessons()
    lessons.rate = rate
    lessons.ratedAt = at
    return lessons
  }

  @Test func `they are read as they were written, and a line without sense is left out`() {
    var all = lessons(rate: 7.25, at: 1_700_000_000)
    all.pausedUntil = 1_700_000_300
    all.subscriptionsMax = 12
    all.crowdedAt = 1_600_000_000
    #expect(RelayLessons(text: all.text) == all)
    #expect(RelayLessons(text: "") == RelayLessons())
    let noise = "rate nan 5\nrate -1 5\nsubscriptions 0 5\nrate 5\nwhat ever 7\n\u{0}"
    #expect(RelayLessons(text: noise) == RelayLessons())
  }

  @Test func `they count for a day, and a date from the future counts from now`() {
    let later = Timestamp(1000 + RelayLessons.memory)
    #expect(lessons().remembered(at: later - 1).rate == 5)
    #expect(lessons().remembered(at: later).rate == nil)
    let misdated = lessons(at: 9_000_000).remembered(at: 1000)
    #expect(misdated.rate == 5 && misdated.ratedAt == 1000)
  }

  @Test func `a machine begins with the rate, the pause and the bound of an earlier run`() throws {
    var bench = ConnectionBench()
    bench.becomeReady()
    let asked = (1...30).map { AskID($0) }
    for id in asked { bench.take(.ask(id, ConnectionBench.request())) }
    let first = try #require(bench.takeRequests().first)
    bench.take(
      .received(.closed(first.id, "rate-limited: quota exceeded; retry in 20s")))
    let rate = try #require(bench.machine.budget.ceiling)
    #expect(bench.machine.lessonsCount == 1)
    let kept = bench.machine.lessons(at: bench.now, wall: 5000)
    #expect(kept.rate == rate && kept.ratedAt == 5000)
    #expect(kept.pausedUntil == 5021)

    var next = ConnectionBench()
    next.machine.recall(RelayLessons(text: kept.text), at: .zero, wall: 5010)
    #expect(next.machine.budget.rate == rate)
    next.take(.publish(ConnectionBench.event(1)))
    next.becomeReady()
    next.take(.publish(ConnectionBench.event(1)))
    next.pass(.seconds(8))
    #expect(next.takeEvents().isEmpty)
    next.pass(.seconds(2))
    #expect(next.takeEvents().count == 1)
    // It is no lesson of this run's, and none that is told again.
    #expect(next.machine.lessonsCount == 0)
    #expect(next.machine.lessons(at: next.now, wall: 5022).rate == rate)
  }

  @Test func `a restart keeps a minute of a wait at most`() {
    var long = lessons()
    long.pausedUntil = 9000
    var bench = ConnectionBench()
    bench.machine.recall(long, at: .zero, wall: 1000)
    #expect(bench.machine.budget.pausedUntil == .seconds(60))
  }

  @Test func `a machine that begins with nothing learned is as free as ever`() {
    var bench = ConnectionBench()
    bench.machine.recall(lessons(), at: .zero, wall: 91_000)
    #expect(bench.machine.budget == FrameBudget(at: .zero))
  }

  @Test func `what a relay was found to keep open is kept`() {
    var crowded = RelayLessons()
    crowded.subscriptionsMax = 5
    crowded.crowdedAt = 1000
    var bench = ConnectionBench()
    bench.machine.recall(crowded, at: .zero, wall: 1000)
    for number in 0..<20 { bench.take(.want(Text("feed \(number)"), [Filter(kinds: [9])])) }
    bench.becomeReady()
    for request in bench.takeRequests() { bench.take(.received(.eose(request.id, hints: []))) }
    bench.pass(.seconds(20))
    #expect(bench.machine.openCount <= 5)
  }
}
