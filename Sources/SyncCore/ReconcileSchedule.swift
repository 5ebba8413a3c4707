public import Nostr

/// Decides what is read again although it was proved, because `since` is about an author's date and
/// a relay may accept an event long after it: the newest hour often, a day and a week less so, all
/// of it seldom.
///
/// It keeps no state. When a span was proved last stands in the coverage, which is in the log; so
/// the schedule goes on across restarts, and a walk that was interrupted is due only for its rest.
public struct ReconcileSchedule: Sendable, Hashable {
  public struct Window: Sendable, Hashable {
    /// How far back from now it reaches, in seconds; nil for the beginning.
    public let length: Int64?
    /// After how many seconds a proof in it is too old.
    public let every: Int64

    public init(length: Int64?, every: Int64) {
      self.length = length
      self.every = every
    }
  }

  public var windows: [Window]

  public init(windows: [Window] = ReconcileSchedule.usual) { self.windows = windows }

  public static let usual = [
    Window(length: 3600, every: 600), Window(length: 86_400, every: 3600),
    Window(length: 7 * 86_400, every: 6 * 3600), Window(length: nil, every: 7 * 86_400),
  ]

  /// The spans that are to be proved again, ascending and apart. What was never proved is not among
  /// them.
  ///
  /// Once a proof in a window is too old, all of the window that was not proved lately is due with
  /// it: else each old proof would come due by itself, and a request be spent on every sliver.
  ///
  /// - Complexity: O(n) in the number of intervals, for each window.
  public func spansDue(over coverage: CoverageMap, now: Timestamp) -> [ClosedRange<Timestamp>] {
    var due: [ClosedRange<Timestamp>] = []
    for window in windows {
      let from = window.length.map { max(now - $0, 0) } ?? 0
      let inside = coverage.intervals.filter { $0.to >= from && $0.from <= now }
      guard inside.contains(where: { !Self.isProved($0, within: window.every, of: now) }) else {
        continue
      }
      for interval in inside where !Self.isProved(interval, within: window.every / 2, of: now) {
        due.append(max(interval.from, from)...min(interval.to, now))
      }
    }
    return Self.joined(due)
  }

  private static func isProved(
    _ interval: CoverageInterval, within seconds: Int64, of now: Timestamp
  ) -> Bool {
    interval.provedAt > now - seconds && interval.isBelievable(at: now)
  }

  /// Ranges in any order as ascending ones apart from one another.
  static func joined(_ ranges: [ClosedRange<Timestamp>]) -> [ClosedRange<Timestamp>] {
    var result: [ClosedRange<Timestamp>] = []
    for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
      if let last = result.last, range.lowerBound <= last.upperBound + 1 {
        result[result.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
      } else {
        result.append(range)
      }
    }
    return result
  }
}
