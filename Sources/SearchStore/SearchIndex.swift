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
  private var isClosed = false
  private var seal: Seal?
  /// Nil before the first `catchUp`, and as long as none could be had.
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
    var writing = if let file { file } else { try openFile() }
    if views.isDoubted { writing = try startAnew() }
    var left = limit
    while left > 0 {
      let entries = try source.entries(
        after: LogSequence(mark.applied), limit: min(left, Self.batch))
      guard !entries.isEmpty else { break }
      left -= entries.count
      writing = try add(entries, to: writing)
    }
    return LogSequence(mark.applied)
  }

  private static let batch = 4000

  /// - Returns: The file to go on with.
  private func add(
    _ entries: [LogEntry], to file: SearchFile
  ) throws(CacheError) -> SearchFile {
    do throws(LogError) {
      mark = try Self.add(entries, to: file, after: mark)
      seal?.note(isSynced: false)
      return file
    } catch .damaged {
      return try startAnew()
    } catch {
      return try moveIntoMemory()
    }
  }

  static func add(
    _ entries: [LogEntry], to file: SearchFile, after mark: SearchFile.Mark
  ) throws(LogError) -> SearchFile.Mark {
    guard let last = entries.last else { return mark }
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
    closeFiles()
    if let seal {
      Self.sync(path)
      seal.note(isSynced: true)
    }
    seal = nil
  }

  // MARK: Opening

  static func sealPath(_ path: String) -> String {
    path.hasSuffix(".sqlite") ? path.dropLast(7) + ".seal" : path + ".seal"
  }

  private func openFile() throws(CacheError) -> SearchFile {
    mark.logID = try source.logID()
    guard case .opened(let taken) = Seal.openForWriting(data: path, seal: Self.sealPath(path))
    else { return try moveIntoMemory() }
    seal = taken
    if taken.takeOver(), let adopted = adopt() { return adopted }
    return try startAnew()
  }

  /// Goes on with the file that is there; nil where it cannot.
  private func adopt() -> SearchFile? {
    do throws(LogError) {
      let opened = try SearchFile(writing: path)
      guard let found = try opened.mark(), try Self.fits(found, mark.logID, source) else {
        opened.close()
        return nil
      }
      mark = found
      return try use(opened)
    } catch {
      return nil
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

  private func use(_ opened: SearchFile) throws(LogError) -> SearchFile {
    file = opened
    let second = try SearchFile(reading: path, isAlone: false)
    reading = second
    views.replace([second])
    return opened
  }

  /// Closes what is open, after views have let go of it: a search that began before is told, and
  /// goes on with what comes instead.
  private func closeFiles() {
    views.replace([])
    reading?.close()
    file?.close()
    (reading, file) = (nil, nil)
  }

  /// Throws the file away and begins at the log's beginning; what is looked for meanwhile is found
  /// as far as that has come.
  private func startAnew() throws(CacheError) -> SearchFile {
    closeFiles()
    mark = SearchFile.Mark(logID: mark.logID)
    guard seal != nil else { return try moveIntoMemory() }
    for suffix in ["", "-wal", "-shm", "-journal"] { unlink(path + suffix) }
    do throws(LogError) {
      let made = try use(try SearchFile(writing: path))
      seal?.note(isSynced: false)
      return made
    } catch {
      return try moveIntoMemory()
    }
  }

  private func moveIntoMemory() throws(CacheError) -> SearchFile {
    closeFiles()
    if seal != nil {
      // Where room was short, the log beside it needs it more.
      for suffix in ["", "-wal", "-shm"] { unlink(path + suffix) }
      seal = nil
    }
    mark = SearchFile.Mark(logID: mark.logID)
    do throws(LogError) {
      let memory = try SearchFile(writing: nil)
      file = memory
      views.replace([memory])
      return memory
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
      let memory = if let file { file } else { try SearchFile(writing: nil) }
      mark = try SearchIndex.add(entries, to: memory, after: mark)
      file = memory
    }
  }
}
