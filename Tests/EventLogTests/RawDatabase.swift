import CSQLite
import Platform

/// Somebody else's connection to the same file.
final class RawDatabase: @unchecked Sendable {
  // Unchecked: SQLite serialises the connection itself (it is opened with a full mutex).
  private let handle: OpaquePointer

  struct Failure: Error {
    let code: Int32
    let message: String
  }

  init(_ path: String) throws {
    var opened: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX
    let code = sqlite3_open_v2(path, &opened, flags, nil)
    guard code == SQLITE_OK, let opened else { throw Failure(code: code, message: path) }
    handle = opened
  }

  deinit { sqlite3_close_v2(handle) }

  func execute(_ sql: String) throws {
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    guard code == SQLITE_OK else {
      throw Failure(code: code, message: String(cString: sqlite3_errmsg(handle)))
    }
  }

  func number(_ sql: String) throws -> Int64 {
    try first(sql) { sqlite3_column_int64($0, 0) }
  }

  func text(_ sql: String) throws -> String? {
    try first(sql) { sqlite3_column_text($0, 0).map { String(cString: $0) } }
  }

  private func first<Value>(_ sql: String, _ read: (OpaquePointer?) -> Value) throws -> Value {
    var statement: OpaquePointer?
    defer { sqlite3_finalize(statement) }
    let code = sqlite3_prepare_v2(handle, sql, -1, &statement, nil)
    guard code == SQLITE_OK, sqlite3_step(statement) == SQLITE_ROW else {
      throw Failure(code: code, message: String(cString: sqlite3_errmsg(handle)))
    }
    return read(statement)
  }
}

/// A copy of the system's VFS in which waiting for a lock runs a closure instead, so that a test
/// can let go of the lock exactly when somebody waits for it.
enum WaitingVFS {
  static let name = "waiting"
  private static let onWait = Lock<(@Sendable () -> Void)?>(nil)

  static func set(_ body: (@Sendable () -> Void)?) {
    _ = isRegistered
    onWait.withLock { $0 = body }
  }

  private static let isRegistered: Bool = {
    guard let system = sqlite3_vfs_find(nil) else { return false }
    let copy = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    copy.initialize(to: system.pointee)
    // The name must live as long as the process, as the VFS does.
    let bytes = Array(name.utf8CString)
    let cName = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count)
    cName.initialize(from: bytes, count: bytes.count)
    copy.pointee.zName = UnsafePointer(cName)
    copy.pointee.xSleep = { _, microseconds in
      WaitingVFS.onWait.withLock { $0 }?()
      return microseconds
    }
    return sqlite3_vfs_register(copy, 0) == SQLITE_OK
  }()
}
