import Nostr

/// How far a store is, and of which log.
struct CacheMeta: Hashable, Sendable {
  /// The log's own identity.
  var logID: [UInt8]
  /// The version of the folds that made the rows.
  var foldVersion: UInt32
  /// The last entry whose rows are in.
  var applied: UInt64
  /// What that entry was, so that a log which was put back and went on differently is noticed.
  var lastEntry: UInt64

  init(logID: [UInt8], foldVersion: UInt32, applied: UInt64 = 0, lastEntry: UInt64 = 0) {
    self.logID = logID
    self.foldVersion = foldVersion
    self.applied = applied
    self.lastEntry = lastEntry
  }

  var bytes: [UInt8] {
    var result: [UInt8] = []
    result.append(integer: UInt64(foldVersion))
    result.append(integer: applied)
    result.append(integer: lastEntry)
    result.append(contentsOf: logID)
    return result
  }

  init?(bytes: [UInt8]) {
    guard bytes.count >= 24 else { return nil }
    let words = bytes.withUnsafeBytes { raw in
      (0..<3).map { UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: $0 * 8, as: UInt64.self)) }
    }
    guard let version = UInt32(exactly: words[0]) else { return nil }
    self.init(
      logID: Array(bytes[24...]), foldVersion: version, applied: words[1], lastEntry: words[2])
  }
}

/// What went wrong in a store; the cache answers each by itself, and nobody else hears of it.
enum StoreError: Error, Hashable, Sendable {
  /// The map, the budget or the disk is full.
  case full(String)
  /// A row is not what was written: the store is not to be trusted any more.
  case damaged(String)
  /// The operating system said no.
  case unavailable(String)
}

/// A home for rows. LMDB and memory are the two, behind one contract.
protocol CacheStore: AnyObject, Sendable {
  /// Writes the rows and the watermark in one transaction: both are there afterwards, or neither.
  func write(_ batch: inout RowBatch, meta: CacheMeta) throws(StoreError)

  /// Calls `body` with one state of the store that no writer changes meanwhile. Nothing of it may
  /// be kept beyond the call.
  func read<Result, Failure: Error>(
    _ body: (any StoreSnapshot) throws(Failure) -> Result
  ) throws(StoreReadError<Failure>) -> Result

  /// Closes files; a store that was closed throws `unavailable`.
  func close()
}

/// Tells a snapshot that could not be taken from a failure of the reader's own.
enum StoreReadError<Failure: Error>: Error {
  case store(StoreError)
  case body(Failure)
}

/// One state of a store. All lists come in the order of their bytes and in bounded pieces.
protocol StoreSnapshot: AnyObject {
  func meta() throws(StoreError) -> CacheMeta?

  func body(at sequence: UInt64) throws(StoreError) -> BodyRow?

  /// The first bodies after `sequence`, in order.
  func bodies(after sequence: UInt64, limit: Int) throws(StoreError) -> [BodyRow]

  /// The sequences of events whose id begins with `prefix`.
  func sequences(idPrefix prefix: UInt64) throws(StoreError) -> [UInt64]

  /// The first index keys of a closed range that have entries.
  func keys(from lower: IndexKey, through upper: IndexKey, limit: Int) throws(StoreError)
    -> [IndexKey]

  /// The number of entries of a key, without reading them.
  func count(_ key: IndexKey) throws(StoreError) -> Int

  /// Appends entries of a key between two bounds, both included, to `entries`: the lowest ones in
  /// rising order, or the highest ones in falling order.
  func entries(
    _ key: IndexKey, from lower: IndexEntry, through upper: IndexEntry, descending: Bool,
    limit: Int, into entries: inout [IndexEntry]
  ) throws(StoreError)

  /// Small rows whose key begins with `prefix` and comes after `key`, in order.
  func small(prefix: [UInt8], after key: SmallKey?, limit: Int) throws(StoreError)
    -> [(key: SmallKey, value: [UInt8])]
}
