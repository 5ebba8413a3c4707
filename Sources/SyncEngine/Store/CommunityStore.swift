public import EventLog
import Glibc
public import HotCache
public import Nostr
public import NostrCrypto
import Platform
public import SearchStore
public import SyncCore

/// Where the stores of a community do their blocking work: threads of their own in the program,
/// the one thread of the simulator there.
public struct StoreExecutors: Sendable {
  public let log: any SerialExecutor
  public let cache: any SerialExecutor
  /// Nil: no words are collected, and searching collects them when it is asked for.
  public let search: (any SerialExecutor)?

  public init(
    log: any SerialExecutor, cache: any SerialExecutor, search: (any SerialExecutor)? = nil
  ) {
    self.log = log
    self.cache = cache
    self.search = search
  }

  /// A thread for each.
  public static func threads() -> StoreExecutors {
    StoreExecutors(log: ThreadExecutor(), cache: ThreadExecutor(), search: ThreadExecutor())
  }
}

/// One community on the disk: its log, its cache, and the lock that makes this process the only
/// writer.
///
/// Whatever changes the log goes through here, so that the cache hears of it.
public final class CommunityStore: Sendable {
  public let folder: String
  public let log: EventLog
  public let cache: HotCache
  /// The words of every message; nil where none are collected.
  public let search: SearchIndex?
  private let feeder: CacheFeeder
  private let searchFeeder: CacheFeeder?
  private let checkpoint: Chore
  private let restoring: Chore
  private let lock: Lock<FolderLock?>
  /// The check of a log that was not left in order, which goes on behind everything else.
  private let checking: (any SpawnedTask)?

  package static let logName = "log.sqlite"
  static let cacheName = "cache"
  public static let searchName = "search.sqlite"

  public var reader: LogReader { log.reader }

  public var views: CacheViews { cache.views }

  private init(
    folder: String, log: EventLog, cache: HotCache, search: SearchIndex?, lock: FolderLock,
    clock: any SyncClock, tasks: any TaskSpawner, limits: Limits
  ) {
    self.folder = folder
    self.log = log
    self.cache = cache
    self.search = search
    self.lock = Lock(lock)
    checking =
      log.isSound
      ? nil
      : tasks.spawn("log check") { [weak log] in
        // What it finds is kept by the log, for whoever writes or claims next.
        try? await log?.confirmSound()
      }
    checkpoint = Chore(
      "checkpoint",
      schedule: UpkeepSchedule(
        firstWait: limits.checkpointIdle, waitMax: limits.checkpointWaitMax),
      clock: clock, tasks: tasks
    ) { [weak log] in
      // A log that is closed or cannot do it now loses nothing; whoever writes next hears why.
      (try? await log?.checkpoint()) ?? true
    }
    restoring = Chore(
      "cache restoring",
      schedule: UpkeepSchedule(firstWait: limits.cacheRetry, waitMax: limits.cacheRetryMax),
      clock: clock, tasks: tasks
    ) { [weak cache] in
      if let cache { await Self.restore(cache) } else { true }
    }
    let restoring = restoring
    feeder = CacheFeeder(
      "cache feeder", tasks: tasks,
      catchUp: { limit throws(CacheError) in try await cache.catchUp(limit: limit) },
      rested: { if case .degraded = cache.views.state { await restoring.arm() } })
    searchFeeder = search.map { search in
      CacheFeeder(
        "search feeder", tasks: tasks,
        catchUp: { limit throws(CacheError) in try await search.catchUp(limit: limit) })
    }
  }

  /// Opens the community in `folder`, or makes it where the folder is empty or missing. The cache
  /// begins to catch up at once; `caughtUp` waits for it.
  public static func open(
    folder: String, clock: any SyncClock, tasks: any TaskSpawner,
    executors: StoreExecutors = .threads(), logOptions: LogOptions = LogOptions(),
    cacheOptions: CacheOptions = CacheOptions(), limits: Limits = Limits()
  ) async throws(StoreError) -> CommunityStore {
    try Home.makeFolder(folder)
    let lock = try FolderLock(folder: folder)
    do throws(LogError) {
      // Of the files of another VFS the folder tells nothing.
      if logOptions.vfs == nil { try refuseLost(folder: folder) }
      let log = try await EventLog.open(
        path: folder + "/" + logName, executor: executors.log, clock: clock, options: logOptions)
      let cache = await HotCache.open(
        directory: folder + "/" + cacheName, log: log.reader, executor: executors.cache,
        options: cacheOptions)
      let store = CommunityStore(
        folder: folder, log: log, cache: cache,
        search: executors.search.map { executor in
          SearchIndex(path: folder + "/" + searchName, log: log.reader, executor: executor)
        },
        lock: lock, clock: clock, tasks: tasks, limits: limits)
      cache.views.watch(with: clock)
      try store.loadBlocks()
      await store.feeder.ring(try log.reader.head())
      await store.searchFeeder?.ring(try log.reader.head())
      return store
    } catch {
      throw StoreError.log(error)
    }
  }

  /// Refuses a log that is missing or without a byte, where the cache beside it or the note of its
  /// last writer tells that it had entries: a new log would begin in silence where an old one was
  /// lost. A folder that was only ever begun has neither.
  public static func refuseLost(folder: String) throws(LogError) {
    let path = folder + "/" + logName
    var status = stat()
    let isThere = stat(path, &status) == 0
    guard isThere ? status.st_size == 0 : errno == ENOENT else { return }
    let held = CacheReader.entriesHeld(directory: folder + "/" + cacheName).map { Int64($0) }
    guard let entries = [held, LogReader.entriesNoted(path: path)].compactMap({ $0 }).max(),
      entries > 0
    else { return }
    throw isThere
      ? .damaged("it is empty, and had \(entries) entries") : .lost(path: path, entries: entries)
  }

