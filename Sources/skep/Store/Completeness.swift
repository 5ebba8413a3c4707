import EventLog
import Nostr
import SyncCore

/// What can be said about how complete an answer is.
///
/// Only what some relay's own answer proved counts, and only up to the moment it was asked. It never
/// infers anything from what is held.
struct Completeness {
  struct Verdict: Equatable {
    var isComplete: Bool
    var gaps: [CoverageGap]
  }

  private struct ProvedScope {
    let relay: RelayURL
    let scope: Scope
    let intervals: [CoverageInterval]
  }

  private let proved: [ProvedScope]
  private let recorded: [CoverageGap]
  private let now: Timestamp

  init(coverage: [LoggedCoverage], gaps: [CoverageGap], now: Timestamp) {
    proved = coverage.compactMap { row in
      // A scope that is no filter is named by the log's own check; here it proves nothing.
      guard let filter = try? Filter(json: row.scope.utf8) else { return nil }
      return ProvedScope(relay: row.relay, scope: Scope(filter), intervals: row.intervals)
    }
    recorded = gaps
    self.now = now
  }

  /// The verdict on the answer to `filter`, over the scopes that it touches.
  func verdict(on filter: Filter) -> Verdict {
    let from = max(filter.since ?? 0, 0)
    let touched = proved.filter { ScopeRelation.overlap($0.scope.filter, filter) }
    let touchedGaps = recorded.filter { gap in
      ScopeRelation.overlap(gap.scope.filter, filter) && gap.to >= from
        && gap.from <= filter.until ?? .init(.max)
        && !Self.left(of: [gap], beside: proved).isEmpty
    }
    let scopes = Dictionary(grouping: touched, by: \.scope.key)
    var gaps = touchedGaps
    var isAnyWhole = false
    for key in scopes.keys.sorted() {
      guard let rows = scopes[key] else { continue }
      let missing = Self.missing(rows, from: from, to: filter.until)
      // One scope that holds all that the filter asks for is enough, if it is proved.
      let isWide = rows.contains { ScopeRelation.contains($0.scope.filter, filter) }
      let hasGap = touchedGaps.contains { $0.scope.key == key }
      if isWide && missing.isEmpty && !hasGap { isAnyWhole = true }
      gaps += missing.filter { hole in
        !touchedGaps.contains { $0.scope == hole.scope && $0.from <= hole.to && $0.to >= hole.from }
      }
    }
    if isAnyWhole { return Verdict(isComplete: true, gaps: []) }
    return Verdict(isComplete: !touched.isEmpty && gaps.isEmpty, gaps: gaps)
  }

  /// What is left of recorded gaps beside proofs of other relays, and of wider scopes: what one
  /// replica lacks takes nothing from the others, and what all groups were read for is there.
  ///
  /// A proof of the same relay and scope closes nothing: it was written before the gap, which a
  /// failed attempt alone does not leave where something was proved.
  private static func left(of gaps: [CoverageGap], beside rows: [ProvedScope]) -> [CoverageGap] {
    gaps.flatMap { gap -> [CoverageGap] in
      var map = GapMap([GapMap.Entry(from: gap.from, to: gap.to, why: gap.why)])
      for row in rows where row.relay != gap.relay || row.scope != gap.scope {
        guard ScopeRelation.contains(row.scope.filter, gap.scope.filter) else { continue }
        for interval in row.intervals { map.subtract(from: interval.from, to: interval.to) }
      }
      return map.entries.map { entry in
        CoverageGap(
          relay: gap.relay, scope: gap.scope, from: entry.from, to: entry.to, why: entry.why)
      }
    }
  }

  /// What stands in the way where no relay was ever asked for anything that the filter touches.
  func unasked(_ filter: Filter, relays: [RelayURL]) -> [OpenSpan] {
    let (scope, from, to) = (Scope(filter), max(filter.since ?? 0, 0), filter.until ?? now)
    if relays.isEmpty {
      return [
        OpenSpan(relay: nil, scope: scope, from: from, to: to, why: "there is no relay to ask")
      ]
    }
    return relays.map {
      OpenSpan(relay: $0, scope: scope, from: from, to: to, why: "nothing of it was proved yet")
    }
  }

