public import Nostr
public import NostrCrypto
public import SyncCore

/// The authoritative log of one community, in one SQLite file, and its one writer.
///
/// Every call is one transaction: it is kept whole or not at all, and what the log tells about
/// itself changes only after the commit. What the user did (outbox, settings) has reached the disk
/// when the call returns; what a relay can give again survives a kill of the process at once, and a
/// power cut up to the last fsync, its coverage with it.
public actor EventLog {
  /// A second, read-only connection to the same file; callable from any thread that may block.
  public nonisolated let reader: LogReader

  private let path: String
  private let executor: any SerialExecutor
  private let clock: any SyncClock
  private let options: LogOptions
  private let tail: LogTail
  private var file: Connection?
  private var state = WriterState()
  private var isFullySynchronous = false

  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    executor.asUnownedSerialExecutor()
  }

  private init(
    path: String, executor: any SerialExecutor, clock: any SyncClock, options: LogOptions
  ) {
    self.path = path
    self.executor = executor
    self.clock = clock
    self.options = options
    tail = LogTail(options: options, head: .start)
    reader = LogReader(path: path, options: options, tail: tail)
  }

  /// Opens the log at `path`, or makes one where there is no file. A file that cannot be used is
  /// left as it is.
  ///
  /// - Parameter executor: Runs all of the log's work; it must be allowed to block.
  public static func open(
    path: String, executor: any SerialExecutor, clock: any SyncClock,
    options: LogOptions = LogOptions()
  ) async throws(LogError) -> EventLog {
    let log = EventLog(path: path, executor: executor, clock: clock, options: options)
    try await log.openFile()
    return log
  }

  private func openFile() throws(LogError) {
    let database = try LogFile.openForWriting(path: path, options: options, now: clock.now())
    do throws(LogError) {
      try state.refresh(from: database)
      tail.append([], sizes: [], head: state.head)
      file = database
      // A state that speaks of a process that is gone must not block what it was about.
      try transaction(.full) { transaction throws(LogError) in
        try transaction.endInterruptedDeliveries()
      }
    } catch {
      file = nil
      database.close()
      throw error
    }
  }

  // MARK: What relays and files bring

  /// Stores a batch in one transaction; a bad event never holds a good one back.
  public func ingest(_ batch: IngestBatch) throws(LogError) -> IngestResult {
    try transaction(.normal) { transaction throws(LogError) in
      try transaction.ingest(batch, rejectsMax: options.rejectsMax)
    }
  }

  /// Notes something learnt beside the events; on disk when the call returns.
  public func note(_ fact: Fact) throws(LogError) -> LogSequence {
    try transaction(.full) { transaction throws(LogError) in try transaction.append(fact) }
  }

  /// Takes proved spans away, as when a relay turned out to page falsely.
  public func revokeCoverage(
    relay: RelayURL, scope: Scope, from: Timestamp, to: Timestamp
  ) throws(LogError) {
    try transaction(.normal) { transaction throws(LogError) in
      try transaction.revokeCoverage(relay: relay, scope: scope, from: from, to: to)
    }
  }

  /// Adds to the counts of what a relay sent that it should not have.
  public func addFaults(
    _ faults: [(reason: String, count: Int)], of relay: RelayURL
  ) throws(LogError) {
    try transaction(.normal) { transaction throws(LogError) in
      try transaction.addFaults(faults, of: relay)
    }
  }

  // MARK: What the user does

  /// Stores `value` under `key`; nil removes the key.
  public func setSetting(_ key: String, _ value: [UInt8]?) throws(LogError) {
    try transaction(.full) { transaction throws(LogError) in
      try transaction.set(key, to: value)
    }
  }

  /// Stores a message: its event, and one delivery a relay. A token that was used before, or an
  /// event that is a message already, gives the earlier message and changes nothing.
  public func enqueue(
    _ event: VerifiedEvent, to relays: [RelayURL], waitsFor: MessageID? = nil,
    token: Text? = nil, state: DeliveryState = .queued
  ) throws(LogError) -> Message {
    try transaction(.full) { transaction throws(LogError) in
      try transaction.enqueue(event, to: relays, waitsFor: waitsFor, token: token, state: state)
    }
  }

  /// Records where a delivery has come to.
  public func record(_ change: DeliveryChange) throws(LogError) {
    try transaction(.full) { transaction throws(LogError) in try transaction.record(change) }
  }

  /// Gives a message a new event. Its deliveries that have not ended well begin anew with it.
  public func redate(
    _ message: MessageID, as event: VerifiedEvent
  ) throws(LogError) -> Message {
    try transaction(.full) { transaction throws(LogError) in
      try transaction.redate(message, as: event)
    }
  }

  /// Ends a message by hand: nothing is sent any more, and views hide its event.
  public func discard(_ message: MessageID) throws(LogError) {
    try transaction(.full) { transaction throws(LogError) in try transaction.discard(message) }
  }

  // MARK: Upkeep

  /// Folds the write-ahead log into the main file and cuts it to nothing, if no reader is in the
  /// way; called when there is nothing else to do.
  @discardableResult
  public func checkpoint() throws(LogError) -> Bool {
    let database = try connection()
    // Waiting for a reader would hold up whoever writes next.
    database.setBusyTimeout(milliseconds: 0)
    defer { database.setBusyTimeout(milliseconds: options.busyMilliseconds) }
    return database.checkpoint()
  }

  /// Ends all use of the file, also by `reader`. Later calls throw `LogError.closed`.
  public func close() {
    reader.close()
    // Whether it could be done makes no difference: what stays in the write-ahead log is not lost.
    _ = try? checkpoint()
    file?.close()
    file = nil
  }

  /// Bounds the file's size from now on, as a disk would that is about to be full.
  package func setPagesMax(_ pages: Int) throws(LogError) {
    try connection().execute("PRAGMA max_page_count = \(pages)")
  }

  // MARK: Transactions

  private enum Durability { case normal, full }

  private func connection() throws(LogError) -> Connection {
    guard let file else { throw LogError.closed }
    return file
  }

  private func transaction<Result>(
    _ durability: Durability,
    _ body: (inout WriteTransaction) throws(LogError) -> Result
  ) throws(LogError) -> Result {
    let database = try connection()
    try setDurability(durability, of: database)
    try database.run("BEGIN IMMEDIATE")
    do throws(LogError) {
      var transaction = try WriteTransaction(database, state: state, now: clock.now())
      let result = try body(&transaction)
      try database.run("COMMIT")
      // Only now: a failed commit must leave no trace in memory either.
      state = transaction.state
      tail.append(transaction.entries, sizes: transaction.sizes, head: state.head)
      return result
    } catch {
      if !database.isIdle {
        // The failure that led here says more than one of the rollback could.
        _ = try? database.run("ROLLBACK")
      }
      throw error
    }
  }

  /// SQLite ignores a change of this setting inside a transaction.
  private func setDurability(
    _ durability: Durability, of database: Connection
  ) throws(LogError) {
    let isFull = durability == .full
    guard isFull != isFullySynchronous else { return }
    try database.execute(isFull ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL")
    isFullySynchronous = isFull
  }
}
