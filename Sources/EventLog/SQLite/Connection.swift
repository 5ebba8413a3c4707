import CSQLite
import Glibc

/// One connection to a SQLite file, with its prepared statements.
///
/// It is used by one thread at a time: the writer's by its actor, a reader's under the reader's
/// lock. Nothing in here waits for anything but SQLite.
package final class Connection {
  package let path: String
  private let handle: OpaquePointer
  private var statements: [String: Statement] = [:]
  private var isOpen = true
  /// Whether no other connection to the file can be made while this one is open.
  var isAlone = false

  /// - Parameters:
  ///   - name: The path, or a URI where `flags` allow one.
  ///   - path: The path, for messages.
  package init(
    name: String, path: String, flags: Int32, vfs: String?, busyMilliseconds: Int32
  ) throws(LogError) {
    self.path = path
    var opened: OpaquePointer?
    let code = sqlite3_open_v2(name, &opened, flags | SQLITE_OPEN_NOMUTEX, vfs)
    guard let opened else { throw LogError.io("no memory for a connection to \(path)") }
    guard code == SQLITE_OK else {
      let error = LogError(code: code, database: opened, path: path)
      sqlite3_close_v2(opened)
      throw error
    }
    handle = opened
    sqlite3_extended_result_codes(handle, 1)
    sqlite3_busy_timeout(handle, busyMilliseconds)
  }

  deinit { close() }

  /// The name of a file that nobody writes: then no files are needed beside it. It is a URI.
  package static func immutableName(_ path: String) -> String {
    let digits = Array("0123456789ABCDEF")
    let encoded = path.utf8.reduce(into: "") { result, byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d...0x2f, 0x5f:
        result.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        result += "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
      }
    }
    return "file:" + encoded + "?immutable=1"
  }

  package func close() {
    guard isOpen else { return }
    isOpen = false
    for statement in statements.values { statement.finalize() }
    statements = [:]
    sqlite3_close_v2(handle)
  }

  /// Runs any number of statements without parameters, ignoring their rows.
  package func execute(_ sql: String) throws(LogError) {
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw error(code) }
  }

  func execute(_ sql: [UInt8]) throws(LogError) {
    let code = (sql + [0]).withUnsafeBytes { bytes in
      sqlite3_exec(
        handle, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), nil, nil, nil)
    }
    guard code == SQLITE_OK else { throw error(code) }
  }

  /// The prepared statement of `sql`, made once. Whoever steps it resets it.
  package func statement(_ sql: String) throws(LogError) -> Statement {
    if let known = statements[sql] { return known }
    var made: OpaquePointer?
    let code = sqlite3_prepare_v3(
      handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &made, nil)
    guard code == SQLITE_OK, let made else { throw error(code) }
    let statement = Statement(handle: made, database: handle)
    statements[sql] = statement
    return statement
  }

  /// Runs a statement that gives no rows, and tells how many rows it changed.
  @discardableResult
  package func run(_ sql: String, _ values: [SQLValue] = []) throws(LogError) -> Int {
    let statement = try statement(sql)
    defer { statement.reset() }
    statement.bind(values)
    while try statement.step() {}
    return changes
  }

  /// Runs a statement and gives what `body` makes of each row.
  package func rows<Row>(
    _ sql: String, _ values: [SQLValue] = [], _ body: (Statement) throws(LogError) -> Row
  ) throws(LogError) -> [Row] {
    let statement = try statement(sql)
    defer { statement.reset() }
    statement.bind(values)
    var result: [Row] = []
    while try statement.step() { result.append(try body(statement)) }
    return result
  }

  /// Runs a statement and gives what `body` makes of its first row.
  package func first<Row>(
    _ sql: String, _ values: [SQLValue] = [], _ body: (Statement) throws(LogError) -> Row
  ) throws(LogError) -> Row? {
    let statement = try statement(sql)
    defer { statement.reset() }
    statement.bind(values)
    return try statement.step() ? try body(statement) : nil
  }

  /// The number in the first column of the first row, 0 where there is none.
  package func number(_ sql: String, _ values: [SQLValue] = []) throws(LogError) -> Int64 {
    try first(sql, values) { $0.int(0) } ?? 0
  }

  package var changes: Int { Int(sqlite3_changes64(handle)) }

  var lastRow: Int64 { sqlite3_last_insert_rowid(handle) }

  /// Whether no transaction is open.
  var isIdle: Bool { sqlite3_get_autocommit(handle) != 0 }

  /// Whether the file itself can only be read.
  var isReadOnly: Bool { sqlite3_db_readonly(handle, "main") != 0 }

  /// Ends the statement that runs; may be called from any thread while the connection is open.
  func interrupt() { sqlite3_interrupt(handle) }

  /// Leaves the write-ahead log as it is when this connection closes, also where it is the last.
  func keepPending() { _ = skep_sqlite3_keep_wal(handle) }

  func setBusyTimeout(milliseconds: Int32) { sqlite3_busy_timeout(handle, milliseconds) }

  /// Folds what is in the write-ahead log into the main file and cuts it to nothing; false where a
  /// reader is in the way.
  package func checkpoint() -> Bool {
    sqlite3_wal_checkpoint_v2(handle, nil, SQLITE_CHECKPOINT_TRUNCATE, nil, nil) == SQLITE_OK
  }

  func error(_ code: Int32) -> LogError { LogError(code: code, database: handle, path: path) }
}

extension LogError {
  /// What a result code of SQLite means for the caller.
  init(code: Int32, database: OpaquePointer, path: String? = nil) {
    let name = path ?? sqlite3_db_filename(database, "main").map { String(cString: $0) } ?? "it"
    let message = String(cString: sqlite3_errmsg(database))
    let systemError = sqlite3_system_errno(database)
    switch code & 0xff {
    case SQLITE_FULL: self = .full(name)
    case SQLITE_BUSY, SQLITE_LOCKED: self = .busy(name)
    case SQLITE_READONLY, SQLITE_PERM: self = .readOnly(name)
    // The file was seen to begin as a database before it was opened.
    case SQLITE_CORRUPT, SQLITE_NOTADB: self = .damaged(message)
    case SQLITE_IOERR where systemError == ENOSPC || systemError == EDQUOT: self = .full(name)
    case SQLITE_CANTOPEN where systemError == EACCES || systemError == EROFS:
      self = .readOnly(name)
    default: self = .io("\(name): \(message)")
    }
  }
}
