import Nostr

/// The same rows in memory, for where LMDB cannot serve.
final class MemoryStore: CacheStore, @unchecked Sendable {
  // Unchecked: the state is changed only inside `gate.writing` and read inside `gate.reading`.
  private let gate = ReadGate()
  private let state = MemorySnapshot()

  func write(_ batch: inout RowBatch, meta: CacheMeta) throws(StoreError) {
    batch.sort()
    let sorted = batch
    gate.writing { state.apply(sorted, meta: meta) }
  }

  func read<Result, Failure: Error>(
    _ body: (any StoreSnapshot) throws(Failure) -> Result
  ) throws(StoreReadError<Failure>) -> Result {
    do throws(Failure) {
      return try gate.reading { () throws(Failure) -> Result in try body(state) }
    } catch {
      throw .body(error)
    }
  }

  func close() {}
}

/// The tables of a `MemoryStore`; readers see it only while no writer is in.
private final class MemorySnapshot: StoreSnapshot {
  private struct IDRow: Comparable {
    let prefix: UInt64
    let sequence: UInt64

    static func < (left: IDRow, right: IDRow) -> Bool {
      (left.prefix, left.sequence) < (right.prefix, right.sequence)
    }
  }

  private struct Bytes: Comparable {
    let key: UInt64
    let value: [UInt8]

    static func < (left: Bytes, right: Bytes) -> Bool { left.key < right.key }
    static func == (left: Bytes, right: Bytes) -> Bool { left.key == right.key }
  }

  private var storedMeta: CacheMeta?
  private var bodyRows = SortedBlocks<Bytes>()
  private var idRows = SortedBlocks<IDRow>()
  private var indexRows = SortedBlocks<IndexRow>()
  private var smallKeys = SortedBlocks<SmallKey>()
  private var smallValues: [SmallKey: [UInt8]] = [:]

  func apply(_ batch: RowBatch, meta: CacheMeta) {
    for body in batch.bodies {
      bodyRows.insert(Bytes(key: body.sequence, value: Array(batch.arena[body.range])))
    }
    for row in batch.ids { idRows.insert(IDRow(prefix: row.prefix, sequence: row.sequence)) }
    for row in batch.index { indexRows.insert(row) }
    for (key, value) in batch.smallSorted {
      smallKeys.insert(key)
      smallValues[key] = value
    }
    storedMeta = meta
  }

  func meta() throws(StoreError) -> CacheMeta? { storedMeta }

  func body(at sequence: UInt64) throws(StoreError) -> BodyRow? {
    guard let row = bodyRows.first(equalTo: Bytes(key: sequence, value: [])) else { return nil }
    return BodyRow(sequence: sequence, bytes: row.value)
  }

  func bodies(after sequence: UInt64, limit: Int) throws(StoreError) -> [BodyRow] {
    var result: [BodyRow] = []
    guard limit > 0, sequence < .max else { return result }
    bodyRows.ascend(from: Bytes(key: sequence + 1, value: [])) { row in
      if let body = BodyRow(sequence: row.key, bytes: row.value) { result.append(body) }
      return result.count < limit
    }
    return result
  }

  func sequences(idPrefix prefix: UInt64) throws(StoreError) -> [UInt64] {
    var result: [UInt64] = []
    idRows.ascend(from: IDRow(prefix: prefix, sequence: 0)) { row in
      guard row.prefix == prefix else { return false }
      result.append(row.sequence)
      return true
    }
    return result
  }

  func keys(from lower: IndexKey, through upper: IndexKey, limit: Int) throws(StoreError)
    -> [IndexKey]
  {
    var result: [IndexKey] = []
    var start = lower
    while result.count < limit {
      var found: IndexKey?
      indexRows.ascend(from: IndexRow(key: start, entry: .lowest)) { row in
        found = row.key
        return false
      }
      guard let key = found, key <= upper else { break }
      result.append(key)
      guard let next = key.successor else { break }
      start = next
    }
    return result
  }

  func count(_ key: IndexKey) throws(StoreError) -> Int {
    var result = 0
    indexRows.ascend(from: IndexRow(key: key, entry: .lowest)) { row in
      guard row.key == key else { return false }
      result += 1
      return true
    }
    return result
  }

  func entries(
    _ key: IndexKey, from lower: IndexEntry, through upper: IndexEntry, descending: Bool,
    limit: Int, into entries: inout [IndexEntry]
  ) throws(StoreError) {
    guard limit > 0, lower <= upper else { return }
    var found: [IndexEntry] = []
    let visit = { (row: IndexRow) -> Bool in
      guard row.key == key, row.entry >= lower, row.entry <= upper else { return false }
      found.append(row.entry)
      return found.count < limit
    }
    if descending {
      indexRows.descend(from: IndexRow(key: key, entry: upper), visit)
    } else {
      indexRows.ascend(from: IndexRow(key: key, entry: lower), visit)
    }
    entries.append(contentsOf: found)
  }

  func small(prefix: [UInt8], after key: SmallKey?, limit: Int) throws(StoreError)
    -> [(key: SmallKey, value: [UInt8])]
  {
    var result: [(key: SmallKey, value: [UInt8])] = []
    guard limit > 0 else { return result }
    smallKeys.ascend(from: key ?? SmallKey(prefix)) { candidate in
      if candidate == key { return true }
      guard candidate.bytes.starts(with: prefix) else { return false }
      result.append((key: candidate, value: smallValues[candidate] ?? []))
      return result.count < limit
    }
    return result
  }
}

extension IndexKey {
  /// The next possible key, or nil after the last.
  var successor: IndexKey? {
    if sub < .max { return IndexKey(space: space, hash: hash, sub: sub + 1) }
    if hash < .max { return IndexKey(space: space, hash: hash + 1) }
    if space < .max { return IndexKey(space: space + 1, hash: 0) }
    return nil
  }
}
