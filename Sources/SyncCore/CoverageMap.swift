public import Nostr

/// What is proved about one scope at one relay: closed spans of `created_at` that never overlap,
/// in ascending order.
///
/// It decides how proofs combine. It does not decide what is a proof, nor when a span is to be
/// proved again. Invariants: a second is covered exactly when some inserted span covered it and no
/// later `subtract` took it away; the time of proof told for a second is never later than that of
/// the newest proof inserted for it.
public struct CoverageMap: Hashable, Sendable {
  /// Neighbours proved within this many seconds of one another become one interval, under the
  /// earlier of the two times. Without it every page of a walk would stay a row for ever; with the
  /// earlier time the map says too little at most, never too much.
  public static let joinSeconds: Int64 = 3600

  public private(set) var intervals: [CoverageInterval]

  public init() { intervals = [] }

  /// - Parameter proofs: In any order, overlapping or not.
  public init(_ proofs: some Sequence<CoverageInterval>) {
    intervals = []
    for proof in proofs { insert(proof) }
  }

  public var isEmpty: Bool { intervals.isEmpty }

  /// Adds a proof. Where it overlaps an older one the newer time of proof holds, whichever came
  /// first.
  ///
  /// - Complexity: O(n) in the number of intervals.
  public mutating func insert(_ proof: CoverageInterval) {
    var kept: [CoverageInterval] = []
    kept.reserveCapacity(intervals.count + 2)
    var fresh = [proof]
    for old in intervals {
      if old.provedAt > proof.provedAt {
        kept.append(old)
        fresh = fresh.flatMap { $0.without(from: old.from, to: old.to) }
      } else {
        kept.append(contentsOf: old.without(from: proof.from, to: proof.to))
      }
    }
    kept.append(contentsOf: fresh)
    kept.sort { $0.from < $1.from }
    intervals = Self.joined(kept)
  }

  /// Takes a span away, as when what proved it turned out to be wrong.
  public mutating func subtract(from: Timestamp, to: Timestamp) {
    guard from <= to else { return }
    intervals = intervals.flatMap { $0.without(from: from, to: to) }
  }

  public func contains(_ time: Timestamp) -> Bool { interval(at: time) != nil }

  /// Whether every second of the span is covered; an empty span is.
  public func contains(from: Timestamp, to: Timestamp) -> Bool {
    gaps(from: from, to: to).isEmpty
  }

  /// The interval that covers `time`.
  ///
  /// - Complexity: O(log n).
  public func interval(at time: Timestamp) -> CoverageInterval? {
    var low = 0
    var high = intervals.count
    while low < high {
      let middle = (low + high) / 2
      if intervals[middle].to < time { low = middle + 1 } else { high = middle }
    }
    guard low < intervals.count, intervals[low].from <= time else { return nil }
    return intervals[low]
  }

  /// The parts of the span that nothing proves, ascending.
  ///
  /// - Parameter provedSince: Counts only intervals proved at this time or later.
  public func gaps(from: Timestamp, to: Timestamp, provedSince: Timestamp? = nil)
    -> [ClosedRange<Timestamp>]
  {
    guard from <= to else { return [] }
    var result: [ClosedRange<Timestamp>] = []
    var next = from
    for interval in intervals where interval.to >= from {
      if interval.from > to { break }
      if let provedSince, interval.provedAt < provedSince { continue }
      if interval.from > next { result.append(next...(interval.from - 1)) }
      // The last second of time itself has no successor to go on from.
      if interval.to >= to { return result }
      next = interval.to + 1
    }
    result.append(next...to)
    return result
  }

  /// The earliest time of proof among the intervals that cover the span; nil where a second of it
  /// is not covered.
  public func provedAt(from: Timestamp, to: Timestamp) -> Timestamp? {
    guard contains(from: from, to: to) else { return nil }
    return intervals.lazy.filter { $0.to >= from && $0.from <= to }.map(\.provedAt).min()
  }

  private static func joined(_ sorted: [CoverageInterval]) -> [CoverageInterval] {
    var result: [CoverageInterval] = []
    result.reserveCapacity(sorted.count)
    // From the newest on: what lies below it may be joined to the moment of asking, and only so.
    for interval in sorted.reversed() {
      if let next = result.last, let both = interval.joined(with: next) {
        result[result.count - 1] = both
      } else {
        result.append(interval)
      }
    }
    return result.reversed()
  }
}

extension CoverageInterval {
  /// What is left of this interval outside the span: none, one or two pieces.
  func without(from: Timestamp, to: Timestamp) -> [CoverageInterval] {
    if to < self.from || from > self.to { return [self] }
    var pieces: [CoverageInterval] = []
    if self.from < from { pieces.append(cut(from: self.from, to: from - 1)) }
    if self.to > to { pieces.append(cut(from: to + 1, to: self.to)) }
    return pieces
  }

  /// This interval and the one that begins right after it as one, where they may be told as one.
  fileprivate func joined(with next: CoverageInterval) -> CoverageInterval? {
    guard method == next.method, to < next.from, to + 1 == next.from else { return nil }
    let earlier = min(provedAt, next.provedAt)
    let later = max(provedAt, next.provedAt)
    guard later - CoverageMap.joinSeconds <= earlier else { return nil }
    let both = CoverageInterval(from: from, to: next.to, provedAt: earlier, method: method)
    // The earlier time must not make it look as if a chosen end had been the moment of asking.
    return both.isUpToItsProof == next.isUpToItsProof ? both : nil
  }

  private func cut(from: Timestamp, to: Timestamp) -> CoverageInterval {
    CoverageInterval(from: from, to: to, provedAt: provedAt, method: method)
  }
}

/// The spans of one scope at one relay that could not be proved, never overlapping, ascending.
public struct GapMap: Hashable, Sendable {
  /// A span, and a sentence that says why it is unproven.
  public struct Entry: Hashable, Sendable {
    public let from: Timestamp
    public let to: Timestamp
    public let why: Text

    public init(from: Timestamp, to: Timestamp, why: Text) {
      precondition(from <= to, "a gap ends before it begins")
      self.from = from
      self.to = to
      self.why = why
    }
  }

  public private(set) var entries: [Entry]

  /// - Parameter entries: In any order; a later one wins where two overlap.
  public init(_ entries: [Entry] = []) {
    self.entries = []
    for entry in entries { insert(entry) }
  }

  /// Adds a gap; where it overlaps an earlier one, the reason given last holds.
  public mutating func insert(_ entry: Entry) {
    subtract(from: entry.from, to: entry.to)
    let place = entries.firstIndex { $0.from > entry.to } ?? entries.count
    entries.insert(entry, at: place)
    entries = entries.reduce(into: []) { result, next in
      if let last = result.last, last.why == next.why, last.to + 1 == next.from {
        result[result.count - 1] = Entry(from: last.from, to: next.to, why: last.why)
      } else {
        result.append(next)
      }
    }
  }

  /// Takes a span away, because a proof now covers it.
  public mutating func subtract(from: Timestamp, to: Timestamp) {
    guard from <= to else { return }
    entries = entries.flatMap { old -> [Entry] in
      if to < old.from || from > old.to { return [old] }
      var pieces: [Entry] = []
      if old.from < from { pieces.append(Entry(from: old.from, to: from - 1, why: old.why)) }
      if old.to > to { pieces.append(Entry(from: to + 1, to: old.to, why: old.why)) }
      return pieces
    }
  }
}
