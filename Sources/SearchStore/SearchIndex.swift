public import EventLog
import Glibc
public import HotCache
import Nostr
public import SyncCore

/// The writer of the words: it pulls log entries after its mark and adds their texts together with
/// the new mark.
///
/// Losing the file is never an error. One that is not trusted is thrown away and made again; where
/// no file can serve, the same words are kept in memory.
public actor SearchIndex {
  public nonisolated let views: SearchViews
  private nonisolated let executor: any SerialExecutor
  private let source: any EntrySource
  private let path: String
  private var isOpen = false
  private var isClosed = false
  private var seal: Seal?
  private var file: SearchFile?
  private var reading: SearchFile?
  private var mark = SearchFile.Mark(logID: [])

  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    executor.asUnownedSerialExecutor()
  }

  /// Nothing is opened before the first `catchUp`.
  ///
  /// - Parameter executor: Runs all of its work; it must be allowed to block.
  public init(path: String, log: LogReader, executor: any SerialExecutor) {
    self.init(path: path, source: LogSource(log), executor: executor)
  }

  /// The same over anything that has entries.
  public init(path: String, source: any EntrySource, executor: any SerialExecutor) {
    self.path = path
    self.source = source
    self.executor = executor
    views = SearchViews([])
  }

  /// Adds what the log has after the mark, at most `limit` entries, and returns the new mark.
  @discardableResult
  public func catchUp(limit: Int = .max) throws(CacheError) -> LogSequence {
    guard !isClosed else { throw .unavailable("it is closed") }
    if !isOpen { try openFile() }
    if views.isDoubted { try startAnew("a search met a damaged page") }
    var left = limit
    while left > 0 {
      let entries = try source.entries(
        after: LogSequence(mark.applied), limit: min(left, Self.batch))
      guard !entries.isEmpty else { break }
      left -= entries.count
      try add(entries)
    }
    return LogSequence(mark.applied)
  }

  private static let batch = 4000

  private func add(_ entries: [LogEntry]) throws(CacheError) {
    do throws(LogError) {
      mark = try Self.add(entries, to: file, after: mark)
      seal?.note(isSynced: false)
    } catch .damaged(let why) {
      try startAnew(why)
    } catch {
      try moveIntoMemory("\(error)")
    }
  }

  static func add(
    _ entries: [LogEntry], to file: SearchFile?, after mark: SearchFile.Mark
  ) throws(LogError) -> SearchFile.Mark {
    guard let file, let last = entries.last else { return mark }
    var next = mark
    next.applied = last.sequence.number
    next.lastEntry = EntryFold.mark(last)
    try file.write(entries.compactMap(SearchFold.document), mark: next)
    return next
  }

  /// Folds what is in the write-ahead log away and gives the file free. Views of a closed index
  /// find nothing.
  public func close() {
    isClosed = true
    views.replace([], notice: nil)
    reading?.close()
    file?.close()
    if let seal {
      Self.sync(path)
      seal.note(isSynced: true)
    }
    reading = nil
    file = nil
    seal = nil
  }

  // MARK: Opening

  static func sealPath(_ path: String) -> String {
    path.hasSuffix(".sqlite") ? path.dropLast(7) + ".seal" : path + ".seal"
  }

  private func openFile() throws(CacheError) {
    isOpen = true
    mark.logID = try source.logID()
    switch Seal.openForWriting(data: path, seal: Self.sealPath(path)) {
    case .inUse: try moveIntoMemory("\(path) is in use by another writer")
    case .unavailable(let why): try moveIntoMemory("\(path) cannot be written: \(why)")
    case .opened(let taken):
      seal = taken
      guard taken.takeOver() else { return try startAnew(nil) }
      if let doubt = adopt() { try startAnew(doubt) }
    }
  }

  /// Goes on with the file that is there; says why not, where it cannot.
  private func adopt() -> String? {
    do throws(LogError) {
      let opened = try SearchFile(writing: path)
      guard let found = try opened.mark(), try Self.fits(found, mark.logID, source) else {
        opened.close()
        return "it belongs to another log"
      }
      mark = found
      try use(opened)
      return nil
    } catch {
      return "\(error)"
    }
  }

  /// Whether a mark is one of this very log.
  static func fits(
    _ found: SearchFile.Mark, _ logID: [UInt8], _ source: any EntrySource
  ) throws(LogError) -> Bool {
    guard found.logID == logID else { return false }
    guard found.applied > 0 else { return true }
    do throws(CacheError) {
      let entry = try source.entries(after: LogSequence(found.applied - 1), limit: 1).first
      return entry.map {
        $0.sequence.number == found.applied && EntryFold.mark($0) == found.lastEntry
      } ?? false
    } catch {
      guard case .log(let failure) = error else { return false }
      throw failure
    }
  }

  private func use(_ opened: SearchFile, notice: String? = nil) throws(LogError) {
    file = opened
    let second = try SearchFile(reading: path, isAlone: false)
    reading = second
    views.replace([second], notice: notice)
  }

  /// Throws the file away and begins at the log's beginning; what is looked for meanwhile is found
  /// as far as that has come.
  private func startAnew(_ notice: String?) throws(CacheError) {
    reading?.close()
    file?.close()
    (reading, file) = (nil, nil)
    mark = SearchFile.Mark(logID: mark.logID)
    guard seal != nil else { return try moveIntoMemory(notice ?? "no file") }
    for suffix in ["", "-wal", "-shm", "-journal"] { unlink(path + suffix) }
    do throws(LogError) {
      try use(try SearchFile(writing: path), notice: notice)
      seal?.note(isSynced: false)
    } catch {
      try moveIntoMemory("\(error)")
    }
  }

  /// - Parameter why: Kept for whoever asks.
  private func moveIntoMemory(_ why: String) throws(CacheError) {
    reading?.close()
    file?.close()
    reading = nil
    if seal != nil {
      // Where room was short, the log beside it needs it more.
      for suffix in ["", "-wal", "-shm"] { unlink(path + suffix) }
      seal = nil
    }
    mark = SearchFile.Mark(logID: mark.logID)
    do throws(LogError) {
      let memory = try SearchFile(writing: nil)
      file = memory
      views.replace([memory], notice: why)
    } catch {
      throw .log(error)
    }
  }

  private static func sync(_ path: String) {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    fdatasync(descriptor)
    Glibc.close(descriptor)
  }
}

