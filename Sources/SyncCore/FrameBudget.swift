/// How many frames one relay may be sent, and whose turn comes first.
///
/// A relay counts REQ and EVENT against one small quota, so that a client's own backfill can use up
/// what the user's next message needs. The budget is a token bucket per relay that outlives its
/// connections, under a bound for every second. Both begin at the ten frames a second of the most
/// frugal relays seen. They grow with time while backfill is answered without complaint or, where
/// nothing is ever written, with every answer; a complaint leaves half of what was too much, or less
/// where the wait that it names shows how small the quota is. It does not queue: the connection asks
/// it before each frame.
public struct FrameBudget: Sendable, Hashable {
  public enum Priority: Int, Sendable, Hashable, Comparable, CaseIterable {
    case auth, userEvent, liveRequest, backfill

    public static func < (left: Priority, right: Priority) -> Bool {
      left.rawValue < right.rawValue
    }
  }

  /// Frames a second of a relay that nothing is known about. What every second is bound to is a
  /// quarter more, which makes the 10 of the most frugal relays seen.
  public static let rateAtFirst = 8.0
  public static let rateMin = 0.5
  public static let rateMax = 2048.0
  /// The pause where a relay says `rate-limited:` without saying how long.
  public static let pauseDefault: Duration = .seconds(10)
  public static let pauseMax: Duration = .seconds(3600)
  /// What is left of a pause at most after a restart.
  public static let pauseKeptMax: Duration = .seconds(60)
  /// A rate that was held without a refusal for this long may double, where what the user writes
  /// may need room.
  public static let growthInterval: Duration = .milliseconds(500)
  /// How long a ceiling is believed before a little more is tried; each further refusal doubles it.
  public static let ceilingPatience: Duration = .seconds(60)
  public static let ceilingPatienceMax: Duration = .seconds(3600)
  /// What is used of a quota that a refusal has shown: the wait it names is in whole seconds, and
  /// saved tokens come on top of the rate.
  public static let quotaShare = 0.7

  /// Frames a second.
  public private(set) var rate: Double
  /// The rate that a refusal has ruled out, if any.
  public private(set) var ceiling: Double?
  public private(set) var pausedUntil: Duration?
  /// When the last pause was over and frames went out again.
  private var goneOnAt: Duration?
  private var tokens: Double
  private var refilledAt: Duration
  /// How long a new connection is used at the pace of the most frugal relays.
  private let patience: Duration
  private var trustedAt: Duration
  private var ceilingAt: Duration = .zero
  private var ceilingTrust = FrameBudget.ceilingPatience
  /// When the relay complained last.
  private(set) var refusedAt: Duration = .zero
  /// Complaints that taught something.
  public private(set) var refusals = 0
  private var grownAt: Duration
  private var recent = RecentCount()

  /// - Parameter patience: Nothing that the relay answers allows more for so long; zero where no
  ///   user's message can meet a quota that was used up.
  public init(
    at now: Duration, rate: Double = FrameBudget.rateAtFirst, patience: Duration = .seconds(1)
  ) {
    self.rate = rate
    self.patience = patience
    tokens = Self.burst(rate)
    refilledAt = now
    trustedAt = now + patience
    grownAt = now
  }

  /// Takes the right to send one frame.
  ///
  /// - Returns: Nil when the frame may go now, else when to ask again.
  public mutating func take(_ priority: Priority, at now: Duration) -> Duration? {
    // AUTH is never refused by our own count: nothing else works before it.
    if priority == .auth {
      refill(now)
      tokens = max(tokens - 1, 0)
      recent.add(at: now)
      return nil
    }
    if let pausedUntil {
      if now < pausedUntil { return pausedUntil }
      self.pausedUntil = nil
      goneOnAt = now
      refilledAt = now
      tokens = 1
    }
    refill(now)
    let needed = 1 + reserve(for: priority)
    guard tokens >= needed else {
      return now + .seconds(max((needed - tokens) / rate, 0.001))
    }
    // Saved tokens and new ones together must not make one second too full.
    guard Double(recent.inMoreThanSecond(at: now)) + needed <= max(rate * 1.25, needed) else {
      return recent.nextChange(after: now)
    }
    tokens -= 1
    recent.add(at: now)
    return nil
  }

  /// A connection is usable from now on. It is trusted when it has been used a while.
  public mutating func began(at now: Duration) { trustedAt = max(trustedAt, now + patience) }

  /// The relay answered a backfill request in full: more may be tried.
  public mutating func answered(at now: Duration) {
    guard now >= trustedAt else { return }
    refill(now)
    if let known = ceiling, now - ceilingAt >= ceilingTrust {
      ceiling = min(known * 1.25, Self.rateMax)
      ceilingAt = now
    }
    // A rate that is not used teaches nothing about a higher one.
    let isUsed = Double(recent.inLastSecond(at: now)) >= rate / 8
    if patience == .zero, ceiling == nil {
      // What was answered without any complaint so far may be followed by as much again.
      tokens = min(tokens + 1, Self.burst(rate))
      if isUsed { rate = min(rate + Self.rateAtFirst / 2, Self.rateMax) }
    } else if isUsed, now - grownAt >= Self.growthInterval {
      rate = min(rate * 2, ceiling ?? Self.rateMax)
      grownAt = now
    }
  }

