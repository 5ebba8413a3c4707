public import EventLog
public import SyncCore

/// What the cache needs of a log: its identity, its head, and its entries in order.
public protocol EntrySource: Sendable {
  /// A name of the log that no other log has.
  func logID() throws(CacheError) -> [UInt8]

  func head() throws(CacheError) -> LogSequence

  /// The first entries after a sequence; empty at the head.
  func entries(after sequence: LogSequence, limit: Int) throws(CacheError) -> [LogEntry]
}

/// The log as the cache sees it.
package struct LogSource: EntrySource {
  private let log: LogReader

  package init(_ log: LogReader) { self.log = log }

  package func logID() throws(CacheError) -> [UInt8] {
    do throws(LogError) { return try log.logID() } catch { throw CacheError.log(error) }
  }

  package func head() throws(CacheError) -> LogSequence {
    do throws(LogError) { return try log.head() } catch { throw CacheError.log(error) }
  }

  package func entries(after sequence: LogSequence, limit: Int) throws(CacheError) -> [LogEntry] {
    do throws(LogError) {
      return try log.entries(after: sequence, limit: limit)
    } catch {
      throw CacheError.log(error)
    }
  }
}
