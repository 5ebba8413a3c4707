import CSQLite
import Glibc
import Migrations
import Nostr
import NostrCrypto
import SyncCore

/// Opening: what a file must be before it is written to, and how it becomes what this program needs.
enum LogFile {
  // MARK: Writing

  static func openForWriting(
    path: String, options: LogOptions, now: Timestamp
  ) throws(LogError) -> Connection {
    try checkMigrations(options.migrations)
    let isNew = try inspect(path: path, options: options)
    if isNew && options.vfs == nil { try FileHeader.create(path: path) }
    let database = try Connection(
      name: path, path: path, flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
      vfs: options.vfs, busyMilliseconds: options.busyMilliseconds)
    do throws(LogError) {
      if database.isReadOnly { throw LogError.readOnly(path) }
      try checkVersion(database, options: options)
      try configure(database, options: options, isNew: isNew)
      try migrate(database, options: options, now: now)
      try checkContent(database, options: options)
      return database
    } catch {
      database.close()
      throw error
    }
  }

  /// Looks at the file without changing it. True: there is none yet.
  private static func inspect(path: String, options: LogOptions) throws(LogError) -> Bool {
    guard let header = try FileHeader.read(path: path) else { return true }
    _ = try isLog(header, path: path, options: options)
    return false
  }

  /// False: the file is nobody's yet.
  ///
  /// The header may be older than the write-ahead log beside it, so SQLite is asked as well, on a
  /// connection that cannot write; and where the file seems to be somebody else's, on one that
  /// makes no files beside it either.
  private static func isLog(
    _ header: FileHeader, path: String, options: LogOptions
  ) throws(LogError) -> Bool {
    try check(header, path: path, options: options)
    let isOurs = header.applicationID == FileHeader.application || hasPending(path)
    let database =
      isOurs
      ? try openReadOnly(path: path, options: options)
      : try openImmutable(path: path, options: options)
    defer { database.close() }
    return try checkVersion(database, options: options)
  }

  private static func check(
    _ header: FileHeader, path: String, options: LogOptions
  ) throws(LogError) {
    guard header.applicationID == FileHeader.application || header.applicationID == 0 else {
      throw LogError.notALog(path)
    }
    if header.applicationID == FileHeader.application {
      try refuseNewer(header.schemaVersion, options: options)
    }
    if header.isTruncated && !hasPending(path) {
      throw LogError.damaged(
        "it should have \(header.pageCount * header.pageSize) bytes and has \(header.fileBytes)")
    }
  }

  /// Whether there is a write-ahead log that is not yet folded into the file.
  private static func hasPending(_ path: String) -> Bool {
    (FileSize.of(path + "-wal") ?? 0) > 0
  }

  private static func refuseNewer(_ version: Int, options: LogOptions) throws(LogError) {
    let known = options.migrations.last?.number ?? 0
    if version > known { throw LogError.newer(found: version, known: known) }
  }

  /// Whether the file says that it is a log, of a version that this program knows; or says nothing,
  /// as one does whose maker was killed before its first commit.
  ///
  /// - Returns: Whether it is a log.
  @discardableResult
  private static func checkVersion(
    _ database: Connection, options: LogOptions
  ) throws(LogError) -> Bool {
    let application = try database.number("PRAGMA application_id")
    let version = try database.number("PRAGMA user_version")
    if application == Int64(FileHeader.application) {
      try refuseNewer(Int(version), options: options)
      guard version > 0 else { throw LogError.damaged("it has no schema version") }
      return true
    }
    // A crash before the first commit leaves a file with pages and no table: still nobody's.
    let tables = try database.number("SELECT count(*) FROM sqlite_schema")
    guard application == 0, version == 0, tables == 0 else {
      let ours = try database.number(
        "SELECT count(*) FROM sqlite_schema WHERE name IN ('event', 'fact', 'migration', 'meta')")
      if ours == 4 { throw LogError.damaged("its header is not that of a log") }
      throw LogError.notALog(database.path)
    }
    return false
  }

  private static func configure(
    _ database: Connection, options: LogOptions, isNew: Bool
  ) throws(LogError) {
    if isNew { try database.execute("PRAGMA page_size = 4096") }
    let mode = try database.first("PRAGMA journal_mode = WAL") { $0.text(0) }
    guard mode == "wal" else { throw LogError.io("\(database.path): no write-ahead log") }
    try database.execute(
      """
      PRAGMA synchronous = NORMAL;
      PRAGMA secure_delete = OFF;
      PRAGMA wal_autocheckpoint = 4000;
      PRAGMA journal_size_limit = 67108864;
      PRAGMA trusted_schema = OFF;
      PRAGMA cache_size = -\(options.cacheKibibytes);
      """)
    if let pages = options.pagesMax { try database.execute("PRAGMA max_page_count = \(pages)") }
  }

