import CLMDB
import Nostr

/// One read transaction. Bytes are copied out before it ends.
final class LMDBSnapshot: StoreSnapshot {
  let transaction: OpaquePointer
  let tables: LMDBEnvironment.Tables
  private var indexCursor: OpaquePointer?
  private let keySpace = UnsafeMutableRawBufferPointer.allocate(
    byteCount: IndexKey.byteCount, alignment: 8)
  private let entrySpace = UnsafeMutableRawBufferPointer.allocate(
    byteCount: IndexEntry.byteCount, alignment: 8)

  init(transaction: OpaquePointer, tables: LMDBEnvironment.Tables) {
    self.transaction = transaction
    self.tables = tables
  }

  deinit {
    keySpace.deallocate()
    entrySpace.deallocate()
  }

  /// Closes the cursor; before the transaction ends.
  func end() {
    if let indexCursor { mdb_cursor_close(indexCursor) }
    indexCursor = nil
  }

  func meta() throws(StoreError) -> CacheMeta? {
    guard let bytes = try smallValue(SmallRow.metaKey) else { return nil }
    guard let meta = CacheMeta(bytes: bytes) else { throw .damaged("the meta row is unreadable") }
    return meta
  }

  func body(at sequence: UInt64) throws(StoreError) -> BodyRow? {
    var number = sequence
    var value = MDB_val()
    let table = tables.bodies
    let code = withUnsafeMutableBytes(of: &number) { raw in
      var key = MDB_val(mv_size: 8, mv_data: raw.baseAddress)
      return mdb_get(transaction, table, &key, &value)
    }
    if code == MDB_NOTFOUND { return nil }
    try LMDBEnvironment.check(code, "reading a body")
    return try body(sequence, value)
  }

