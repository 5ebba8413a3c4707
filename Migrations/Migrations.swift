/// One numbered step of the log's schema, embedded in code.
public struct Migration: Sendable {
  /// Counts from 1 without a gap; the schema's version once this step is done.
  public let number: Int
  public let name: String
  public let sql: [UInt8]
  /// The SHA-256 that `sql` had when it was released, in hex: a step that was changed afterwards
  /// would give two schemas one number.
  public let sha256: String

  public init(number: Int, name: String, sql: [UInt8], sha256: String) {
    self.number = number
    self.name = name
    self.sql = sql
    self.sha256 = sha256
  }
}

/// The numbered migrations of the log.
public enum Migrations {
  /// In order; a released one is never changed.
  public static let all: [Migration] = [
    Migration(
      number: 1, name: "log", sql: PackageResources.v001_log_sql,
      sha256: "20a3e52140408f11a4c8a793a27c797edb8c27000c7fbfa966100e499610810e"),
    Migration(
      number: 2, name: "peer-fault", sql: PackageResources.v002_peer_fault_sql,
      sha256: "82fd19e6b60e5dee1c71b00c7751da682a765dbed211ca76512590f1e9be3f6d"),
  ]
}
