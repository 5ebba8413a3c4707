import CSQLite
import RelayServer

extension VirtualDisk {
  /// A disk for whoever wants to try it by itself.
  package convenience init(seed: UInt64, contents: [String: [UInt8]] = [:]) {
    self.init(contents, random: SplitMix64(seed: seed))
  }
}

/// SQLite on a virtual disk by itself, to see what the disk does to it.
package enum DiskProbe {
  package struct Failure: Error {
    package let code: Int32
  }

  /// Runs statements, each in a transaction of its own, on a new table `t` or the one that is there.
  ///
  /// - Parameters:
  ///   - rows: How many rows are added to it.
  ///   - end: Called while the file is still open, as when the program ends without a word.
  /// - Returns: The result code of the first statement that fails.
  package static func insert(
    _ disk: VirtualDisk, rows: Int, synchronous: String, end: () -> Void = {}
  ) throws(Failure) -> Int32 {
    let insert = "INSERT INTO t (text) VALUES (hex(zeroblob(300)));"
    let sql = """
      PRAGMA journal_mode = WAL; PRAGMA synchronous = \(synchronous);
      CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, text TEXT);
      """ + String(repeating: insert, count: rows)
    return try with(disk) { database in
      let code = sqlite3_exec(database, sql, nil, nil, nil)
      end()
      return code
    }
  }

  /// How many rows are there, which must be the first ones, in a file that is whole.
  package static func rows(_ disk: VirtualDisk) throws(Failure) -> Int {
    let table = try number(disk, "SELECT count(*) FROM sqlite_schema WHERE name = 't'")
    if table == 0 { return 0 }
    let count = try number(disk, "SELECT count(*) FROM t")
    let last = try number(disk, "SELECT ifnull(max(n), 0) FROM t")
    let whole = try number(
      disk, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'")
    guard count == last, whole == 1 else { throw Failure(code: SQLITE_CORRUPT) }
    return count
  }

  private static func number(_ disk: VirtualDisk, _ sql: String) throws(Failure) -> Int {
    var value = 0
    let code = try with(disk) { database in
      var statement: OpaquePointer?
      let code = sqlite3_prepare_v2(database, sql, -1, &statement, nil)
      guard code == SQLITE_OK else { return code }
      defer { sqlite3_finalize(statement) }
      guard sqlite3_step(statement) == SQLITE_ROW else { return SQLITE_ERROR }
      value = Int(sqlite3_column_int64(statement, 0))
      return SQLITE_OK
    }
    guard code == SQLITE_OK else { throw Failure(code: code) }
    return value
  }

  private static func with(
    _ disk: VirtualDisk, _ body: (OpaquePointer) -> Int32
  ) throws(Failure) -> Int32 {
    let folder = ScratchFolder.make()
    VirtualFileSystem.mount(disk, at: folder)
    defer {
      VirtualFileSystem.unmount(folder)
      ScratchFolder.remove(folder)
    }
    var opened: OpaquePointer?
    let code = sqlite3_open_v2(
      folder + "/probe.sqlite", &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
      VirtualFileSystem.name)
    guard let database = opened else { throw Failure(code: code) }
    defer { sqlite3_close_v2(database) }
    guard code == SQLITE_OK else { throw Failure(code: code) }
    return body(database)
  }
}
