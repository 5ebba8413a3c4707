import CLMDB
import Glibc

/// What LMDB does with nothing around it: the limits that benchmarks hold the cache against.
package enum RawLMDB {
  /// Puts `count` rows of `bytes` bytes under rising keys into a scratch folder, without waiting for
  /// the disk and in batches of a thousand.
  package static func put(count: Int, bytes: Int, in folder: String) throws(CacheError) {
    guard mkdir(folder, 0o700) == 0 else { throw .unavailable("\(folder) cannot be made") }
    do throws(StoreError) {
      let environment = try LMDBEnvironment(
        path: folder, access: .writing, mapBytes: 16 << 30, mapBytesMax: 16 << 30)
      defer { environment.close() }
      let value = [UInt8](repeating: 0x5a, count: max(1, bytes))
      var first = 0
      while first < count {
        let range = first..<min(count, first + 1000)
        try environment.write { transaction throws(StoreError) in
          for number in range {
            try put(UInt64(number), value, transaction, environment.tables.bodies)
          }
        }
        first = range.upperBound
      }
    } catch {
      throw CacheError(error)
    }
  }

  private static func put(
    _ number: UInt64, _ bytes: [UInt8], _ transaction: OpaquePointer, _ table: MDB_dbi
  ) throws(StoreError) {
    var key = number
    var value = bytes
    let code = withUnsafeMutableBytes(of: &key) { keyBytes in
      value.withUnsafeMutableBytes { valueBytes in
        var key = MDB_val(mv_size: 8, mv_data: keyBytes.baseAddress)
        var value = MDB_val(mv_size: valueBytes.count, mv_data: valueBytes.baseAddress)
        return mdb_put(transaction, table, &key, &value, 0)
      }
    }
    try LMDBEnvironment.check(code, "writing a row")
  }
}

extension LMDBSnapshot {
  /// The rows of all tables.
  func rowCount() throws(StoreError) -> Int {
    var count = 0
    for table in [tables.bodies, tables.ids, tables.index, tables.small] {
      var statistics = MDB_stat()
      try LMDBEnvironment.check(mdb_stat(transaction, table, &statistics), "counting rows")
      count += Int(statistics.ms_entries)
    }
    return count
  }

  /// Gets rows and does nothing with them but to touch each; the bytes that they have together.
  func touch(_ sequences: [UInt64]) throws(StoreError) -> Int {
    var sum = 0
    for sequence in sequences {
      var number = sequence
      var value = MDB_val()
      let code = withUnsafeMutableBytes(of: &number) { raw in
        var key = MDB_val(mv_size: 8, mv_data: raw.baseAddress)
        return mdb_get(transaction, tables.bodies, &key, &value)
      }
      try LMDBEnvironment.check(code, "reading a row")
      sum += value.mv_size + Int(value.mv_data.load(as: UInt8.self) & 1)
    }
    return sum
  }
}