  // MARK: Migrating

  /// The steps that this program brings must be the released ones.
  private static func checkMigrations(_ migrations: [Migration]) throws(LogError) {
    for (index, migration) in migrations.enumerated() {
      let hash = SHA256.hash(migration.sql).hex
      guard migration.number == index + 1, migration.sha256 == hash else {
        throw LogError.migrationChanged(migration.number)
      }
    }
  }

  private static func migrate(
    _ database: Connection, options: LogOptions, now: Timestamp
  ) throws(LogError) {
    let found = Int(try database.number("PRAGMA user_version"))
    let pending = options.migrations.dropFirst(found)
    guard !pending.isEmpty else { return }
    // What a migration builds is not to be lost to a power cut that leaves its version number.
    try database.execute("PRAGMA synchronous = FULL")
    for migration in pending {
      try apply(migration, to: database, options: options, now: now)
    }
    try database.execute("PRAGMA synchronous = NORMAL")
    // From here on the header of the main file tells the version, for those who only look at it.
    _ = database.checkpoint()
  }

  private static func apply(
    _ migration: Migration, to database: Connection, options: LogOptions, now: Timestamp
  ) throws(LogError) {
    try database.execute("BEGIN IMMEDIATE")
    do throws(LogError) {
      // Another process may have been quicker.
      if try database.number("PRAGMA user_version") < migration.number {
        try database.execute(migration.sql)
        try database.run(
          "INSERT INTO migration (number, name, sha256, applied_at) VALUES (?, ?, ?, ?)",
          [
            .int(Int64(migration.number)), .string(migration.name), .string(migration.sha256),
            .time(now),
          ])
        if migration.number == 1 { try nameLog(database, options: options) }
        try database.execute("PRAGMA user_version = \(migration.number)")
      }
      try database.execute("COMMIT")
    } catch {
      if !database.isIdle {
        // The failure that led here says more than one of the rollback could.
        try? database.execute("ROLLBACK")
      }
      throw error
    }
  }

  private static func nameLog(_ database: Connection, options: LogOptions) throws(LogError) {
    try database.run(
      "INSERT INTO meta (key, value) VALUES ('log_id', coalesce(?, randomblob(16)))",
      [options.logID.map { .blob($0) } ?? .null])
  }

  // MARK: Reading

  /// What a reader opens.
  struct Reading {
    let database: Connection
    /// Whether the file is not a log yet, because its maker was killed or is at it just now. What is
    /// read then is a log without anything in it, and the file is worth another look.
    let isUnmade: Bool
    /// Whether it keeps all others out, and so is to be closed again at once.
    var isAlone = false
  }

  static func openForReading(path: String, options: LogOptions) throws(LogError) -> Reading {
    try checkMigrations(options.migrations)
    if options.vfs == nil {
      guard let header = try FileHeader.read(path: path) else {
        guard options.isMissingEmpty || FileSize.of(path) != nil else {
          throw LogError.missing(path)
        }
        return try unmade(path: path, options: options)
      }
      guard try isLog(header, path: path, options: options) else {
        return try unmade(path: path, options: options)
      }
    }
    // The files of another VFS may be where only SQLite sees them.
    let database = try openReadOnly(path: path, options: options)
    do throws(LogError) {
      let version = try database.number("PRAGMA user_version")
      guard version >= readableSince else {
        throw LogError.io(
          "\(path) has schema version \(version) and \(readableSince) is needed: "
            + "open it once for writing, which brings it up to date")
      }
      try checkContent(database, options: options)
      return Reading(database: database, isUnmade: false, isAlone: database.isAlone)
    } catch {
      database.close()
      throw error
    }
  }

  /// What the log at `path` will be before its first entry, in memory.
  private static func unmade(path: String, options: LogOptions) throws(LogError) -> Reading {
    let database = try Connection(
      name: ":memory:", path: path, flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs: nil,
      busyMilliseconds: options.busyMilliseconds)
    var options = options
    // No log is called so: a cache that belongs to one does not belong to this.
    options.logID = [UInt8](repeating: 0, count: 16)
    do throws(LogError) {
      try migrate(database, options: options, now: 0)
      return Reading(database: database, isUnmade: true)
    } catch {
      database.close()
      throw error
    }
  }

