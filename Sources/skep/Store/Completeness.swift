import EventLog
import Nostr
import SyncCore

/// What can be said about how complete an answer is, from what the log keeps.
struct Completeness {
  private let proved: [ProvedScopes.Row]
  private let recorded: [CoverageGap]
  private let relays: [RelayURL]
  private let now: Timestamp
  private let scopes: ProvedScopes

  /// - Parameter relays: Those of the community, the home first.
  init(coverage: [LoggedCoverage], gaps: [CoverageGap], relays: [RelayURL], now: Timestamp) {
    proved = coverage.compactMap { row in
      // A scope that is no filter is named by the log's own check; here it proves nothing.
      guard let filter = try? Filter(json: row.scope.utf8) else { return nil }
      return ProvedScopes.Row(relay: row.relay, scope: Scope(filter), intervals: row.intervals)
    }
    recorded = gaps
    self.relays = relays
    self.now = now
    scopes = ProvedScopes(proved, gaps: gaps, relays: relays)
  }

  init(_ log: LogReader, relays: [RelayURL], now: Timestamp) throws {
    try self.init(
      coverage: log.coverage(asOf: now), gaps: log.gaps(), relays: relays, now: now)
  }

  /// The verdict on the answer to `filter`.
  func verdict(on filter: Filter) -> ProvedScopes.Verdict {
    scopes.verdict(on: filter, now: now)
  }

  /// The verdict on an answer to several filters.
  func verdict(on filters: [Filter]) -> ProvedScopes.Verdict {
    let verdicts = filters.map(verdict)
    let gaps = verdicts.flatMap(\.gaps).reduce(into: [OpenSpan]()) { kept, gap in
      if !kept.contains(gap) { kept.append(gap) }
    }
    let isComplete = verdicts.allSatisfy(\.isComplete)
    return ProvedScopes.Verdict(
      isComplete: isComplete, gaps: gaps,
      asOf: isComplete ? verdicts.compactMap(\.asOf).min() : nil)
  }

  /// Every span that is not proved, by relay, of what was asked for: what is recorded, what no query
  /// has covered, and the groups of which nothing was proved at all.
  ///
  /// The time since the newest proof is not among them, where it reached the moment of asking: of
  /// that a relay must be asked first.
  func open(groups: [Text]) -> [OpenSpan] {
    if relays.isEmpty, proved.isEmpty { return verdict(on: Filter()).gaps }
    return relays.flatMap { relay in open(groups: groups, at: relay) }
  }

  private func open(groups: [Text], at relay: RelayURL) -> [OpenSpan] {
    let rows = proved.filter { $0.relay == relay }
    let gaps = recorded.filter { $0.relay == relay }
    let here = ProvedScopes(rows, gaps: gaps, relays: [relay])
    let known = gaps.flatMap { here.left(of: $0) }
    if rows.isEmpty && known.isEmpty { return here.verdict(on: Filter(), now: now).gaps }
    var spans = known.map { OpenSpan($0) }
    func add(_ filter: Filter) {
      for gap in here.verdict(on: filter, now: now).gaps where !isTold(gap, by: spans) {
        spans.append(gap)
      }
    }
    for row in rows { add(row.scope.filter) }
    func isKnown(_ filter: Filter) -> Bool {
      rows.contains { FilterRelation.contains($0.scope.filter, filter) }
        || known.contains { FilterRelation.contains($0.scope.filter, filter) }
    }
    // Without the list nobody knows what other groups there are.
    if !isKnown(SyncScopes.groupList.filter) { add(SyncScopes.groupList.filter) }
    for group in groups {
      let classes = SyncScopes.groupClasses(group).map(\.filter)
      let missing = classes.filter { !isKnown($0) }
      // A group of which nothing was asked is one line, not three.
      for filter in missing.count == classes.count ? [Filter.group(group)] : missing { add(filter) }
    }
    return spans
  }

  /// Whether the span is told already, whole or by the gap that was recorded for it.
  private func isTold(_ gap: OpenSpan, by spans: [OpenSpan]) -> Bool {
    spans.contains { told in
      told.scope == gap.scope && told.from <= gap.from && told.to >= gap.to
    } || recorded.contains { OpenSpan($0) == gap }
  }
}
