public import EventLog
import Nostr
import SyncCore

/// Views for a process that does not write: while another one holds the folder, and where writing
/// is not possible. What the files lack is folded into memory, once, up to the log's head.
public enum CacheReader {
  /// Never fails because of the cache; throws only where the log cannot be read.
  public static func open(
    directory: String, log: LogReader, options: CacheOptions = CacheOptions()
  ) throws(CacheError) -> CacheViews {
    try open(directory: directory, source: LogSource(log), options: options)
  }

  /// The same over anything that has entries.
  public static func open(
    directory: String, source: any EntrySource, options: CacheOptions = CacheOptions()
  ) throws(CacheError) -> CacheViews {
    let logID = try source.logID()
    if let (store, meta) = trustedStore(directory, logID: logID, source: source, options) {
      if meta.applied >= UInt64(try source.head().number) {
        return CacheViews(store: store, state: .ok)
      }
      let overlay = OverlayStore(base: store)
      try fold(source, into: overlay, from: meta, options)
      return CacheViews(store: overlay, state: .ok)
    }
    let memory = MemoryStore()
    let meta = CacheMeta(logID: logID, foldVersion: EntryFold.version)
    try fold(source, into: memory, from: meta, options)
    // Of an empty log there is nothing that a cache could lack.
    if try source.head() == .start { return CacheViews(store: memory, state: .ok) }
    return CacheViews(store: memory, state: .degraded("no usable cache to read"))
  }

  /// How many entries of a log the files say that they hold, whatever log that was; nil where
  /// nothing usable is there. It makes and changes nothing.
  public static func entriesHeld(
    directory: String, options: CacheOptions = CacheOptions()
  ) -> UInt64? {
    guard case .trusted(let writerLives) = Self.seal(of: directory),
      let store = openStore(directory, writerLives: writerLives, options)
    else { return nil }
    defer { store.close() }
    do throws(StoreReadError<StoreError>) {
      return try store.read { snapshot throws(StoreError) in try snapshot.meta() }?.applied
    } catch {
      return nil
    }
  }

  private static func seal(of directory: String) -> Seal.Reading {
    Seal.checkForReading(data: directory + "/data.mdb", seal: directory + "/seal")
  }

  private static func fold(
    _ source: any EntrySource, into store: any CacheStore, from start: CacheMeta,
    _ options: CacheOptions
  ) throws(CacheError) {
    var meta = start
    var batch = RowBatch()
    while true {
      let after = LogSequence(Int64(meta.applied))
      let entries = try source.entries(after: after, limit: options.batchEntries)
      guard let last = entries.last else { return }
      for entry in entries { EntryFold.fold(entry, into: &batch) }
      meta.applied = UInt64(last.sequence.number)
      meta.lastEntry = EntryFold.mark(last)
      do throws(StoreError) {
        try store.write(&batch, meta: meta)
      } catch {
        throw CacheError(error)
      }
      batch.removeAll()
    }
  }

  /// The files, if they are as a writer left or keeps them and belong to this log.
  private static func trustedStore(
    _ directory: String, logID: [UInt8], source: any EntrySource, _ options: CacheOptions
  ) -> (LMDBStore, CacheMeta)? {
    let writerLives: Bool
    switch Self.seal(of: directory) {
    case .trusted(let lives): writerLives = lives
    case .doubtful, .ours: return nil
    }
    guard let store = openStore(directory, writerLives: writerLives, options) else { return nil }
    let found: CacheMeta?
    do throws(StoreReadError<StoreError>) {
      found = try store.read { snapshot throws(StoreError) in try snapshot.meta() }
    } catch {
      found = nil
    }
    guard let found, found.logID == logID, found.foldVersion == EntryFold.version,
      fits(found, source)
    else {
      store.close()
      return nil
    }
    return (store, found)
  }

  private static func openStore(
    _ directory: String, writerLives: Bool, _ options: CacheOptions
  ) -> LMDBStore? {
    // Without a writer nobody needs the reader's slot, so a folder that may not be written will do.
    let ways: [LMDBEnvironment.Access] =
      writerLives ? [.reading] : [.reading, .readingWithoutLocks]
    for access in ways {
      do throws(StoreError) {
        return LMDBStore(
          environment: try LMDBEnvironment(
            path: directory, access: access, mapBytes: options.mapBytes,
            mapBytesMax: options.mapBytesMax))
      } catch {
        continue
      }
    }
    return nil
  }

  private static func fits(_ meta: CacheMeta, _ source: any EntrySource) -> Bool {
    guard meta.applied > 0 else { return true }
    do throws(CacheError) {
      let before = LogSequence(Int64(meta.applied - 1))
      guard let entry = try source.entries(after: before, limit: 1).first else { return false }
      return UInt64(entry.sequence.number) == meta.applied
        && EntryFold.mark(entry) == meta.lastEntry
    } catch {
      return false
    }
  }
}
