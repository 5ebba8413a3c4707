public import Nostr
public import NostrCrypto
import Platform
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
  private var soundness = Soundness.unknown
  /// Up to this entry the ids are still to be checked.
  private var uncheckedThrough = LogSequence.start
  private var checkedAt: Int64 = 0
  private nonisolated let interruption = Interruption()
  private nonisolated let verdict = Lock(Verdict())

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
    try takeMark()
    let database = try LogFile.openForWriting(path: path, options: options, now: clock.now())
    do throws(LogError) {
      try state.refresh(from: database)
      tail.append([], sizes: [], head: state.head)
      file = database
      if case .sound = soundness { try begin() }
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

  /// Ends a message by hand: nothing is sent any more, and views hide its event. Throws
  /// `LogError.alreadySent` for what a relay has.
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
    let isFolded = (try? checkpoint()) ?? false
    let wasOpen = file != nil
    file?.close()
    file = nil
    guard options.isChecked, wasOpen, isFolded, case .sound = soundness else { return }
    LogMark(head: state.head, uncheckedThrough: uncheckedThrough, checkedAt: checkedAt)
      .write(for: path)
  }

  /// Bounds the file's size from now on, as a disk would that is about to be full.
  package func setPagesMax(_ pages: Int) throws(LogError) {
    try connection().execute("PRAGMA max_page_count = \(pages)")
  }

  // MARK: Soundness

  private enum Soundness {
    /// Nothing is written before it was checked.
    case unknown
    case sound
    case damaged(LogError)
  }

  private struct Verdict {
    var damage: LogError?
    var isSound = false
  }

  /// What was found wrong with the file, if something was; nothing is written then any more.
  public nonisolated var damage: LogError? { verdict.withLock { $0.damage } }

  /// Whether all of the file is known to be sound, as far as the structure and the ids say.
  public nonisolated var isSound: Bool { verdict.withLock { $0.isSound } }

  /// Returns once `isSound`; throws `LogError.damaged` where it is not, and `LogError.closed` when
  /// it was stopped. Between its steps others may write.
  public func confirmSound() async throws(LogError) {
    _ = try connection()
    try passCheck()
    do throws(LogError) {
      if uncheckedThrough > .start { try await checkOlder() }
    } catch {
      if case .damaged = error { found(error) }
      throw error
    }
    verdict.withLock { $0.isSound = true }
  }

  private func checkOlder() async throws(LogError) {
    // Outside a read it stands in nobody's way, so it may be kept while others write.
    let log = try LogReader.open(path: path, options: options)
    defer { log.close() }
    let check = SoundnessCheck(log: log, interruption: interruption)
    while uncheckedThrough > .start {
      if interruption.isStopped || file == nil { throw LogError.closed }
      uncheckedThrough = try check.chunk(endingAt: uncheckedThrough)
      await Task.yield()
      // Somebody else may have found damage meanwhile.
      try passCheck()
    }
  }

  /// Ends a check that runs; what it has not come to is left to the next opening.
  public nonisolated func stopChecking() { interruption.stop() }

  /// Notes that somebody else has found the file damaged: it is not to be trusted when it is opened
  /// next.
  public func distrust(_ error: LogError) { found(error) }

  private func found(_ error: LogError) {
    soundness = .damaged(error)
    verdict.withLock { $0 = Verdict(damage: error) }
    LogMark.void(for: path)
  }

  /// Decides, before the file is opened for writing, whether it has to be checked first.
  private func takeMark() throws(LogError) {
    soundness = .sound
    checkedAt = clock.now().seconds
    guard options.isChecked, options.vfs == nil, let bytes = FileSize.of(path), bytes > 0 else {
      return verdict.withLock { $0.isSound = true }
    }
    let now = clock.now().seconds
    if let (mark, fits) = LogMark.read(for: path), fits, mark.checkedAt <= now,
      mark.checkedAt > now - options.checkHoldsSeconds
    {
      (uncheckedThrough, checkedAt) = (mark.uncheckedThrough, mark.checkedAt)
      return verdict.withLock { $0.isSound = mark.uncheckedThrough == .start }
    }
    soundness = .unknown
    let waiting = FileSize.of(path + "-wal") ?? 0
    let version = try FileHeader.read(path: path)?.schemaVersion
    // What is to be migrated is written to at once.
    guard bytes + waiting <= options.checkedAtOnceBytesMax || version != options.migrations.count
    else { return }
    try check()
  }

  /// Checks what must be sound before the first write, once.
  private func passCheck() throws(LogError) {
    switch soundness {
    case .sound: return
    case .damaged(let error): throw error
    case .unknown:
      try check()
      try begin()
    }
  }

  private func check() throws(LogError) {
    let log: LogReader
    do throws(LogError) {
      log = try LogReader.open(path: path, options: options)
    } catch {
      // What else is wrong is for the writer to say: an older schema, say, is no damage.
      guard case .damaged = error else { return soundness = .sound }
      throw error
    }
    defer { log.close() }
    do throws(LogError) {
      let check = SoundnessCheck(log: log, interruption: interruption)
      guard let through = try check.newest() else { throw LogError.closed }
      uncheckedThrough = through
      soundness = .sound
    } catch {
      if case .damaged = error { found(error) }
      throw error
    }
  }

  /// A state that speaks of a process that is gone must not block what it was about.
  private func begin() throws(LogError) {
    try transaction(.full) { transaction throws(LogError) in
      try transaction.endInterruptedDeliveries()
    }
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
    try passCheck()
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
      if case .damaged = error { found(error) }
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
