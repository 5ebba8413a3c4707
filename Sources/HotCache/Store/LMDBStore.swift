import CLMDB
import Nostr

/// The rows in LMDB.
final class LMDBStore: CacheStore {
  private let environment: LMDBEnvironment

  init(environment: LMDBEnvironment) { self.environment = environment }

  func write(_ batch: inout RowBatch, meta: CacheMeta) throws(StoreError) {
    batch.sort()
    let sorted = batch
    try environment.write { transaction throws(StoreError) in
      let writer = LMDBWriter(transaction: transaction, tables: environment.tables)
      try writer.write(sorted, meta: meta)
    }
  }

  func read<Result, Failure: Error>(
    _ body: (any StoreSnapshot) throws(Failure) -> Result
  ) throws(StoreReadError<Failure>) -> Result {
    try environment.read { transaction throws(Failure) in
      let snapshot = LMDBSnapshot(transaction: transaction, tables: environment.tables)
      defer { snapshot.end() }
      return try body(snapshot)
    }
  }

  /// Writes everything to the disk, so that not even a power cut costs a rebuild.
  func sync() throws(StoreError) { try environment.sync() }

  func close() { environment.close() }
}

/// Puts one batch into one transaction.
private struct LMDBWriter {
  let transaction: OpaquePointer
  let tables: LMDBEnvironment.Tables

  func write(_ batch: RowBatch, meta: CacheMeta) throws(StoreError) {
    try writeBodies(batch)
    try writeIDs(batch)
    try writeIndex(batch)
    for (key, value) in batch.smallSorted {
      try writeSmall(key.bytes, value)
    }
    try writeSmall(SmallRow.metaKey, meta.bytes)
  }

  private func writeBodies(_ batch: RowBatch) throws(StoreError) {
    guard let first = batch.bodies.first else { return }
    try withCursor(tables.bodies) { cursor throws(StoreError) in
      var key = MDB_val()
      var value = MDB_val()
      var flags: UInt32 = 0
      let code = mdb_cursor_get(cursor, &key, &value, MDB_LAST)
      if code == MDB_NOTFOUND {
        flags = UInt32(MDB_APPEND)
      } else {
        try LMDBEnvironment.check(code, "reading the last body")
        // Appended rows fill their pages to the brim.
        if key.mv_size == 8, key.mv_data.loadUnaligned(as: UInt64.self) < first.sequence {
          flags = UInt32(MDB_APPEND)
        }
      }
      try batch.arena.withUnsafeBytesTyped { arena throws(StoreError) in
        for body in batch.bodies {
          var sequence = body.sequence
          let piece = UnsafeRawBufferPointer(rebasing: arena[body.range])
          let code = withUnsafeMutableBytes(of: &sequence) { raw in
            var key = MDB_val(mv_size: 8, mv_data: raw.baseAddress)
            var value = MDB_val(
              mv_size: piece.count, mv_data: UnsafeMutableRawPointer(mutating: piece.baseAddress))
            return mdb_cursor_put(cursor, &key, &value, flags)
          }
          try LMDBEnvironment.check(code, "writing a body")
        }
      }
    }
  }

  private func writeIDs(_ batch: RowBatch) throws(StoreError) {
    try withCursor(tables.ids) { cursor throws(StoreError) in
      for row in batch.ids {
        var prefix = row.prefix.bigEndian
        var sequence = FiveBytes(row.sequence)
        let code = withUnsafeMutableBytes(of: &prefix) { keyBytes in
          withUnsafeMutableBytes(of: &sequence) { valueBytes in
            var key = MDB_val(mv_size: 8, mv_data: keyBytes.baseAddress)
            var value = MDB_val(mv_size: 5, mv_data: valueBytes.baseAddress)
            return mdb_cursor_put(cursor, &key, &value, 0)
          }
        }
        try LMDBEnvironment.check(code, "writing an id")
      }
    }
  }

  private func writeIndex(_ batch: RowBatch) throws(StoreError) {
    let rows = batch.index
    var keySpace: [UInt8] = Array(repeating: 0, count: IndexKey.byteCount)
    var entrySpace: [UInt8] = Array(repeating: 0, count: IndexEntry.byteCount)
    try withCursor(tables.index) { cursor throws(StoreError) in
      try keySpace.withUnsafeMutableBytesTyped { keyBytes throws(StoreError) in
        try entrySpace.withUnsafeMutableBytesTyped { entryBytes throws(StoreError) in
          var start = 0
          while start < rows.count {
            let key = rows[start].key
            var end = start + 1
            while end < rows.count, rows[end].key == key { end += 1 }
            key.write(to: keyBytes)
            try put(rows[start..<end], cursor: cursor, keyBytes: keyBytes, entryBytes: entryBytes)
            start = end
          }
        }
      }
    }
  }