  /// Every span that is not proved, by relay: what is recorded, what no query has covered, and the
  /// groups of which nothing was proved at all.
  ///
  /// The time since the newest proof is not among them: of that a relay must be asked first.
  func open(relays: [RelayURL], groups: [Text]) -> [OpenSpan] {
    if relays.isEmpty, proved.isEmpty { return unasked(Filter(), relays: []) }
    return relays.flatMap { relay in
      let rows = proved.filter { $0.relay == relay }
      let known = Self.left(of: recorded.filter { $0.relay == relay }, beside: rows)
      var spans = known.map { OpenSpan($0) }
      if rows.isEmpty && known.isEmpty { return unasked(Filter(), relays: [relay]) }
      for row in rows {
        spans += holes([row], for: row.scope, beside: known)
      }
      for group in groups { spans += unproved(group, rows, known, relay) }
      return spans
    }
  }

  private func unproved(
    _ group: Text, _ rows: [ProvedScope], _ known: [CoverageGap], _ relay: RelayURL
  ) -> [OpenSpan] {
    let classes = [SyncScopes.contentKinds, SyncScopes.controlKinds, SyncScopes.moderationKinds]
      .map { Filter.group(group, kinds: $0) }
    let missing = classes.filter { filter in
      !rows.contains { ScopeRelation.contains($0.scope.filter, filter) }
        && !known.contains { ScopeRelation.contains($0.scope.filter, filter) }
    }
    // A group of which nothing was asked is one line, not three.
    let told = missing.count == classes.count ? [Filter.group(group)] : missing
    return told.flatMap { unasked($0, relays: [relay]) }
  }

  private func holes(
    _ rows: [ProvedScope], for scope: Scope, beside known: [CoverageGap]
  ) -> [OpenSpan] {
    Self.missing(rows, from: 0, to: nil).filter { hole in
      !known.contains { $0.scope == hole.scope && $0.from <= hole.to && $0.to >= hole.from }
    }.map { OpenSpan($0) }
  }

  /// The spans that no relay was proved to have been read for. Without an upper bound the answer
  /// is about the time up to the newest proof.
  private static func missing(
    _ rows: [ProvedScope], from: Timestamp, to: Timestamp?
  ) -> [CoverageGap] {
    guard let first = rows.first else { return [] }
    let intervals = rows.flatMap(\.intervals).sorted { $0.from < $1.from }
    guard let newest = intervals.map(\.to).max() else { return [] }
    let end = min(to ?? newest, newest)
    var next = from
    var holes: [CoverageGap] = []
    func hole(_ from: Timestamp, _ to: Timestamp) {
      holes.append(
        CoverageGap(
          relay: first.relay, scope: first.scope, from: from, to: to,
          why: "never proved complete"))
    }
    for interval in intervals where interval.to >= next {
      if next > end { break }
      if interval.from > next { hole(next, min(interval.from - 1, end)) }
      next = max(next, interval.to + 1)
    }
    if let to, to > newest { hole(max(next, from), to) }
    return holes
  }
}

/// How the events of two filters relate, times and limits aside.
enum ScopeRelation {
  /// Whether an event could match both.
  static func overlap(_ left: Filter, _ right: Filter) -> Bool {
    meets(left.ids, right.ids) && meets(left.authors, right.authors)
      && meets(left.kinds, right.kinds)
      && left.tags.allSatisfy { letter, values in
        // Without the letter on the other side, or on another one, nothing rules it out.
        right.tags[letter].map { meets(values, $0) } ?? true
      }
  }

  /// Whether every event that matches `inner` matches `outer`.
  static func contains(_ outer: Filter, _ inner: Filter) -> Bool {
    holds(outer.ids, inner.ids) && holds(outer.authors, inner.authors)
      && holds(outer.kinds, inner.kinds)
      && outer.tags.allSatisfy { letter, values in holds(values, inner.tags[letter]) }
  }

  private static func meets<Value: Hashable>(_ left: [Value]?, _ right: [Value]?) -> Bool {
    guard let left, let right else { return true }
    return !Set(left).isDisjoint(with: right)
  }

  private static func holds<Value: Hashable>(_ outer: [Value]?, _ inner: [Value]?) -> Bool {
    guard let outer else { return true }
    guard let inner else { return false }
    return Set(inner).isSubset(of: outer)
  }
}
