import CLMDB
import Glibc

/// One LMDB environment and its four tables.
///
/// A transaction belongs to the thread that began it and never crosses an `await`. The map may be
/// grown only while no transaction of this process is open, which `gate` sees to.
final class LMDBEnvironment: @unchecked Sendable {
  // Unchecked: `handle` is LMDB's own thread-safe object. It is replaced by nil in `close` alone,
  // under `gate.writing`, while every use is under `gate.reading` or `gate.writing`.
  let gate = ReadGate()
  private var handle: OpaquePointer?
  private var mapBytes: Int
  private let mapBytesMax: Int
  private(set) var tables: Tables
  /// How many readers had been killed, and were cleared away, when this was opened.
  private(set) var deadReaders = 0

  struct Tables: Sendable {
    var bodies: MDB_dbi = 0
    var ids: MDB_dbi = 0
    var index: MDB_dbi = 0
    var small: MDB_dbi = 0
  }

  enum Access: Sendable {
    case writing
    case reading
    /// On a file system or in a folder where the lock file cannot be written, and no writer lives.
    case readingWithoutLocks
  }

  /// - Parameter path: An existing folder.
  init(
    path: String, access: Access, mapBytes: Int, mapBytesMax: Int, readersMax: UInt32 = 512
  ) throws(StoreError) {
    var created: OpaquePointer?
    try Self.check(mdb_env_create(&created), "creating an environment")
    guard let environment = created else { throw .unavailable("no environment") }
    // A reader cannot follow a writer's growing map in the middle of a transaction, so it begins
    // with all the address space there may be.
    self.mapBytes = access == .writing ? mapBytes : max(mapBytes, mapBytesMax)
    self.mapBytesMax = max(mapBytes, mapBytesMax)
    tables = Tables()
    do throws(StoreError) {
      try Self.check(mdb_env_set_maxdbs(environment, 8), "setting the number of tables")
      try Self.check(
        mdb_env_set_maxreaders(environment, readersMax), "setting the number of readers")
      try Self.check(mdb_env_set_mapsize(environment, self.mapBytes), "setting the map size")
      var flags = UInt32(MDB_NOTLS)
      switch access {
      // The cache can always be rebuilt, so nothing waits for the disk; the seal tells a file that
      // a power cut has torn.
      case .writing: flags |= UInt32(MDB_NOSYNC)
      case .reading: flags |= UInt32(MDB_RDONLY)
      case .readingWithoutLocks: flags |= UInt32(MDB_RDONLY | MDB_NOLOCK)
      }
      try Self.check(mdb_env_open(environment, path, flags, 0o600), "opening \(path)")
      if access != .readingWithoutLocks {
        var dead: Int32 = 0
        // Slots of readers that were killed keep old pages alive, and the file grows.
        try Self.check(mdb_reader_check(environment, &dead), "clearing dead readers")
        deadReaders = Int(dead)
      }
      handle = environment
      if access == .writing {
        try openTablesGrowing()
      } else {
        try openTables(create: false)
      }
    } catch {
      mdb_env_close(environment)
      handle = nil
      throw error
    }
  }

  deinit { if let handle { mdb_env_close(handle) } }

  func close() {
    gate.writing {
      if let handle { mdb_env_close(handle) }
      handle = nil
    }
  }

  /// Writes everything to the disk.
  func sync() throws(StoreError) {
    try gate.reading { () throws(StoreError) in
      guard let handle else { throw .unavailable("the cache is closed") }
      try Self.check(mdb_env_sync(handle, 1), "syncing")
    }
  }

  /// Runs `body` in a write transaction, again with a larger map while the map is full and the
  /// budget allows it.
  func write(_ body: (OpaquePointer) throws(StoreError) -> Void) throws(StoreError) {
    while true {
      do throws(StoreError) {
        try gate.reading { () throws(StoreError) in try transact(body) }
        return
      } catch .full(let why) {
        guard try grow() else { throw .full(why) }
      }
    }
  }

  /// Runs `body` in a read transaction.
  func read<Result, Failure: Error>(
    _ body: (OpaquePointer) throws(Failure) -> Result
  ) throws(StoreReadError<Failure>) -> Result {
    try gate.reading { () throws(StoreReadError<Failure>) in
      let transaction: OpaquePointer
      do throws(StoreError) { transaction = try beginReading() } catch { throw .store(error) }
      defer { mdb_txn_abort(transaction) }
      do throws(Failure) { return try body(transaction) } catch { throw .body(error) }
    }
  }

