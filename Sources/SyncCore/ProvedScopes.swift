public import Nostr

/// Decides whether the answer to a filter is proved to be complete: whether all that the filter asks
/// for lies in what relays were asked for and have answered to the end.
///
/// It never infers anything from what is held, and it errs to one side: what it cannot see to be
/// contained is not proved. It does not decide what is a proof.
///
/// * A filter is proved by scopes that contain it, and by parts: it is cut along its lists of values
///   until each part lies within single scopes. So two groups are proved by a scope each, but
///   everything never by all groups, nor a group by all the kinds that are known.
/// * A filter without `until` is answered as of the last time that it was asked for. A scope that
///   was read to a chosen end only was never asked for what came after it, and is not proved up to
///   any such time.
/// * A span recorded as a gap takes from the proofs of the same relay and scope, because it was
///   recorded after them; nothing from those of other relays, or of wider scopes.
///
/// Invariant: what lies within a filter that is complete is complete up to the same time.
public struct ProvedScopes: Sendable {
  /// What one relay was proved to have been read of one scope.
  public struct Row: Sendable {
    public let relay: RelayURL
    public let scope: Scope
    public let intervals: [CoverageInterval]

    public init(relay: RelayURL, scope: Scope, intervals: [CoverageInterval]) {
      self.relay = relay
      self.scope = scope
      self.intervals = intervals
    }
  }

  public struct Verdict: Hashable, Sendable {
    public var isComplete: Bool
    /// What is not proved, and why.
    public var gaps: [OpenSpan]
    /// Up to when a complete answer is proved; nil where it is not complete, or asks for nothing.
    public var asOf: Timestamp?

    public init(isComplete: Bool, gaps: [OpenSpan], asOf: Timestamp? = nil) {
      self.isComplete = isComplete
      self.gaps = gaps
      self.asOf = asOf
    }
  }

  /// A row without the spans that were recorded as gaps after it.
  private struct Proof {
    let relay: RelayURL
    let scope: Scope
    let spans: [ClosedRange<Timestamp>]
    /// The last moment up to which it was asked; nil where it was asked up to a chosen end only.
    let reach: Timestamp?

    var filter: Filter { scope.filter }
  }

  private let proofs: [Proof]
  private let recorded: [CoverageGap]
  private let relays: [RelayURL]
  /// The last moment up to which each scope was asked, whether it was answered or not.
  private let ends: [Scope: Timestamp]

  /// - Parameters:
  ///   - gaps: The spans that could not be proved.
  ///   - relays: Those of the community, which are named where nothing was asked.
  public init(_ rows: [Row], gaps: [CoverageGap], relays: [RelayURL]) {
    let own = Dictionary(grouping: gaps) { Place(relay: $0.relay, scope: $0.scope) }
    let proofs = rows.map { row in
      var map = CoverageMap(row.intervals)
      let reach = map.intervals.filter(\.isUpToItsProof).map(\.to).max()
      for gap in own[Place(relay: row.relay, scope: row.scope)] ?? [] {
        map.subtract(from: gap.from, to: gap.to)
      }
      return Proof(
        relay: row.relay, scope: row.scope, spans: map.intervals.map { $0.from...$0.to },
        reach: reach)
    }
    self.proofs = proofs
    self.relays = relays
    recorded = gaps
    ends = Self.ends(proofs, gaps)
  }

  private struct Place: Hashable {
    let relay: RelayURL
    let scope: Scope
  }

  /// A span that was asked for since and could not be proved moves the end on: an answer without it
  /// is no longer the last one. What one relay lacks of that, another may have.
  private static func ends(_ proofs: [Proof], _ gaps: [CoverageGap]) -> [Scope: Timestamp] {
    var reaches: [Scope: [(relay: RelayURL, reach: Timestamp)]] = [:]
    for proof in proofs {
      if let reach = proof.reach { reaches[proof.scope, default: []].append((proof.relay, reach)) }
    }
    var ends = reaches.compactMapValues { $0.map(\.reach).max() }
    for gap in gaps {
      guard let known = reaches[gap.scope], let end = ends[gap.scope] else { continue }
      let isElsewhere = known.contains { $0.relay != gap.relay && $0.reach >= gap.from }
      if !isElsewhere { ends[gap.scope] = max(end, gap.to) }
    }
    return ends
  }

