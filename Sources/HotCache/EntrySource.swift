package import SyncCore

/// What the cache needs of a log: its identity, its head, and its entries in order.
package protocol EntrySource: Sendable {
  /// A name of the log that no other log has.
  func logID() throws(CacheError) -> [UInt8]

  func head() throws(CacheError) -> LogSequence

  /// The first entries after a sequence; empty at the head.
  func entries(after sequence: LogSequence, limit: Int) throws(CacheError) -> [LogEntry]
}
