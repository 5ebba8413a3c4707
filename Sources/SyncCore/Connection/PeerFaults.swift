/// What one relay sent that it should not have, counted by reason.
///
/// Events whose id or signature is wrong are not among them: they are refused at the door of the
/// log, and counted there.
public struct PeerFaults: Sendable, Hashable {
  public enum Reason: String, Sendable, Hashable, CaseIterable {
    /// A frame that is no message of the protocol.
    case malformedFrame = "malformed-frame"
    /// A frame over the limit; it was dropped unread.
    case oversizedFrame = "oversized-frame"
    /// An EVENT whose event cannot be read.
    case unreadableEvent = "unreadable-event"
    /// A frame for a subscription that was never opened on this connection.
    case unknownSubscription = "unknown-subscription"
    /// An event that matches no filter of its subscription.
    case foreignEvent = "foreign-event"
    /// An event that matches, but for the time that was asked for.
    case outsideTimes = "outside-times"
    /// A live feed that did not bring what asking found later.
    case deafFeed = "deaf-feed"
  }

  private var counts: [Reason: Int] = [:]
  /// All of them together; it only grows.
  public private(set) var total = 0

  public init() {}

  public subscript(reason: Reason) -> Int { counts[reason] ?? 0 }

  package mutating func count(_ reason: Reason) {
    counts[reason, default: 0] += 1
    total += 1
  }

  /// What came since `earlier`, in the order of the reasons.
  public func since(_ earlier: PeerFaults) -> [(reason: Reason, count: Int)] {
    Reason.allCases.compactMap { reason in
      let count = self[reason] - earlier[reason]
      return count > 0 ? (reason: reason, count: count) : nil
    }
  }
}

/// Decides when what a relay did wrong is written down: the first at once, so that a short run
/// tells of it, and then once an interval, so that a relay that only lies does not wear the disk.
public struct FaultLedger: Sendable {
  private let interval: Duration
  private var written = PeerFaults()
  private var writtenAt: Duration?

  public init(interval: Duration) { self.interval = interval }

  /// When something is to be written; nil where nothing is.
  public func due(_ faults: PeerFaults) -> Duration? {
    guard faults.total > written.total else { return nil }
    return writtenAt.map { $0 + interval } ?? .zero
  }

  /// What is to be written now, and is taken for written from here on.
  public mutating func take(
    _ faults: PeerFaults, at now: Duration
  ) -> [(reason: PeerFaults.Reason, count: Int)] {
    guard faults.total > written.total else { return [] }
    defer {
      written = faults
      writtenAt = now
    }
    return faults.since(written)
  }
}