  /// Puts the sorted entries of one key.
  private func put(
    _ rows: ArraySlice<IndexRow>, cursor: OpaquePointer, keyBytes: UnsafeMutableRawBufferPointer,
    entryBytes: UnsafeMutableRawBufferPointer
  ) throws(StoreError) {
    var key = MDB_val(mv_size: IndexKey.byteCount, mv_data: keyBytes.baseAddress)
    var flags: UInt32 = 0
    if rows.count >= 4, let first = rows.first {
      // Events mostly come in order of time; appending then leaves full pages behind, where
      // inserting would leave them half empty.
      var last = MDB_val()
      if mdb_cursor_get(cursor, &key, &last, MDB_SET) == MDB_SUCCESS,
        mdb_cursor_get(cursor, &key, &last, MDB_LAST_DUP) == MDB_SUCCESS,
        last.mv_size == IndexEntry.byteCount,
        IndexEntry(UnsafeRawBufferPointer(start: last.mv_data, count: last.mv_size)) < first.entry
      {
        flags = UInt32(MDB_APPENDDUP)
      }
      key = MDB_val(mv_size: IndexKey.byteCount, mv_data: keyBytes.baseAddress)
    }
    var previous: IndexEntry?
    for row in rows where row.entry != previous {
      previous = row.entry
      row.entry.write(to: entryBytes)
      var value = MDB_val(mv_size: IndexEntry.byteCount, mv_data: entryBytes.baseAddress)
      try LMDBEnvironment.check(
        mdb_cursor_put(cursor, &key, &value, flags), "writing an index entry")
    }
  }

  private func writeSmall(_ key: [UInt8], _ payload: [UInt8]) throws(StoreError) {
    var keyBytes = key
    var valueBytes = SmallRow.sealed(payload, key: key)
    let table = tables.small
    let code = keyBytes.withUnsafeMutableBytes { rawKey in
      valueBytes.withUnsafeMutableBytes { rawValue in
        var key = MDB_val(mv_size: rawKey.count, mv_data: rawKey.baseAddress)
        var value = MDB_val(mv_size: rawValue.count, mv_data: rawValue.baseAddress)
        return mdb_put(transaction, table, &key, &value, 0)
      }
    }
    try LMDBEnvironment.check(code, "writing a small row")
  }

  private func withCursor(
    _ table: MDB_dbi, _ body: (OpaquePointer) throws(StoreError) -> Void
  ) throws(StoreError) {
    try LMDBEnvironment.withCursor(transaction, table, body)
  }
}

/// How small rows lie in LMDB: a checksum bound to the key, then the payload.
enum SmallRow {
  static let metaKey: [UInt8] = [0]

  static func sealed(_ payload: [UInt8], key: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(payload.count + 4)
    withUnsafeBytes(of: sum(payload, key: key).littleEndian) { result.append(contentsOf: $0) }
    result.append(contentsOf: payload)
    return result
  }

  static func opened(_ value: UnsafeRawBufferPointer, key: [UInt8]) throws(StoreError) -> [UInt8] {
    guard value.count >= 4 else { throw .damaged("a small row is too short") }
    let payload = Array(value[4...])
    let stored = UInt32(littleEndian: value.loadUnaligned(as: UInt32.self))
    guard stored == sum(payload, key: key) else {
      throw .damaged("a small row does not match its checksum")
    }
    return payload
  }

  private static func sum(_ payload: [UInt8], key: [UInt8]) -> UInt32 {
    let seed = key.withUnsafeBytes { StableHash.checksum($0, seed: 0) }
    return payload.withUnsafeBytes { StableHash.checksum($0, seed: UInt64(seed)) }
  }
}

/// A sequence in five big-endian bytes.
struct FiveBytes {
  private let bytes: (UInt8, UInt8, UInt8, UInt8, UInt8)

  init(_ value: UInt64) {
    bytes = (
      UInt8(truncatingIfNeeded: value >> 32), UInt8(truncatingIfNeeded: value >> 24),
      UInt8(truncatingIfNeeded: value >> 16), UInt8(truncatingIfNeeded: value >> 8),
      UInt8(truncatingIfNeeded: value)
    )
  }

  static func value(_ raw: UnsafeRawBufferPointer) -> UInt64? {
    guard raw.count == 5 else { return nil }
    return raw.reduce(0) { $0 << 8 | UInt64($1) }
  }
}

extension Array where Element == UInt8 {
  /// `withUnsafeBytes` that keeps the type of what is thrown.
  func withUnsafeBytesTyped<Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    let failure = withUnsafeBytes { raw -> Failure? in
      do throws(Failure) { try body(raw) } catch { return error }
      return nil
    }
    if let failure { throw failure }
  }

  mutating func withUnsafeMutableBytesTyped<Failure: Error>(
    _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    let failure = withUnsafeMutableBytes { raw -> Failure? in
      do throws(Failure) { try body(raw) } catch { return error }
      return nil
    }
    if let failure { throw failure }
  }
}
