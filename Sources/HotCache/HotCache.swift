public import EventLog
public import SyncCore

/// The writer of the cache: it pulls log entries after its watermark, folds them, and writes the
/// rows together with the watermark.
///
/// Losing the cache is never an error. A file that is not trusted is thrown away and folded again;
/// where LMDB cannot serve, the same folds run into memory and `state` says so.
public actor HotCache {
  /// Read access for everybody else.
  public nonisolated let views: CacheViews
  private nonisolated let executor: any SerialExecutor
  private let source: any EntrySource
  private let directory: String
  private var options: CacheOptions
  /// Nil once memory has taken over.
  private var folder: CacheFolder?
  /// Files that are being filled to take over from memory.
  private var restored: Restored?
  private var store: any CacheStore
  private var meta: CacheMeta
  private var isClosed = false

  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    executor.asUnownedSerialExecutor()
  }

  /// Opens the cache of a log. It never fails: without usable files it works in memory. Nothing is
  /// folded yet; `catchUp` does that.
  ///
  /// - Parameter directory: The cache's own folder; made where it is missing.
  public static func open(
    directory: String, log: LogReader, executor: any SerialExecutor,
    options: CacheOptions = CacheOptions()
  ) async -> HotCache {
    await open(
      directory: directory, source: LogSource(log), executor: executor, options: options)
  }

  /// The same over anything that has entries.
  public static func open(
    directory: String, source: any EntrySource, executor: any SerialExecutor,
    options: CacheOptions = CacheOptions()
  ) async -> HotCache {
    let cache = HotCache(
      directory: directory, source: source, executor: executor, options: options)
    await cache.openFiles()
    return cache
  }

  private init(
    directory: String, source: any EntrySource, executor: any SerialExecutor,
    options: CacheOptions
  ) {
    let memory = MemoryStore()
    self.directory = directory
    self.source = source
    self.executor = executor
    self.options = options
    store = memory
    meta = CacheMeta(logID: [], foldVersion: EntryFold.version)
    views = CacheViews(store: memory, state: .rebuilding("opening"))
  }

  // MARK: Entry points

  /// Folds what the log has after the watermark, at most `limit` entries, and returns the new
  /// watermark. A cache that is in doubt is rebuilt first.
  @discardableResult
  public func catchUp(limit: Int = .max) throws(CacheError) -> LogSequence {
    guard !isClosed else { throw .unavailable("it is closed") }
    if views.isDoubted { startAnew("a row did not match its checksum") }
    var left = limit
    var batch = RowBatch()
    while left > 0 {
      let after = LogSequence(Int64(meta.applied))
      let entries = try source.entries(after: after, limit: min(left, options.batchEntries))
      guard let last = entries.last else { break }
      left -= entries.count
      apply(entries, &batch)
      precondition(
        meta.applied >= UInt64(last.sequence.number) || views.state != .ok,
        "a batch was written without its watermark")
    }
    if left > 0, case .rebuilding = views.state { views.set(.ok) }
    return LogSequence(Int64(meta.applied))
  }

  /// Folds the whole log again, into files beside those in use; readers keep what there is until the
  /// new ones hold everything.
  public func rebuild() throws(CacheError) {
    guard !isClosed else { throw .unavailable("it is closed") }
    do throws(StoreError) {
      guard let folder, views.state == .ok, !views.isDoubted else {
        throw .unavailable("there is nothing that readers could keep")
      }
      try rebuildBeside(folder)
    } catch {
      startAnew("asked for")
    }
    try catchUp()
  }

  private func rebuildBeside(_ folder: CacheFolder) throws(StoreError) {
    let filled = try folder.prepareNext()
    do throws(StoreError) {
      var next = CacheMeta(logID: meta.logID, foldVersion: EntryFold.version)
      var batch = RowBatch()
      while true {
        let entries: [LogEntry]
        do throws(CacheError) {
          entries = try source.entries(
            after: LogSequence(Int64(next.applied)), limit: options.batchEntries)
        } catch {
          throw .unavailable("\(error)")
        }
        guard !entries.isEmpty else { break }
        try Self.fold(entries, &batch, into: filled, nil, &next)
      }
      try folder.promoteNext()
      let old = store
      use(filled, .ok)
      meta = next
      // Readers of the old files finish; new ones find the new store.
      old.close()
    } catch {
      filled.close()
      folder.removeNext()
      throw error
    }
  }

  /// Fills fresh files, `limit` entries a call, to which a cache that works in memory moves once
  /// they hold everything. Until then memory answers, and is caught up as before.
  public func restore(limit: Int) -> CacheRestoring {
    guard !isClosed, case .degraded = views.state else { return .done }
    do throws(StoreError) {
      var filling: Restored
      if let begun = restored { filling = begun } else { filling = try beginRestoring() }
      restored = filling
      let after = LogSequence(Int64(filling.meta.applied))
      let entries: [LogEntry]
      do throws(CacheError) {
        entries = try source.entries(after: after, limit: min(limit, options.batchEntries))
      } catch {
        throw .unavailable("\(error)")
      }
      guard !entries.isEmpty else {
        moveIn(filling)
        return .done
      }
      var batch = RowBatch()
      try Self.fold(entries, &batch, into: filling.store, filling.folder, &filling.meta)
      restored = filling
      return .underway
    } catch {
      restored?.abandon()
      restored = nil
      return .failed("\(error)")
    }
  }

  /// The last entry whose rows are in.
  public var applied: LogSequence { LogSequence(Int64(meta.applied)) }

  /// Writes everything to the disk, closes the files and gives the folder free. Views of a closed
  /// cache throw.
  public func close() {
    isClosed = true
    restored?.abandon()
    restored = nil
    if let folder, let files = store as? LMDBStore {
      folder.close(files)
    } else {
      store.close()
    }
    folder = nil
  }

  // MARK: Opening

  private static let isNew = "new"

  private func openFiles() {
    do throws(CacheError) {
      meta.logID = try source.logID()
    } catch {
      // The next `catchUp` meets the same failure and can throw it.
    }
    switch CacheFolder.take(directory, options: options) {
    case .failure(let refusal): degrade(refusal.reason)
    case .success(let taken):
      folder = taken
      do throws(StoreError) {
        let opened = try taken.open()
        use(opened.store, .rebuilding(opened.discarded ?? Self.isNew))
        try adopt(opened.store)
      } catch {
        degrade("\(error)")
      }
    }
  }

  /// Goes on from the watermark of an opened store, if it is a cache of this very log.
  private func adopt(_ opened: LMDBStore) throws(StoreError) {
    let found: CacheMeta?
    do throws(StoreReadError<StoreError>) {
      found = try opened.read { snapshot throws(StoreError) in try snapshot.meta() }
    } catch {
      found = nil
    }
    guard let found else { return }
    if let doubt = doubt(about: found) {
      opened.close()
      guard let folder else { return }
      use(try folder.fresh(), .rebuilding(doubt))
    } else {
      meta = found
      views.set(.ok)
    }
  }

  /// Why a watermark does not fit the log, or nil.
  private func doubt(about found: CacheMeta) -> String? {
    if found.foldVersion != EntryFold.version { return "it was made by another version" }
    if found.logID != meta.logID { return "it belongs to another log" }
    guard found.applied > 0 else { return nil }
    let before = LogSequence(Int64(found.applied - 1))
    do throws(CacheError) {
      guard let entry = try source.entries(after: before, limit: 1).first,
        entry.sequence.number == Int64(found.applied)
      else { return "it is ahead of the log" }
      return EntryFold.mark(entry) == found.lastEntry ? nil : "the log went another way"
    } catch {
      return "the log could not be compared with it"
    }
  }

  // MARK: Folding

  private func apply(_ entries: [LogEntry], _ batch: inout RowBatch) {
    do throws(StoreError) {
      try Self.fold(entries, &batch, into: store, folder, &meta)
    } catch {
      batch.removeAll()
      switch error {
      case .damaged(let why): startAnew(why)
      case .full(let why): degrade(why, isFull: true)
      case .unavailable(let why): degrade(why)
      }
    }
  }

  /// Folds entries into a store, in transactions of bounded size; `meta` follows each of them.
  private static func fold(
    _ entries: [LogEntry], _ batch: inout RowBatch, into store: any CacheStore,
    _ folder: CacheFolder?, _ meta: inout CacheMeta
  ) throws(StoreError) {
    var next = meta
    for (index, entry) in entries.enumerated() {
      EntryFold.fold(entry, into: &batch)
      next.applied = UInt64(entry.sequence.number)
      next.lastEntry = EntryFold.mark(entry)
      guard batch.isFull || index == entries.count - 1 else { continue }
      try store.write(&batch, meta: next)
      folder?.committed()
      meta = next
      batch.removeAll()
    }
  }

  private func startAnew(_ reason: String) {
    guard let folder else {
      use(MemoryStore(), views.state)
      return
    }
    let doubted = store
    do throws(StoreError) {
      use(try folder.fresh(), .rebuilding(reason))
      // Readers of the old files finish; new ones find the new store.
      doubted.close()
    } catch {
      degrade("\(error)")
    }
  }

  /// Moves into memory, from the beginning of the log.
  ///
  /// - Parameter isFull: Whether room is short: the files are of no more use then, and the log
  ///   beside them needs it more.
  private func degrade(_ reason: String, isFull: Bool = false) {
    let files = store
    use(MemoryStore(), .degraded(reason))
    files.close()
    if isFull { folder?.removeFiles() }
    folder = nil
  }

  // MARK: Back to the disk

  private struct Restored {
    let folder: CacheFolder
    let store: LMDBStore
    var meta: CacheMeta

    func abandon() {
      store.close()
      folder.removeFiles()
    }
  }

  private func beginRestoring() throws(StoreError) -> Restored {
    let id: [UInt8]
    do throws(CacheError) { id = try source.logID() } catch { throw .unavailable("\(error)") }
    switch CacheFolder.take(directory, options: options) {
    case .failure(let refusal): throw .unavailable(refusal.reason)
    case .success(let taken):
      return Restored(
        folder: taken, store: try taken.fresh(),
        meta: CacheMeta(logID: id, foldVersion: EntryFold.version))
    }
  }

  private func moveIn(_ filled: Restored) {
    restored = nil
    folder = filled.folder
    use(filled.store, .ok)
    meta = filled.meta
  }

  /// Bounds the files anew, as a disk would on which room was made.
  package func setMapBytesMax(_ bytes: Int) { options.mapBytesMax = bytes }

  private func use(_ next: any CacheStore, _ state: CacheState) {
    store = next
    switch state {
    case .rebuilding(Self.isNew), .ok: break
    case .rebuilding(let why), .degraded(let why): views.note(why)
    }
    meta = CacheMeta(logID: meta.logID, foldVersion: EntryFold.version)
    views.replace(store: next, state: state)
  }
}