  /// The verdict on the answer to `filter`, whose `limit` is not looked at.
  public func verdict(on filter: Filter, now: Timestamp) -> Verdict {
    var search = Search(from: max(filter.since ?? 0, 0), until: filter.until, now: now)
    let whole = Scope(filter).filter
    if search.from <= filter.until ?? Timestamp(.max), !whole.asksForNothing {
      visit(whole, proofs.indices.filter { canHoldPart(proofs[$0].filter, of: whole) }, &search)
    }
    let isComplete = search.gaps.isEmpty
    return Verdict(
      isComplete: isComplete, gaps: search.gaps, asOf: isComplete ? search.asOf : nil)
  }

  // MARK: Cutting

  private struct Search {
    let from: Timestamp
    let until: Timestamp?
    let now: Timestamp
    var asOf: Timestamp?
    var gaps: [OpenSpan] = []

    mutating func add(_ gap: OpenSpan) {
      if !gaps.contains(gap) { gaps.append(gap) }
    }
  }

  /// Whether some cut of `part` could lie within `outer`.
  private func canHoldPart(_ outer: Filter, of part: Filter) -> Bool {
    outer.search == nil
      && FilterField.restricted(in: outer).allSatisfy {
        FilterField.restricted(in: part).contains($0)
      } && FilterRelation.overlap(outer, part)
  }

  /// - Parameter candidates: The proofs that could hold `part` or a cut of it.
  private func visit(_ part: Filter, _ candidates: [Int], _ search: inout Search) {
    let holding = candidates.filter { FilterRelation.contains(proofs[$0].filter, part) }
    let outcome = missing(holding, search)
    if outcome.spans.isEmpty {
      search.asOf = [search.asOf, outcome.asOf].compactMap { $0 }.min()
      return
    }
    if holding.count < candidates.count, let cut = cut(part, candidates, holding) {
      for (piece, places) in cut {
        visit(
          piece, places.filter { canHoldPart(proofs[$0].filter, of: piece) }, &search)
      }
      return
    }
    explain(part, holding, outcome.spans, &search)
  }

  /// Parts of `part`, apart where one of the candidates tells them apart; nil where none does.
  private func cut(
    _ part: Filter, _ candidates: [Int], _ holding: [Int]
  ) -> [(Filter, [Int])]? {
    let filters = candidates.map { proofs[$0].filter }
    for field in FilterField.restricted(in: part) {
      let parts = field.parts(of: part, by: filters)
      if parts.count > 1 { return parts.map { ($0.part, $0.others.map { candidates[$0] }) } }
    }
    return nil
  }

  // MARK: Time

  /// What the proofs leave open together, or up to when they leave nothing open.
  private func missing(
    _ holding: [Int], _ search: Search
  ) -> (spans: [ClosedRange<Timestamp>], asOf: Timestamp?) {
    let ends =
      search.until.map { [$0] }
      ?? Set(holding.map { proofs[$0].scope }).compactMap { self.ends[$0] }
    let spans = holding.flatMap { proofs[$0].spans }.sorted { $0.lowerBound < $1.lowerBound }
    var holes: [ClosedRange<Timestamp>] = []
    var next = search.from
    let last = ends.max().flatMap { $0 >= search.from ? $0 : nil } ?? max(search.now, search.from)
    for span in spans where span.upperBound >= next {
      if span.lowerBound > last { break }
      if span.lowerBound > next { holes.append(next...(span.lowerBound - 1)) }
      // The last second of time itself has no successor to go on from.
      if span.upperBound >= last {
        next = span.upperBound
        break
      }
      next = span.upperBound + 1
    }
    let isToTheEnd = spans.contains { $0.contains(last) }
    if !isToTheEnd { holes.append(next...last) }
    // One scope may have been read without a hole up to an earlier time than another.
    let firstHole = holes.first?.lowerBound
    let whole = ends.filter { end in
      end >= search.from && (firstHole.map { end < $0 } ?? true)
    }
    if let asOf = whole.max() { return ([], asOf) }
    return holes.isEmpty ? ([], last) : (holes, nil)
  }

