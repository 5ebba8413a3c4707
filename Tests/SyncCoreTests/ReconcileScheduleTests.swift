import Nostr
import SyncCore
import Testing

@Suite struct ReconcileScheduleTests {
  private static let day: Int64 = 86_400
  private let start = Timestamp(1_800_000_000)

  private func proved(_ from: Timestamp, _ to: Timestamp, at time: Timestamp) -> CoverageInterval {
    CoverageInterval(from: from, to: to, provedAt: time, method: .paging)
  }

  /// Follows for some days, a round every ten minutes; each round proves what the plan asks for.
  private func follow(
    days: Int64, _ plan: SyncPlan, each: (Timestamp, [HistoryWalk.Leg], CoverageMap) -> Void
  ) {
    var coverage = CoverageMap([proved(0, start, at: start)])
    var now = start
    while now < start + days * Self.day {
      now = now + 600
      let legs = plan.legs(over: coverage, now: now)
      each(now, legs, coverage)
      for leg in legs { coverage.insert(proved(leg.from, leg.to ?? now, at: now)) }
    }
  }

  private var plan: SyncPlan {
    var plan = SyncPlan(recentWindow: 3600)
    plan.schedule = ReconcileSchedule()
    return plan
  }

  private static let ages: [(age: Int64, every: Int64)] = [
    (1800, 600), (72_000, 3600), (432_000, 21_600), (8_640_000, 604_800),
  ]

  @Test(arguments: ages)
  func `no proof becomes older than its window allows`(_ window: (age: Int64, every: Int64)) {
    let (age, every) = window
    follow(days: 20, plan) { now, legs, coverage in
      let date = now - age
      let isRead = legs.contains { $0.from <= date && date <= $0.to ?? now }
      // What was not known at the last round could not be read then.
      let provedAt = coverage.interval(at: date)?.provedAt ?? now
      #expect(isRead || now.seconds - provedAt.seconds < every, "at \(now)")
    }
  }

  @Test func `an event accepted a day and a half after its date is found within hours`() {
    let accepted = start + 3 * Self.day
    var foundAt: Timestamp?
    follow(days: 10, plan) { now, legs, _ in
      let date = accepted - 36 * 3600
      guard now > accepted, foundAt == nil else { return }
      if legs.contains(where: { $0.from <= date && date <= $0.to ?? now }) { foundAt = now }
    }
    #expect((foundAt?.seconds ?? .max) <= accepted.seconds + 6 * 3600 + 600)
  }

  @Test func `without a schedule it would never be found`() {
    var plan = plan
    plan.schedule = nil
    follow(days: 10, plan) { now, legs, _ in
      #expect(legs.allSatisfy { $0.from >= now - 3600 - 600 })
    }
  }

  @Test func `the wide windows are read seldom`() {
    var whole = 0
    var week = 0
    follow(days: 21, plan) { now, legs, _ in
      let reach = now.seconds - (legs.map(\.from).min() ?? now).seconds
      if reach > 8 * Self.day { whole += 1 } else if reach > 2 * Self.day { week += 1 }
    }
    #expect(whole >= 2 && whole <= 4, "\(whole)")
    // A proof is told up to an hour too early, so that a window may be due twice in a row.
    #expect(week >= 21 * 4 - 8 && week <= 21 * 8, "\(week)")
  }

  @Test func `what was interrupted is due only for its rest`() {
    let now = start + 8 * Self.day
    let coverage = CoverageMap([
      proved(0, start - 100 * Self.day, at: start),
      proved(start - 100 * Self.day + 1, now, at: now),
    ])
    #expect(
      ReconcileSchedule().spansDue(over: coverage, now: now) == [0...(start - 100 * Self.day)])
  }

  @Test func `a proof from the future is no proof for the schedule`() {
    let coverage = CoverageMap([proved(0, start, at: start + 30 * Self.day)])
    #expect(ReconcileSchedule().spansDue(over: coverage, now: start) == [0...start])
  }
}

@Suite struct AnswerWatchTests {
  @Test func `one silent walk is enough where nothing was ever answered`() {
    var watch = AnswerWatch(limits: Limits())
    #expect(watch.givenUp == nil)
    watch.unanswered("nothing", isSilent: true)
    #expect(watch.givenUp == "nothing")
  }

  @Test func `an answer starts the count anew`() {
    var watch = AnswerWatch(limits: Limits())
    for _ in 0..<10 {
      watch.unanswered("no", isSilent: false)
      watch.unanswered("no", isSilent: false)
      #expect(watch.givenUp == nil)
      watch.answered(isWhole: true)
    }
    for _ in 0..<3 { watch.unanswered("no", isSilent: true) }
    #expect(watch.givenUp == "no")
  }

  @Test(arguments: [false, true])
  func `two walks in a row that lost every connection are enough, parts of answers or not`(
    isWhole: Bool
  ) {
    var watch = AnswerWatch(limits: Limits())
    for round in 1...3 {
      watch.lost("the connection was lost")
      #expect((watch.givenUp == nil) == (isWhole || round < 2))
      watch.answered(isWhole: isWhole)
    }
  }
}
