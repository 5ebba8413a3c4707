/// How many frames one relay may be sent, and whose turn comes first.
///
/// A relay counts REQ and EVENT against one small quota, so that a client's own backfill can use up
/// what the user's next message needs. The budget is a token bucket per relay that outlives its
/// connections. It begins low, grows while backfill is answered without complaint, and falls to
/// half of what was too much. It does not queue: the connection asks it before each frame.
public struct FrameBudget: Sendable, Hashable {
  public enum Priority: Int, Sendable, Hashable, Comparable, CaseIterable {
    case auth, userEvent, liveRequest, backfill

    public static func < (left: Priority, right: Priority) -> Bool {
      left.rawValue < right.rawValue
    }
  }

  /// Frames a second of a relay that nothing is known about: under the 10 a second of the most
  /// frugal relays seen.
  public static let rateAtFirst = 8.0
  public static let rateMin = 0.5
  public static let rateMax = 2048.0
  /// The pause where a relay says `rate-limited:` without saying how long.
  public static let pauseDefault: Duration = .seconds(10)
  public static let pauseMax: Duration = .seconds(3600)
  /// A rate that was held without a refusal for this long may double. A new connection is used for
  /// as long first, so that what the user wrote before is through by then.
  public static let growthInterval: Duration = .milliseconds(500)

  /// Frames a second.
  public private(set) var rate: Double
  /// The rate that a refusal has ruled out, if any.
  public private(set) var ceiling: Double?
  public private(set) var pausedUntil: Duration?
  private var tokens: Double
  private var refilledAt: Duration
  private var grownAt: Duration
  private var sentSinceGrowth = 0
  private var recent = RecentCount()

  public init(at now: Duration, rate: Double = FrameBudget.rateAtFirst) {
    self.rate = rate
    tokens = Self.burst(rate)
    refilledAt = now
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
      return nil
    }
    if let pausedUntil {
      if now < pausedUntil { return pausedUntil }
      self.pausedUntil = nil
      refilledAt = now
      tokens = 1
    }
    refill(now)
    let needed = 1 + reserve(for: priority)
    guard tokens >= needed else {
      return now + .seconds(max((needed - tokens) / rate, 0.001))
    }
    tokens -= 1
    sentSinceGrowth += 1
    recent.add(at: now)
    return nil
  }

  /// A connection is usable from now on: it is not asked for more before it has been used a while.
  public mutating func began(at now: Duration) {
    grownAt = max(grownAt, now)
    sentSinceGrowth = 0
  }

  /// The relay answered a backfill request in full: more may be tried.
  public mutating func answered(at now: Duration) {
    guard now - grownAt >= Self.growthInterval, Double(sentSinceGrowth) >= rate / 8 else { return }
    refill(now)
    rate = min(rate * 2, ceiling ?? Self.rateMax)
    grownAt = now
    sentSinceGrowth = 0
  }

  /// The relay said that it was too much.
  ///
  /// - Parameter retryAfter: The wait it named; a pause is only ever made longer.
  public mutating func refused(retryAfter: Duration?, at now: Duration) {
    let pause = min(retryAfter ?? Self.pauseDefault, Self.pauseMax)
    // Several frames of one burst are refused together; they are one lesson.
    if pausedUntil == nil {
      // What was really sent tells more than what would have been allowed, where it is not so
      // little that others must have used up what there was.
      let sent = Double(recent.inLastSecond(at: now))
      rate = max((sent >= 4 ? min(rate, sent) : rate) / 2, Self.rateMin)
      ceiling = min(ceiling ?? Self.rateMax, rate)
    }
    pausedUntil = max(pausedUntil ?? now, now + pause)
    tokens = 0
    refilledAt = now
    grownAt = now
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

/// How many frames went out in the last second, to an eighth of it.
private struct RecentCount: Sendable, Hashable {
  private var counts = [Int](repeating: 0, count: 8)
  private var latest: Int64 = 0

  mutating func add(at now: Duration) {
    move(to: now)
    counts[Int(latest & 7)] += 1
  }

  mutating func inLastSecond(at now: Duration) -> Int {
    move(to: now)
    return counts.reduce(0, +)
  }

  private mutating func move(to now: Duration) {
    let slot = Int64(now.inSeconds * 8)
    guard slot > latest else { return }
    for passed in max(latest + 1, slot - 7)...slot { counts[Int(passed & 7)] = 0 }
    latest = slot
  }
}

extension Duration {
  package var inSeconds: Double {
    Double(components.seconds) + Double(components.attoseconds) * 1e-18
  }
}
