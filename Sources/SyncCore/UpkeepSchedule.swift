/// When a chore of the store is due: some time after there is reason for it, and again after every
/// failure, each wait twice the last one up to a bound.
///
/// It decides only when; what the chore is, and whether it went well, is its owner's business.
public struct UpkeepSchedule: Sendable, Hashable {
  private let firstWait: Duration
  private let waitMax: Duration
  private var wait: Duration
  /// When the chore is due, on the steady clock; nil: there is no reason for it.
  public private(set) var dueAt: Duration?

  public init(firstWait: Duration, waitMax: Duration) {
    self.firstWait = firstWait
    self.waitMax = waitMax
    wait = firstWait
  }

  /// There is reason for the chore, and it is best done when nothing else has happened for a
  /// while: the wait begins anew.
  public mutating func postpone(at now: Duration) {
    wait = firstWait
    dueAt = now + wait
  }

  /// There is reason for the chore; a wait that has begun goes on.
  public mutating func arm(at now: Duration) {
    if dueAt == nil { postpone(at: now) }
  }

  /// The chore begins. What gives a new reason for it from here on is not forgotten at its end.
  public mutating func begin() { dueAt = nil }

  /// The chore was tried and could not be done.
  public mutating func failed(at now: Duration) {
    wait = min(wait * 2, waitMax)
    dueAt = now + wait
  }

  /// The chore that had begun is done.
  public mutating func done() {
    if dueAt == nil { wait = firstWait }
  }
}