  func bodies(after sequence: UInt64, limit: Int) throws(StoreError) -> [BodyRow] {
    var result: [BodyRow] = []
    guard limit > 0, sequence < .max else { return result }
    var number = sequence + 1
    try withCursor(tables.bodies) { cursor throws(StoreError) in
      var value = MDB_val()
      var key = MDB_val()
      var code = withUnsafeMutableBytes(of: &number) { raw in
        key = MDB_val(mv_size: 8, mv_data: raw.baseAddress)
        return mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE)
      }
      while code == MDB_SUCCESS, result.count < limit {
        guard key.mv_size == 8 else { throw .damaged("a body has a bad key") }
        result.append(try body(key.mv_data.loadUnaligned(as: UInt64.self), value))
        code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)
      }
      if code != MDB_NOTFOUND { try LMDBEnvironment.check(code, "reading bodies") }
    }
    return result
  }

  func sequences(idPrefix prefix: UInt64) throws(StoreError) -> [UInt64] {
    var result: [UInt64] = []
    var number = prefix.bigEndian
    try withCursor(tables.ids) { cursor throws(StoreError) in
      var key = MDB_val()
      var value = MDB_val()
      var code = withUnsafeMutableBytes(of: &number) { raw in
        key = MDB_val(mv_size: 8, mv_data: raw.baseAddress)
        return mdb_cursor_get(cursor, &key, &value, MDB_SET)
      }
      while code == MDB_SUCCESS {
        let raw = UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
        guard let sequence = FiveBytes.value(raw) else { throw .damaged("an id row is bad") }
        result.append(sequence)
        code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT_DUP)
      }
      if code != MDB_NOTFOUND { try LMDBEnvironment.check(code, "reading an id") }
    }
    return result
  }

  func keys(from lower: IndexKey, through upper: IndexKey, limit: Int) throws(StoreError)
    -> [IndexKey]
  {
    var result: [IndexKey] = []
    guard limit > 0, lower <= upper else { return result }
    let cursor = try index()
    var key = keyValue(lower)
    var value = MDB_val()
    var code = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE)
    while code == MDB_SUCCESS {
      guard key.mv_size == IndexKey.byteCount else { throw .damaged("an index key is bad") }
      let found = IndexKey(UnsafeRawBufferPointer(start: key.mv_data, count: key.mv_size))
      guard found <= upper else { return result }
      result.append(found)
      if result.count == limit { return result }
      code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT_NODUP)
    }
    if code != MDB_NOTFOUND { try LMDBEnvironment.check(code, "reading index keys") }
    return result
  }

  func count(_ key: IndexKey) throws(StoreError) -> Int {
    let cursor = try index()
    var wanted = keyValue(key)
    var value = MDB_val()
    let code = mdb_cursor_get(cursor, &wanted, &value, MDB_SET)
    if code == MDB_NOTFOUND { return 0 }
    try LMDBEnvironment.check(code, "finding an index key")
    var count = 0
    try LMDBEnvironment.check(mdb_cursor_count(cursor, &count), "counting entries")
    return count
  }

  func entries(
    _ key: IndexKey, from lower: IndexEntry, through upper: IndexEntry, descending: Bool,
    limit: Int, into entries: inout [IndexEntry]
  ) throws(StoreError) {
    guard limit > 0, lower <= upper else { return }
    let cursor = try index()
    var wanted = keyValue(key)
    var value: MDB_val
    var code: Int32
    if descending {
      (code, value) = seekLast(cursor, &wanted, notAfter: upper)
    } else {
      value = entryValue(lower)
      code = mdb_cursor_get(cursor, &wanted, &value, MDB_GET_BOTH_RANGE)
    }
    var left = limit
    while code == MDB_SUCCESS {
      guard value.mv_size == IndexEntry.byteCount else { throw .damaged("an entry is bad") }
      let entry = IndexEntry(UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size))
      guard entry >= lower, entry <= upper else { return }
      entries.append(entry)
      left -= 1
      if left == 0 { return }
      code = mdb_cursor_get(cursor, &wanted, &value, descending ? MDB_PREV_DUP : MDB_NEXT_DUP)
    }
    if code != MDB_NOTFOUND { try LMDBEnvironment.check(code, "reading entries") }
  }

  /// Puts the cursor on the highest entry of the key that is not after `upper`.
  private func seekLast(
    _ cursor: OpaquePointer, _ wanted: inout MDB_val, notAfter upper: IndexEntry
  ) -> (Int32, MDB_val) {
    var value = entryValue(upper)
    var code = mdb_cursor_get(cursor, &wanted, &value, MDB_GET_BOTH_RANGE)
    if code == MDB_SUCCESS {
      let found = IndexEntry(UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size))
      if found > upper { code = mdb_cursor_get(cursor, &wanted, &value, MDB_PREV_DUP) }
      return (code, value)
    }
    guard code == MDB_NOTFOUND else { return (code, value) }
    // Every entry is before `upper`, or the key is not there; the failed search has left the
    // cursor nowhere.
    code = mdb_cursor_get(cursor, &wanted, &value, MDB_SET)
    guard code == MDB_SUCCESS else { return (code, value) }
    code = mdb_cursor_get(cursor, &wanted, &value, MDB_LAST_DUP)
    return (code, value)
  }

  func small(prefix: [UInt8], after last: SmallKey?, limit: Int) throws(StoreError)
    -> [(key: SmallKey, value: [UInt8])]
  {
    var result: [(key: SmallKey, value: [UInt8])] = []
    guard limit > 0 else { return result }
    var start = last?.bytes ?? prefix
    try withCursor(tables.small) { cursor throws(StoreError) in
      var key = MDB_val()
      var value = MDB_val()
      var code = start.withUnsafeMutableBytes { raw in
        key = MDB_val(mv_size: raw.count, mv_data: raw.baseAddress)
        // An empty key cannot be searched for.
        return mdb_cursor_get(cursor, &key, &value, raw.isEmpty ? MDB_FIRST : MDB_SET_RANGE)
      }
      while code == MDB_SUCCESS, result.count < limit {
        let bytes = Array(UnsafeRawBufferPointer(start: key.mv_data, count: key.mv_size))
        guard bytes.starts(with: prefix) else { return }
        let payload = UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
        if bytes != last?.bytes {
          result.append((key: SmallKey(bytes), value: try SmallRow.opened(payload, key: bytes)))
        }
        code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)
      }
      if code != MDB_NOTFOUND { try LMDBEnvironment.check(code, "reading small rows") }
    }
    return result
  }

  private func smallValue(_ key: [UInt8]) throws(StoreError) -> [UInt8]? {
    var bytes = key
    var value = MDB_val()
    let table = tables.small
    let code = bytes.withUnsafeMutableBytes { raw in
      var key = MDB_val(mv_size: raw.count, mv_data: raw.baseAddress)
      return mdb_get(transaction, table, &key, &value)
    }
    if code == MDB_NOTFOUND { return nil }
    try LMDBEnvironment.check(code, "reading a small row")
    return try SmallRow.opened(
      UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size), key: key)
  }

  private func body(_ sequence: UInt64, _ value: MDB_val) throws(StoreError) -> BodyRow {
    let bytes = Array(UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size))
    guard let row = BodyRow(sequence: sequence, bytes: bytes) else {
      throw .damaged("the body of entry \(sequence) does not match its checksum")
    }
    return row
  }

  private func index() throws(StoreError) -> OpaquePointer {
    if let indexCursor { return indexCursor }
    let cursor = try LMDBEnvironment.openCursor(transaction, tables.index)
    indexCursor = cursor
    return cursor
  }

  private func keyValue(_ key: IndexKey) -> MDB_val {
    key.write(to: keySpace)
    return MDB_val(mv_size: IndexKey.byteCount, mv_data: keySpace.baseAddress)
  }

  private func entryValue(_ entry: IndexEntry) -> MDB_val {
    entry.write(to: entrySpace)
    return MDB_val(mv_size: IndexEntry.byteCount, mv_data: entrySpace.baseAddress)
  }

  private func withCursor(
    _ table: MDB_dbi, _ body: (OpaquePointer) throws(StoreError) -> Void
  ) throws(StoreError) {
    try LMDBEnvironment.withCursor(transaction, table, body)
  }
}
