import Nostr

/// Filters, answered as a relay answers them.
extension Reading {
  /// The matching visible events of every filter, newest first, ties to the lowest id, each event
  /// once. A filter's own limit bounds that filter alone.
  func query(_ filters: [Filter], now: Timestamp, limit: Int?) throws(StoreError) -> [BodyRow] {
    var found: [UInt64: BodyRow] = [:]
    for filter in filters {
      try walk(filter, order: .newestFirst, now: now) { row in
        found[row.sequence] = row
        return true
      }
    }
    let sorted = found.values.sorted { left, right in
      left.createdAt != right.createdAt ? left.createdAt > right.createdAt : left.id < right.id
    }
    return limit.map { Array(sorted.prefix(max(0, $0))) } ?? sorted
  }

  /// How many visible events match at least one filter; the filters' limits do not matter.
  func count(_ filters: [Filter], now: Timestamp) throws(StoreError) -> Int {
    var unlimited = filters
    for index in unlimited.indices { unlimited[index].limit = nil }
    if unlimited.count == 1, let only = unlimited.first {
      var count = 0
      try walk(only, order: .falling, now: now) { _ in
        count += 1
        return true
      }
      return count
    }
    var found: Set<UInt64> = []
    for filter in unlimited {
      try walk(filter, order: .falling, now: now) { row in
        found.insert(row.sequence)
        return true
      }
    }
    return found.count
  }

  /// The positions of the visible events of a filter after `position`, in rising order.
  func items(_ filter: Filter, after position: EventPosition?, limit: Int, now: Timestamp)
    throws(StoreError) -> [EventPosition]
  {
    var bounded = filter
    bounded.limit = nil
    if let position {
      bounded.since = max(bounded.since ?? position.createdAt, position.createdAt)
    }
    var result: [EventPosition] = []
    guard limit > 0 else { return result }
    try walk(bounded, order: .rising, now: now) { row in
      if let position, row.position <= position { return true }
      result.append(row.position)
      return result.count < limit
    }
    return result
  }

  /// Visits the visible events of one filter in order, up to its limit, while `visit` says true.
  func walk(
    _ filter: Filter, order: EntryOrder, now: Timestamp, _ visit: (BodyRow) -> Bool
  ) throws(StoreError) {
    var left = filter.limit ?? .max
    guard left > 0 else { return }
    let prepared = PreparedFilter(filter)
    func offer(_ row: BodyRow) throws(StoreError) -> Bool {
      guard prepared.matches(row), try isVisible(row, now: now) else { return true }
      left -= 1
      return visit(row) && left > 0
    }
    switch try QueryPlan(filter, self) {
    case .nothing: return
    case .ids(let ids):
      for row in try rows(ids, order: order) {
        guard try offer(row) else { return }
      }
    case .keys(let keys):
      var merge = EntryMerge(keys, order: order, since: filter.since, until: filter.until)
      while let candidate = try merge.next(self) {
        guard try offer(try row(candidate.entry)) else { return }
      }
    }
  }

  private func rows(_ ids: [EventID], order: EntryOrder) throws(StoreError) -> [BodyRow] {
    var result: [BodyRow] = []
    for id in Set(ids) {
      if let row = try row(id) { result.append(row) }
    }
    return result.sorted { left, right in
      if left.createdAt != right.createdAt {
        return (left.createdAt > right.createdAt) == order.isNewestFirst
      }
      return (left.id < right.id) == order.hasLowIDsFirst
    }
  }
}
