/// How many AUTH signatures one connection may ask for: some at once, and then one at a time.
///
/// A relay that challenges anew every hour is answered for years. One that challenges without end
/// gets a signature an interval.
struct SignatureAllowance: Sendable, Hashable {
  private let atOnceMax: Int
  private let interval: Duration
  /// When all of them are there again.
  private var fullAt: Duration?

  init(_ limits: Limits) {
    atOnceMax = max(limits.authSignaturesMax, 1)
    interval = limits.authSignatureInterval
  }

  /// From when on one may be made; nil where one always may.
  var nextAt: Duration? { fullAt.map { $0 - interval * (atOnceMax - 1) } }

  func allows(at now: Duration) -> Bool { nextAt.map { $0 <= now } ?? true }

  mutating func spend(at now: Duration) {
    fullAt = max(fullAt ?? now, now) + interval
  }
}
