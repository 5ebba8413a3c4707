import CSQLite
import EventLog
import Nostr
import Platform
import SyncCore

/// One database of words, on the disk or in memory, and one connection to it.
///
/// Rows are a set, as the cache's are: every text that a message ever had is in, and nothing is
/// taken out. Which of them counts is asked of the cache when something was found.
final class SearchFile: @unchecked Sendable {
  // Unchecked: the connection is used only while `isOpen` is locked.
  private let isOpen = Lock(true)
  private let connection: Connection

  /// Raised whenever the same log would give other rows.
  private static let version: Int64 = 1

  struct Mark: Equatable, Sendable {
    var logID: [UInt8]
    var applied: Int64 = 0
    /// What the last entry was, so that a log that went another way is noticed.
    var lastEntry: UInt64 = 0
  }

  /// One text on its way in.
  struct Document: Sendable {
    let row: Int64
    let sequence: Int64
    let text: ArraySlice<UInt8>
    let scope: [UInt8]
  }

  struct Hit: Sendable {
    let row: Int64
    let sequence: Int64
  }

  // MARK: Opening

  /// - Parameter path: Nil keeps everything in memory.
  init(writing path: String?) throws(LogError) {
    connection = try Connection(
      name: path ?? ":memory:", path: path ?? "memory",
      flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs: nil, busyMilliseconds: 2000)
    // It can always be made anew, so nothing waits for the disk.
    try connection.execute(
      """
      PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;
      PRAGMA secure_delete = OFF; PRAGMA cache_size = -8192; PRAGMA wal_autocheckpoint = 1000;
      PRAGMA journal_size_limit = 16777216; PRAGMA temp_store = MEMORY;
      """)
    if try connection.number("PRAGMA user_version") == Self.version { return }
    try connection.execute(
      """
      DROP TABLE IF EXISTS words; DROP TABLE IF EXISTS place; DROP TABLE IF EXISTS mark;
      CREATE VIRTUAL TABLE words USING fts5(text, scope, content = '', columnsize = 0,
        tokenize = "unicode61 remove_diacritics 2 categories 'L* M* N* Co'");
      CREATE TABLE place (row INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
      CREATE TABLE mark (one INTEGER PRIMARY KEY, log BLOB, applied INTEGER, last INTEGER);
      PRAGMA user_version = \(Self.version);
      """)
  }

  /// Opens what a writer has left or keeps.
  ///
  /// - Parameter isAlone: Whether nobody writes: then no files are needed beside it, and a folder
  ///   that cannot be written will do.
  init(reading path: String, isAlone: Bool) throws(LogError) {
    connection = try Connection(
      name: isAlone ? Connection.immutableName(path) : path, path: path,
      flags: SQLITE_OPEN_READONLY | (isAlone ? SQLITE_OPEN_URI : 0),
      vfs: nil, busyMilliseconds: 2000)
    guard try connection.number("PRAGMA user_version") == Self.version else {
      throw LogError.damaged("the words were collected by another version")
    }
  }

  func mark() throws(LogError) -> Mark? {
    try locked { () throws(LogError) in
      try connection.first("SELECT log, applied, last FROM mark") { row in
        Mark(
          logID: row.bytes(0), applied: row.int(1), lastEntry: UInt64(bitPattern: row.int(2)))
      }
    }
  }

  /// Whoever still has it is told `LogError.closed` from now on.
  func close() {
    isOpen.withLock { isOpen in
      guard isOpen else { return }
      isOpen = false
      _ = connection.checkpoint()
      connection.close()
    }
  }

  // MARK: Writing

  /// Adds texts and moves the mark, in one transaction.
  func write(_ documents: [Document], mark: Mark) throws(LogError) {
    try locked { () throws(LogError) in
      try connection.execute("BEGIN IMMEDIATE")
      do throws(LogError) {
        // FTS5 collects what comes in rising order, and begins a new part for each step back.
        for document in documents.sorted(by: { ($0.row, $0.sequence) < ($1.row, $1.sequence) }) {
          try add(document)
        }
        try connection.run(
          "INSERT OR REPLACE INTO mark (one, log, applied, last) VALUES (1, ?, ?, ?)",
          [.blob(mark.logID), .int(mark.applied), .int(Int64(bitPattern: mark.lastEntry))])
        try connection.execute("COMMIT")
      } catch {
        // The failure that led here says more than one of the rollback could.
        try? connection.execute("ROLLBACK")
        throw error
      }
    }
  }

  private func add(_ document: Document) throws(LogError) {
    guard let row = try free(document) else { return }
    let words = try connection.statement("INSERT INTO words (rowid, text, scope) VALUES (?, ?, ?)")
    words.bind(row, at: 1)
    let failure = document.text.withUnsafeBytes { text in
      document.scope.withUnsafeBytes { scope -> LogError? in
        words.bindStatic(text: text, at: 2)
        words.bindStatic(text: scope, at: 3)
        defer { words.reset() }
        do throws(LogError) { _ = try words.step() } catch { return error }
        return nil
      }
    }
    if let failure { throw failure }
  }

  /// Takes a row number for a document. Two texts of one second share one only where 30 bits of
  /// their ids agree; then the next is taken. Nil: this very text is in already.
  private func free(_ document: Document) throws(LogError) -> Int64? {
    let place = try connection.statement("INSERT OR IGNORE INTO place (row, seq) VALUES (?, ?)")
    var row = document.row
    while true {
      place.bind(row, at: 1)
      place.bind(document.sequence, at: 2)
      defer { place.reset() }
      _ = try place.step()
      if connection.changes > 0 { return row }
      if try connection.number("SELECT seq FROM place WHERE row = ?", [.int(row)])
        == document.sequence
      {
        return nil
      }
      row += 1
    }
  }

  // MARK: Reading

  /// Texts that match, from the highest row down.
  func hits(
    _ expression: String, from lowest: Int64, through highest: Int64, limit: Int
  ) throws(LogError) -> [Hit] {
    try locked { () throws(LogError) in
      let rows = try connection.rows(
        """
        SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ?
        ORDER BY rowid DESC LIMIT ?
        """,
        [.text(Text(expression)), .int(lowest), .int(highest), .int(Int64(limit))]
      ) { $0.int(0) }
      var result: [Hit] = []
      for row in rows {
        let sequence = try connection.number("SELECT seq FROM place WHERE row = ?", [.int(row)])
        result.append(Hit(row: row, sequence: sequence))
      }
      return result
    }
  }

  private func locked<Value: Sendable>(
    _ body: () throws(LogError) -> Value
  ) throws(LogError) -> Value {
    try isOpen.withLock { isOpen throws(LogError) in
      guard isOpen else { throw .closed }
      return try body()
    }
  }
}