  /// The relay said that it was too much.
  ///
  /// - Parameter retryAfter: The wait it named; a pause is only ever made longer.
  public mutating func refused(retryAfter: Duration?, at now: Duration) {
    let pause = min(retryAfter ?? Self.pauseDefault, Self.pauseMax)
    // Several frames of one burst are refused together; they are one lesson. So is what is refused
    // right after a pause: relays round the wait down, to whole seconds.
    let isSame = pausedUntil != nil || goneOnAt.map { now - $0 < .seconds(1) } ?? false
    if !isSame { learn(retryAfter: retryAfter, at: now) }
    ceilingAt = now
    refusedAt = now
    pausedUntil = max(pausedUntil ?? now, now + pause)
    tokens = 0
    refilledAt = now
    grownAt = now
  }

  /// Begins with what an earlier run has learned of the relay.
  ///
  /// - Parameters:
  ///   - ceiling: Nil where it has learned no rate, or one that counts no more.
  ///   - pausedUntil: Where the wait that the relay named is not over.
  public mutating func recall(
    ceiling: Double?, refusedAt: Duration, pausedUntil: Duration?, at now: Duration
  ) {
    // A relay that still means a longer wait says so again; whoever starts anew asked for it.
    self.pausedUntil = pausedUntil.map { min($0, now + Self.pauseKeptMax) }
    guard let ceiling else { return }
    self.ceiling = min(max(ceiling, Self.rateMin), Self.rateMax)
    self.refusedAt = refusedAt
    ceilingAt = now
    rate = min(rate, self.ceiling ?? rate)
    tokens = Self.burst(rate)
  }

  private mutating func learn(retryAfter: Duration?, at now: Duration) {
    // What was really sent tells more than what would have been allowed, where it is not so
    // little that others must have used up what there was.
    let sent = Double(recent.inLastSecond(at: now))
    var lesson = (sent >= 4 ? min(rate, sent) : rate) / 2
    if sent >= 4, let retryAfter, let quota = recent.quota(refilledAfter: retryAfter, at: now) {
      lesson = min(lesson, quota * Self.quotaShare)
    }
    rate = max(lesson, Self.rateMin)
    if ceiling != nil { ceilingTrust = min(ceilingTrust * 2, Self.ceilingPatienceMax) }
    ceiling = min(ceiling ?? Self.rateMax, rate)
    refusals += 1
  }

  /// What a frame of this priority leaves for those before it.
  private func reserve(for priority: Priority) -> Double {
    switch priority {
    case .auth, .userEvent: 0
    case .liveRequest: Self.burst(rate) >= 4 ? 1 : 0
    case .backfill: Self.burst(rate) >= 4 ? 2 : 0
    }
  }

  private mutating func refill(_ now: Duration) {
    guard now > refilledAt else { return }
    tokens = min(tokens + (now - refilledAt).inSeconds * rate, Self.burst(rate))
    refilledAt = now
  }

  private static func burst(_ rate: Double) -> Double { max(1, rate) }
}

/// How many frames went out of late, to an eighth of a second.
private struct RecentCount: Sendable, Hashable {
  /// Sixteen seconds: longer than the windows over which relays are known to count.
  private static let slots: Int64 = 128
  private var counts = [Int](repeating: 0, count: Int(slots))
  private var latest: Int64 = 0

  mutating func add(at now: Duration) {
    move(to: now)
    counts[place(latest)] += 1
  }

  mutating func inLastSecond(at now: Duration) -> Int {
    move(to: now)
    return (0..<8).reduce(0) { $0 + counts[place(latest - $1)] }
  }

  /// In a second at least, and a little before it: the relay's own second is not ours.
  mutating func inMoreThanSecond(at now: Duration) -> Int {
    move(to: now)
    return (0..<10).reduce(0) { $0 + counts[place(latest - $1)] }
  }

  /// The frames a second that a relay allows which counts over a sliding window and takes the next
  /// frame after `wait`.
  ///
  /// The oldest frame that it counts leaves its window then, so that the window is the wait and the
  /// time since that frame. Which frame it is the relay does not say; the one that makes the quota
  /// the largest underestimates it the least.
  ///
  /// - Returns: Nil where the wait is longer than what is remembered, as it is no such window's, or
  ///   so short that it says no more than how it was rounded.
  mutating func quota(refilledAfter wait: Duration, at now: Duration) -> Double? {
    guard wait >= .seconds(2), wait.inSeconds * 8 <= Double(Self.slots) else { return nil }
    move(to: now)
    var sent = 0
    var largest = 0.0
    for age in 0..<Self.slots {
      sent += counts[place(latest - age)]
      largest = max(largest, Double(sent) / (wait.inSeconds + Double(age + 1) / 8))
    }
    return largest
  }

  /// When a count may be smaller than it is now.
  func nextChange(after now: Duration) -> Duration {
    .milliseconds(125 * (max(latest, Self.slot(of: now)) + 1))
  }

  private static func slot(of now: Duration) -> Int64 { Int64(now.inSeconds * 8) }

  private func place(_ slot: Int64) -> Int {
    Int((slot % Self.slots + Self.slots) % Self.slots)
  }

  private mutating func move(to now: Duration) {
    let slot = Self.slot(of: now)
    guard slot > latest else { return }
    for passed in max(latest + 1, slot - Self.slots + 1)...slot { counts[place(passed)] = 0 }
    latest = slot
  }
}

extension Duration {
  package var inSeconds: Double {
    Double(components.seconds) + Double(components.attoseconds) * 1e-18
  }
}
