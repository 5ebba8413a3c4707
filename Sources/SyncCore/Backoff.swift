/// When to try again after a failure: full jitter over a doubling span.
///
/// The count of failures is not forgotten when a connection opens but only once it has held for a
/// while; a relay that accepts and drops would otherwise be called on without pause.
public struct Backoff: Sendable, Hashable {
  public static let base: Duration = .seconds(1)
  public static let cap: Duration = .seconds(30)
  public static let stableAfter: Duration = .seconds(60)
  /// Attempts that may follow one another as the jitter has it; after these, one in each
  /// `attemptSpacing`. With the first attempt that makes at most 30 in ten minutes.
  public static let attemptsAtOnceMax = 5.0
  public static let attemptSpacing: Duration = .seconds(25)

  /// Failures since the last stable connection.
  public private(set) var failures = 0
  private var openedAt: Duration?
  private var attemptsLeft = Backoff.attemptsAtOnceMax
  private var countedAt: Duration?

  public init() {}

  /// The connection is usable from now on.
  public mutating func opened(at now: Duration) {
    if openedAt == nil { openedAt = now }
  }

  /// The connection failed or ended.
  ///
  /// - Parameter fraction: A random number in `0..<1`.
  /// - Returns: How long to wait before the next attempt.
  public mutating func failed(at now: Duration, fraction: Double) -> Duration {
    if let openedAt, now - openedAt >= Self.stableAfter { reset() }
    openedAt = nil
    failures = min(failures + 1, 64)
    // Those who lost a relay at the same moment have buckets that fill in step: so this wait has
    // its jitter too, or all of them would come back together.
    let spacing = spacing(at: now) * (1 + fraction / 5)
    return max(Self.delay(attempt: failures, fraction: fraction), spacing)
  }

  /// Starts anew, as when the user asks for a connection.
  public mutating func reset() {
    failures = 0
    openedAt = nil
    attemptsLeft = Self.attemptsAtOnceMax
    countedAt = nil
  }

  /// Full jitter alone calls about every 15 s on a relay that accepts and drops; this takes one
  /// attempt from the bucket and returns how long to wait until it was there.
  private mutating func spacing(at now: Duration) -> Duration {
    let spacing = Self.attemptSpacing.inSeconds
    if let countedAt {
      attemptsLeft += (now - countedAt).inSeconds / spacing
      attemptsLeft = min(attemptsLeft, Self.attemptsAtOnceMax)
    }
    countedAt = now
    attemptsLeft -= 1
    return attemptsLeft >= 0 ? .zero : .seconds(-attemptsLeft * spacing)
  }

  /// A wait of `0 ..< min(cap, base · 2^(attempt−1))`.
  ///
  /// - Parameter attempt: From 1 on.
  public static func delay(
    attempt: Int, fraction: Double, base: Duration = Backoff.base, cap: Duration = Backoff.cap
  ) -> Duration {
    let span = min(cap, base * (1 << min(max(attempt - 1, 0), 16)))
    return span * fraction
  }
}