  /// A connection that cannot write, beside a writer or without one.
  static func openReadOnly(path: String, options: LogOptions) throws(LogError) -> Connection {
    do throws(LogError) {
      return try openPlain(path: path, options: options)
    } catch {
      // A file in write-ahead mode needs two files beside it, and in a folder that cannot be
      // written they cannot be made. Where they are missing nobody writes either: a writer keeps
      // them as long as it lives.
      // SQLite does not tell that it was a right that was missing, so the attempt has to.
      switch error {
      case .readOnly, .io, .full: break
      default: throw error
      }
      // On a full disk an index may have been begun, and is too short for anybody to work with.
      guard (FileSize.of(path + "-shm") ?? 0) < indexBytesMin else { throw error }
      if hasPending(path) {
        if let alone = try openAlone(path: path, options: options) { return alone }
        if case .full = error { throw error }
        throw LogError.io(
          "\(path) was left by a writer that was killed, and folding in what it wrote last needs a "
            + "folder that can be written: copy the folder, and use the copy")
      }
      return try openImmutable(path: path, options: options)
    }
  }

  /// The least that the index of a write-ahead log takes.
  private static let indexBytesMin = 32_768

  /// A connection that has the index of the write-ahead log in memory, for a disk that has no room for
  /// one; nil where another process has the file open, or it cannot be opened so.
  ///
  /// SQLite gives that only to whoever keeps all others out, which takes the right to write; nothing
  /// is written.
  private static func openAlone(path: String, options: LogOptions) throws(LogError) -> Connection? {
    guard access(path, W_OK) == 0 else { return nil }
    let database = try Connection(
      name: path, path: path, flags: SQLITE_OPEN_READWRITE, vfs: options.vfs,
      busyMilliseconds: options.busyMilliseconds)
    database.keepPending()
    database.isAlone = true
    do throws(LogError) {
      try database.execute("PRAGMA locking_mode = EXCLUSIVE")
      _ = try database.number("PRAGMA schema_version")
      try database.execute("PRAGMA cache_size = -4096")
      return database
    } catch {
      database.close()
      return nil
    }
  }

  private static func openImmutable(
    path: String, options: LogOptions
  ) throws(LogError) -> Connection {
    let database = try Connection(
      name: Connection.immutableName(path), path: path,
      flags: SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, vfs: options.vfs,
      busyMilliseconds: options.busyMilliseconds)
    do throws(LogError) {
      _ = try database.number("PRAGMA schema_version")
      return database
    } catch {
      database.close()
      throw error
    }
  }

  private static func openPlain(path: String, options: LogOptions) throws(LogError) -> Connection {
    let database = try Connection(
      name: path, path: path, flags: SQLITE_OPEN_READONLY, vfs: options.vfs,
      busyMilliseconds: options.busyMilliseconds)
    do throws(LogError) {
      // Only the first read finds out whether the files beside it can be had.
      _ = try database.number("PRAGMA schema_version")
      try database.execute("PRAGMA cache_size = -4096")
      return database
    } catch {
      database.close()
      throw error
    }
  }

  // MARK: Content

  /// Whether the file holds what its version promises, and went through the released steps.
  private static func checkContent(
    _ database: Connection, options: LogOptions
  ) throws(LogError) {
    let found = try database.rows("SELECT name FROM sqlite_schema WHERE type = 'table'") {
      $0.text(0)
    }
    let version = Int(try database.number("PRAGMA user_version"))
    for (table, since) in tables where since <= version && !found.contains(table) {
      throw LogError.damaged("the table \(table) is missing")
    }
    let applied = try database.rows("SELECT number, sha256 FROM migration ORDER BY number") {
      (number: Int($0.int(0)), sha256: $0.text(1).string)
    }
    guard applied.map(\.number) == options.migrations.prefix(version).map(\.number) else {
      throw LogError.damaged("its list of migrations does not fit its version")
    }
    for (was, known) in zip(applied, options.migrations) where was.sha256 != known.sha256 {
      throw LogError.migrationChanged(known.number)
    }
    let id = try database.first("SELECT value FROM meta WHERE key = 'log_id'") { $0.bytes(0) }
    guard id?.count == 16 else { throw LogError.damaged("it has no log id") }
  }

  /// The oldest version that can be read as it is: what came later only added tables, which
  /// `LogReader` takes for empty where they are missing.
  private static let readableSince = 1

  /// Each table with the version that brought it.
  private static let tables: [(Text, since: Int)] =
    [
      "meta", "migration", "relay", "event", "provenance", "fact", "message", "delivery",
      "redating", "scope", "coverage", "gap", "reject", "reject_count", "setting",
    ].map { ($0, since: 1) } + [("peer_fault", since: 2)]
}