  // MARK: Reasons

  private func explain(
    _ part: Filter, _ holding: [Int], _ spans: [ClosedRange<Timestamp>], _ search: inout Search
  ) {
    let told = recorded.filter { gap in
      FilterRelation.overlap(gap.scope.filter, part)
        && spans.contains { gap.from <= $0.upperBound && gap.to >= $0.lowerBound }
        && !left(of: gap).isEmpty
    }
    for gap in told { search.add(OpenSpan(gap)) }
    var rest = GapMap(spans.map { .init(from: $0.lowerBound, to: $0.upperBound, why: "") })
    let explaining = told.filter { FilterRelation.contains($0.scope.filter, part) }
    for gap in explaining { rest.subtract(from: gap.from, to: gap.to) }
    let newest = holding.flatMap { proofs[$0].spans }.map(\.upperBound).max()
    for span in rest.entries {
      // What was asked for and refused was not asked for since.
      if holding.isEmpty, search.until == nil,
        explaining.contains(where: { $0.to + 1 == span.from })
      {
        continue
      }
      let scope = Scope(part)
      if let first = holding.first {
        let why: Text =
          span.from > newest ?? Timestamp(.max)
          ? "nothing newer was asked for" : "never proved complete"
        search.add(
          OpenSpan(
            relay: proofs[first].relay, scope: scope, from: span.from, to: span.to, why: why))
      } else {
        for gap in unasked(part, from: span.from, to: span.to) { search.add(gap) }
      }
    }
  }

  /// What stands in the way where no relay was ever asked for all of `filter`.
  private func unasked(_ filter: Filter, from: Timestamp, to: Timestamp) -> [OpenSpan] {
    let scope = Scope(filter)
    if relays.isEmpty {
      return [
        OpenSpan(relay: nil, scope: scope, from: from, to: to, why: "there is no relay to ask")
      ]
    }
    return relays.map { relay in
      let isTouched = proofs.contains {
        $0.relay == relay && FilterRelation.overlap($0.filter, filter)
      }
      return OpenSpan(
        relay: relay, scope: scope, from: from, to: to,
        why: isTouched ? "only parts of it were asked for" : "it was never asked for")
    }
  }

  /// What is left of a recorded gap beside proofs of other relays, and of wider scopes: what one
  /// replica lacks takes nothing from the others, and what all groups were read for is there. What
  /// those lack by gaps of their own they do not close here either.
  ///
  /// A proof of the same relay and scope closes nothing: it was written before the gap, which a
  /// failed attempt alone does not leave where something was proved.
  public func left(of gap: CoverageGap) -> [CoverageGap] {
    var map = GapMap([GapMap.Entry(from: gap.from, to: gap.to, why: gap.why)])
    for proof in proofs where proof.relay != gap.relay || proof.scope != gap.scope {
      guard FilterRelation.contains(proof.filter, gap.scope.filter) else { continue }
      for span in proof.spans { map.subtract(from: span.lowerBound, to: span.upperBound) }
    }
    return map.entries.map { entry in
      CoverageGap(
        relay: gap.relay, scope: gap.scope, from: entry.from, to: entry.to, why: entry.why)
    }
  }
}

extension Filter {
  /// Whether a list without values rules every event out.
  fileprivate var asksForNothing: Bool {
    ids?.isEmpty == true || authors?.isEmpty == true || kinds?.isEmpty == true
      || tags.values.contains { $0.isEmpty }
  }
}
