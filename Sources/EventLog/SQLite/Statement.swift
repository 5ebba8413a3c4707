import CSQLite
package import Nostr

/// A value bound to a statement where speed does not matter.
package enum SQLValue {
  case null
  case int(Int64)
  case text(Text)
  case blob([UInt8])

  static func int(_ value: Int?) -> SQLValue { value.map { .int(Int64($0)) } ?? .null }

  static func time(_ value: Timestamp?) -> SQLValue { value.map { .int($0.seconds) } ?? .null }

  static func text(_ value: Text?) -> SQLValue { value.map { .text($0) } ?? .null }

  static func string(_ value: String) -> SQLValue { .text(Text(value)) }

  static func bytes(_ value: Bytes32?) -> SQLValue { value.map { .blob($0.array) } ?? .null }
}

/// One prepared statement. Columns and parameters are told by number: columns from 0, parameters
/// from 1, as SQLite has it.
package final class Statement {
  let handle: OpaquePointer
  private let database: OpaquePointer

  init(handle: OpaquePointer, database: OpaquePointer) {
    self.handle = handle
    self.database = database
  }

  func finalize() { sqlite3_finalize(handle) }

  /// Ends the current run, and with it the read that it holds open.
  package func reset() { sqlite3_reset(handle) }

  // MARK: Parameters

  func bind(_ values: [SQLValue]) {
    for (offset, value) in values.enumerated() { bind(value, at: Int32(offset + 1)) }
  }

  private func bind(_ value: SQLValue, at index: Int32) {
    switch value {
    case .null: sqlite3_bind_null(handle, index)
    case .int(let number): sqlite3_bind_int64(handle, index, number)
    case .text(let text):
      text.utf8.withUnsafeBytes { bytes in
        withNonNull(bytes) { base in
          skep_sqlite3_bind_text_copy(
            handle, index, base.assumingMemoryBound(to: CChar.self), Int32(bytes.count))
        }
      }
    case .blob(let blob):
      blob.withUnsafeBytes { bytes in
        withNonNull(bytes) { base in
          skep_sqlite3_bind_blob_copy(handle, index, base, Int32(bytes.count))
        }
      }
    }
  }

  /// Binds bytes that stay where they are until the statement was stepped.
  package func bindStatic(blob bytes: UnsafeRawBufferPointer, at index: Int32) {
    withNonNull(bytes) { base in
      skep_sqlite3_bind_blob_static(handle, index, base, Int32(bytes.count))
    }
  }

  /// Binds UTF-8 that stays where it is until the statement was stepped. A NUL does not end it.
  package func bindStatic(text bytes: UnsafeRawBufferPointer, at index: Int32) {
    withNonNull(bytes) { base in
      skep_sqlite3_bind_text_static(
        handle, index, base.assumingMemoryBound(to: CChar.self), Int32(bytes.count))
    }
  }

  package func bind(_ number: Int64, at index: Int32) { sqlite3_bind_int64(handle, index, number) }

  func bindNull(at index: Int32) { sqlite3_bind_null(handle, index) }

  /// SQLite takes a null pointer for NULL, and Swift has no address for an empty array.
  private func withNonNull(_ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawPointer) -> Int32) {
    if let base = bytes.baseAddress {
      _ = body(base)
    } else {
      withUnsafeBytes(of: 0) { empty in
        if let base = empty.baseAddress { _ = body(base) }
      }
    }
  }

  // MARK: Running

  /// Goes to the next row; false: there is none.
  package func step() throws(LogError) -> Bool {
    switch sqlite3_step(handle) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    case let code: throw LogError(code: code, database: database)
    }
  }

  // MARK: Columns

  package func int(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

  func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

  func optionalInt(_ column: Int32) -> Int64? { isNull(column) ? nil : int(column) }

  func time(_ column: Int32) -> Timestamp { Timestamp(int(column)) }

  func optionalTime(_ column: Int32) -> Timestamp? { optionalInt(column).map { Timestamp($0) } }

  /// The bytes of a column, valid until the next step or reset.
  func withBytes<Result>(_ column: Int32, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    // The pointer first: asking for it may convert the value, and with it the length.
    let base = sqlite3_column_blob(handle, column)
    let count = Int(sqlite3_column_bytes(handle, column))
    return body(UnsafeRawBufferPointer(start: base, count: base == nil ? 0 : count))
  }

  package func bytes(_ column: Int32) -> [UInt8] { withBytes(column) { Array($0) } }

  func text(_ column: Int32) -> Text { Text(utf8: bytes(column)) }

  func optionalText(_ column: Int32) -> Text? { isNull(column) ? nil : text(column) }

  func bytes32(_ column: Int32) -> Bytes32? { withBytes(column) { Bytes32($0) } }
}