  /// Whether a process has the community in `folder` open for writing; nil where that cannot be
  /// told.
  public static func isInUse(folder: String) -> Bool? { FolderLock.isHeld(folder: folder) }

  // MARK: Writing

  public func ingest(_ batch: IngestBatch) async throws(LogError) -> IngestResult {
    let result = try await log.ingest(batch)
    await wrote(result.head)
    return result
  }

  @discardableResult
  public func note(_ fact: Fact) async throws(LogError) -> LogSequence {
    let sequence = try await log.note(fact)
    await wrote(sequence)
    return sequence
  }

  public func enqueue(
    _ event: VerifiedEvent, to relays: [RelayURL], waitsFor: MessageID? = nil,
    token: Text? = nil, state: DeliveryState = .queued
  ) async throws(LogError) -> Message {
    let message = try await log.enqueue(
      event, to: relays, waitsFor: waitsFor, token: token, state: state)
    await wrote()
    return message
  }

  public func record(_ change: DeliveryChange) async throws(LogError) {
    try await log.record(change)
    await wrote()
  }

  public func redate(
    _ message: MessageID, as event: VerifiedEvent
  ) async throws(LogError) -> Message {
    let redated = try await log.redate(message, as: event)
    await wrote()
    return redated
  }

  public func discard(_ message: MessageID) async throws(LogError) {
    try await log.discard(message)
    await wrote()
  }

  // MARK: The cache

  /// Returns once the views show everything that was committed before the call, or the cache has
  /// said why it cannot.
  public func caughtUp() async {
    // The writer's own head is in memory, so this neither blocks nor fails before `close`.
    guard let head = try? reader.head() else { return }
    await feeder.reach(head)
  }

  /// Returns once the views show everything up to `sequence`.
  public func caughtUp(to sequence: LogSequence) async { await feeder.reach(sequence) }

  /// Returns once the whole log is known to be sound; throws `LogError.damaged` where it is not.
  /// Before this nothing is called complete.
  public func confirmSound() async throws(LogError) {
    if log.isSound { return }
    try await log.confirmSound()
  }

  /// Returns once everything up to `sequence` can be found by its words, or cannot come to be:
  /// `find` throws the reason then.
  public func searchable(to sequence: LogSequence) async { await searchFeeder?.reach(sequence) }

  /// The messages that say this now, newest first.
  public func find(
    _ query: SearchQuery, now: Timestamp
  ) async throws(CacheError) -> [FoundMessage] {
    let head = (try? reader.head()) ?? .start
    await caughtUp(to: head)
    guard let search else {
      return try SearchReader.openInMemory(log: reader).find(query, in: views, now: now)
    }
    await searchable(to: head)
    // Words that are not in would be taken for words that nobody said.
    if let failure = await searchFeeder?.failure { throw failure }
    do throws(CacheError) {
      return try search.views.find(query, in: views, now: now)
    } catch .damaged {
      // Both are made anew at their next turn.
      try await cache.catchUp()
      try await search.catchUp()
      return try search.views.find(query, in: views, now: now)
    }
  }

  /// Why the cache could not be brought up to date, if it could not.
  public func cacheFailure() async -> CacheError? { await feeder.failure }

  /// What was found broken in the log, by its own check or by the cache that reads it. Whoever writes stops then:
  /// what is added to a damaged log may not be found again.
  public func logDamage() async -> LogError? {
    if let damage = log.damage { return damage }
    guard case .log(let error)? = await feeder.failure, case .damaged = error else { return nil }
    return error
  }

  private func wrote() async {
    // As in `caughtUp`.
    guard let head = try? reader.head() else { return }
    await wrote(head)
  }

  private func wrote(_ head: LogSequence) async {
    await feeder.ring(head)
    await searchFeeder?.ring(head)
    await checkpoint.postpone()
  }

  /// Entries folded between two looks at what else there is to do.
  private static let restoringStep = 4000

  /// Moves the cache back onto the disk, step by step, so that it goes on being fed meanwhile.
  private static func restore(_ cache: HotCache) async -> Bool {
    while !Task.isCancelled {
      switch await cache.restore(limit: restoringStep) {
      case .underway: continue
      case .done: return true
      case .failed: return false
      }
    }
    return false
  }

  // MARK: The end

  /// Whether no relay has given or proved anything yet, and nothing was written here.
  public func isUntouched() throws(LogError) -> Bool {
    guard try reader.head() == .start else { return false }
    return try reader.coverage(asOf: nil).isEmpty
  }

  /// Brings everything to the disk, closes all files and gives the folder free.
  ///
  /// - Parameter isRemoved: Removes the folder while nobody else can be using it.
  public func close(removing isRemoved: Bool = false) async {
    log.stopChecking()
    await checking?.finished()
    if let damage = await logDamage() { await log.distrust(damage) }
    await checkpoint.close()
    await restoring.close()
    await feeder.close()
    await searchFeeder?.close()
    await cache.close()
    await search?.close()
    await log.close()
    if isRemoved { Home.remove(folder) }
    lock.withLock { $0 = nil }
  }
}
