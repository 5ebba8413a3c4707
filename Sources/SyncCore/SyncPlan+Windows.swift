public import Nostr

extension SyncPlan {
  /// This plan with `provesAll`.
  public var provingAll: SyncPlan {
    var plan = self
    plan.provesAll = true
    return plan
  }

  /// What of a scope is compared where NIP-77 is served, newest first: a comparison costs little,
  /// however much it covers.
  public func windows(over coverage: CoverageMap, now: Timestamp) -> [HistoryWalk.Leg] {
    guard provesAll else { return legs(over: coverage, now: now) }
    return [HistoryWalk.Leg(from: since ?? 0, to: until)]
  }

  /// The parts of `legs` that lie within `left`, newest first.
  public static func legs(
    _ legs: [HistoryWalk.Leg], within left: [HistoryWalk.Leg]
  ) -> [HistoryWalk.Leg] {
    legs.flatMap { leg in
      left.sorted { $0.from > $1.from }.compactMap { part in
        let from = max(leg.from, part.from)
        let to = [leg.to, part.to].compactMap { $0 }.min()
        if let to, from > to { return nil }
        return HistoryWalk.Leg(from: from, to: to)
      }
    }
  }
}