/// Search for a process that does not write: beside one that does, and where writing is not
/// possible. What the file lacks is collected in memory, once, up to the log's head.
public enum SearchReader {
  public static func open(path: String, log: LogReader) throws(CacheError) -> SearchViews {
    try open(path: path, source: LogSource(log))
  }

  public static func open(path: String, source: any EntrySource) throws(CacheError) -> SearchViews {
    let logID = try source.logID()
    do throws(LogError) {
      if let (file, mark) = try trusted(path, logID, source) {
        let extra = try collected(after: mark, source)
        return SearchViews([file] + (extra.map { [$0] } ?? []))
      }
      let memory = try collected(after: SearchFile.Mark(logID: logID), source)
      return SearchViews(memory.map { [$0] } ?? [])
    } catch {
      throw .log(error)
    }
  }

  /// The same without any file, for one that turned out to be damaged.
  public static func openInMemory(log: LogReader) throws(CacheError) -> SearchViews {
    let source = LogSource(log)
    let logID = try source.logID()
    do throws(LogError) {
      let memory = try collected(after: SearchFile.Mark(logID: logID), source)
      return SearchViews(memory.map { [$0] } ?? [])
    } catch {
      throw .log(error)
    }
  }

  private static func trusted(
    _ path: String, _ logID: [UInt8], _ source: any EntrySource
  ) throws(LogError) -> (SearchFile, SearchFile.Mark)? {
    let seal = SearchIndex.sealPath(path)
    guard case .trusted(let writerLives) = Seal.checkForReading(data: path, seal: seal) else {
      return nil
    }
    var status = stat()
    let hasPending = stat(path + "-wal", &status) == 0 && status.st_size > 0
    do throws(LogError) {
      let file = try SearchFile(reading: path, isAlone: !writerLives && !hasPending)
      guard let mark = try file.mark(), try SearchIndex.fits(mark, logID, source) else {
        return nil
      }
      return (file, mark)
    } catch {
      // A file that cannot be read is one that is not there.
      return nil
    }
  }

  private static func collected(
    after start: SearchFile.Mark, _ source: any EntrySource
  ) throws(LogError) -> SearchFile? {
    var mark = start
    var file: SearchFile?
    while true {
      let entries: [LogEntry]
      do throws(CacheError) {
        entries = try source.entries(after: LogSequence(mark.applied), limit: 4000)
      } catch {
        guard case .log(let failure) = error else { throw .io("\(error)") }
        throw failure
      }
      guard !entries.isEmpty else { return file }
      if file == nil { file = try SearchFile(writing: nil) }
      mark = try SearchIndex.add(entries, to: file, after: mark)
    }
  }
}
