import Nostr

/// A store and, on top of it, rows that it lacks: how a reader without write access answers for
/// log entries that the writer's files do not have yet.
///
/// Since rows are a set, laying newer files under the same rows later changes nothing.
final class OverlayStore: CacheStore {
  private let base: any CacheStore
  private let extra = MemoryStore()

  init(base: any CacheStore) { self.base = base }

  func write(_ batch: inout RowBatch, meta: CacheMeta) throws(StoreError) {
    try extra.write(&batch, meta: meta)
  }

  func read<Result, Failure: Error>(
    _ body: (any StoreSnapshot) throws(Failure) -> Result
  ) throws(StoreReadError<Failure>) -> Result {
    do throws(StoreReadError<StoreReadError<Failure>>) {
      return try base.read { lower throws(StoreReadError<Failure>) in
        try extra.read { upper throws(Failure) in
          try body(OverlaySnapshot(lower: lower, upper: upper))
        }
      }
    } catch {
      switch error {
      case .store(let failure): throw .store(failure)
      case .body(let failure): throw failure
      }
    }
  }

  func close() { base.close() }
}

/// The union of two snapshots.
private final class OverlaySnapshot: StoreSnapshot {
  private let lower: any StoreSnapshot
  private let upper: any StoreSnapshot

  init(lower: any StoreSnapshot, upper: any StoreSnapshot) {
    self.lower = lower
    self.upper = upper
  }

  func meta() throws(StoreError) -> CacheMeta? {
    let (below, above) = (try lower.meta(), try upper.meta())
    guard let below, let above else { return above ?? below }
    return above.applied >= below.applied ? above : below
  }

  func body(at sequence: UInt64) throws(StoreError) -> BodyRow? {
    if let row = try upper.body(at: sequence) { return row }
    return try lower.body(at: sequence)
  }

  func bodies(after sequence: UInt64, limit: Int) throws(StoreError) -> [BodyRow] {
    let below = try lower.bodies(after: sequence, limit: limit)
    let above = try upper.bodies(after: sequence, limit: limit)
    return merged(below, above, limit: limit) { $0.sequence < $1.sequence }
  }

  func sequences(idPrefix prefix: UInt64) throws(StoreError) -> [UInt64] {
    let below = try lower.sequences(idPrefix: prefix)
    let above = try upper.sequences(idPrefix: prefix)
    return merged(below, above, limit: .max, by: <)
  }

  func keys(from first: IndexKey, through last: IndexKey, limit: Int) throws(StoreError)
    -> [IndexKey]
  {
    let below = try lower.keys(from: first, through: last, limit: limit)
    let above = try upper.keys(from: first, through: last, limit: limit)
    return merged(below, above, limit: limit, by: <)
  }

  /// At most too large by the entries that both have.
  func count(_ key: IndexKey) throws(StoreError) -> Int {
    try lower.count(key) + upper.count(key)
  }

  func entries(
    _ key: IndexKey, from first: IndexEntry, through last: IndexEntry, descending: Bool,
    limit: Int, into entries: inout [IndexEntry]
  ) throws(StoreError) {
    var below: [IndexEntry] = []
    var above: [IndexEntry] = []
    try lower.entries(
      key, from: first, through: last, descending: descending, limit: limit, into: &below)
    try upper.entries(
      key, from: first, through: last, descending: descending, limit: limit, into: &above)
    entries += merged(below, above, limit: limit) { descending ? $0 > $1 : $0 < $1 }
  }

  func small(prefix: [UInt8], after key: SmallKey?, limit: Int) throws(StoreError)
    -> [(key: SmallKey, value: [UInt8])]
  {
    let below = try lower.small(prefix: prefix, after: key, limit: limit)
    let above = try upper.small(prefix: prefix, after: key, limit: limit)
    return merged(below, above, limit: limit) { $0.key < $1.key }
  }

  /// Two sorted lists as one, an element that stands in both once.
  private func merged<Element>(
    _ below: [Element], _ above: [Element], limit: Int,
    by precedes: (Element, Element) -> Bool
  ) -> [Element] {
    if above.isEmpty { return below }
    var result: [Element] = []
    var (left, right) = (0, 0)
    while result.count < limit, left < below.count || right < above.count {
      if left == below.count {
        result.append(above[right])
        right += 1
      } else if right == above.count || precedes(below[left], above[right]) {
        result.append(below[left])
        left += 1
      } else {
        if !precedes(above[right], below[left]) { left += 1 }
        result.append(above[right])
        right += 1
      }
    }
    return result
  }
}