  private func beginReading() throws(StoreError) -> OpaquePointer {
    guard let handle else { throw .unavailable("the cache is closed") }
    var transaction: OpaquePointer?
    var code = mdb_txn_begin(handle, nil, UInt32(MDB_RDONLY), &transaction)
    if code == MDB_READERS_FULL {
      var dead: Int32 = 0
      mdb_reader_check(handle, &dead)
      code = mdb_txn_begin(handle, nil, UInt32(MDB_RDONLY), &transaction)
    }
    try Self.check(code, "beginning to read")
    guard let transaction else { throw .unavailable("no transaction") }
    return transaction
  }

  private func transact(_ body: (OpaquePointer) throws(StoreError) -> Void) throws(StoreError) {
    guard let handle else { throw .unavailable("the cache is closed") }
    var begun: OpaquePointer?
    try Self.check(mdb_txn_begin(handle, nil, 0, &begun), "beginning to write")
    guard let transaction = begun else { throw .unavailable("no transaction") }
    do throws(StoreError) {
      try body(transaction)
    } catch {
      mdb_txn_abort(transaction)
      throw error
    }
    try Self.check(mdb_txn_commit(transaction), "committing")
  }

  /// Doubles the map; false where the budget is used up.
  private func grow() throws(StoreError) -> Bool {
    guard mapBytes < mapBytesMax else { return false }
    return try gate.writing { () throws(StoreError) in
      guard let handle else { throw .unavailable("the cache is closed") }
      mapBytes = min(mapBytes * 2, mapBytesMax)
      try Self.check(mdb_env_set_mapsize(handle, mapBytes), "growing the map")
      return true
    }
  }

  private func openTablesGrowing() throws(StoreError) {
    while true {
      do throws(StoreError) {
        try openTables(create: true)
        return
      } catch .full(let why) {
        guard try grow() else { throw .full(why) }
      }
    }
  }

  private func openTables(create: Bool) throws(StoreError) {
    guard let handle else { throw .unavailable("the cache is closed") }
    var begun: OpaquePointer?
    let mode = create ? 0 : UInt32(MDB_RDONLY)
    try Self.check(mdb_txn_begin(handle, nil, mode, &begun), "opening the tables")
    guard let transaction = begun else { throw .unavailable("no transaction") }
    let base = create ? UInt32(MDB_CREATE) : 0
    let sets = base | UInt32(MDB_DUPSORT | MDB_DUPFIXED)
    var opened = Tables()
    do throws(StoreError) {
      let integers = base | UInt32(MDB_INTEGERKEY)
      try Self.check(mdb_dbi_open(transaction, "body", integers, &opened.bodies), "table body")
      try Self.check(mdb_dbi_open(transaction, "ids", sets, &opened.ids), "table ids")
      try Self.check(mdb_dbi_open(transaction, "index", sets, &opened.index), "table index")
      try Self.check(mdb_dbi_open(transaction, "small", base, &opened.small), "table small")
    } catch {
      mdb_txn_abort(transaction)
      throw error
    }
    try Self.check(mdb_txn_commit(transaction), "opening the tables")
    tables = opened
  }

  /// Opens a cursor that its caller closes before the transaction ends.
  static func openCursor(
    _ transaction: OpaquePointer, _ table: MDB_dbi
  ) throws(StoreError) -> OpaquePointer {
    var opened: OpaquePointer?
    try check(mdb_cursor_open(transaction, table, &opened), "opening a cursor")
    guard let cursor = opened else { throw .unavailable("no cursor") }
    return cursor
  }

  static func withCursor(
    _ transaction: OpaquePointer, _ table: MDB_dbi,
    _ body: (OpaquePointer) throws(StoreError) -> Void
  ) throws(StoreError) {
    let cursor = try openCursor(transaction, table)
    defer { mdb_cursor_close(cursor) }
    try body(cursor)
  }

  /// Turns a return code into what the cache does about it.
  static func check(_ code: Int32, _ doing: String) throws(StoreError) {
    guard code != MDB_SUCCESS else { return }
    let text = mdb_strerror(code).map { String(cString: $0) } ?? "code \(code)"
    let message = "\(doing): \(text)"
    switch code {
    // LMDB says EIO where the last page found no more room on the disk and was cut short.
    case MDB_MAP_FULL, MDB_TXN_FULL, MDB_DBS_FULL, ENOSPC, EDQUOT, EIO: throw .full(message)
    case MDB_PAGE_NOTFOUND, MDB_CORRUPTED, MDB_VERSION_MISMATCH, MDB_INVALID, MDB_INCOMPATIBLE,
      MDB_BAD_VALSIZE, MDB_NOTFOUND, MDB_PANIC:
      throw .damaged(message)
    default: throw .unavailable(message)
    }
  }
}
