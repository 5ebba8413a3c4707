import Glibc
import Platform

/// Tells whether a data file is as its last writer left it.
///
/// LMDB follows page numbers in its file without checksums: a file cut short or overwritten while
/// nobody watched can end the process, not only give wrong rows. So after every commit the writer
/// gives the file a modification time of its own making, and notes it here together with the size.
/// Whoever touches the file afterwards replaces that time by the clock's. As commits do not wait
/// for the disk, the note also holds the boot: after another boot only a file that was synced when
/// it was closed is believed.
///
/// The file is locked as long as a writer lives: a second writer is turned away, and a reader that
/// finds the lock held may trust the file, since that writer has checked it.
package final class Seal: Sendable {
  private let descriptor: Int32
  private let dataPath: String

  package enum Opening: Sendable {
    case opened(Seal)
    /// Another process, or another part of this one, is writing.
    case inUse(byThisProcess: Bool)
    case unavailable(String)
  }

  private init(descriptor: Int32, dataPath: String) {
    self.descriptor = descriptor
    self.dataPath = dataPath
  }

  deinit { Glibc.close(descriptor) }

  /// Takes the seal of a data file for writing.
  package static func openForWriting(data: String, seal: String) -> Opening {
    let descriptor = open(seal, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return .unavailable(reason(errno)) }
    if let problem = FileLock.take(descriptor) {
      guard problem == EWOULDBLOCK else {
        Glibc.close(descriptor)
        return .unavailable(reason(problem))
      }
      let isOurs = Record.read(descriptor)?.process == UInt64(getpid())
      Glibc.close(descriptor)
      return .inUse(byThisProcess: isOurs)
    }
    return .opened(Seal(descriptor: descriptor, dataPath: data))
  }

  /// What a reader may conclude about the data file of a folder.
  package enum Reading: Sendable {
    case trusted(writerLives: Bool)
    case doubtful
    /// This process writes there, and one process must not open one environment twice.
    case ours
  }

  package static func checkForReading(data: String, seal path: String) -> Reading {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return .doubtful }
    let seal = Seal(descriptor: descriptor, dataPath: data)
    if flock(descriptor, LOCK_SH | LOCK_NB) == 0 {
      return seal.matchesData ? .trusted(writerLives: false) : .doubtful
    }
    guard let record = Record.read(descriptor) else { return .doubtful }
    return record.process == UInt64(getpid()) ? .ours : .trusted(writerLives: true)
  }

  /// Whether the data file is the one that was noted last.
  package var matchesData: Bool {
    guard let record = Record.read(descriptor), let state = FileState(dataPath) else {
      return false
    }
    return record.state == state && (record.isSynced || record.boot == Self.boot)
  }

  /// Takes over a seal: a data file that matches is noted again under this process, and false
  /// means that it must not be opened.
  package func takeOver() -> Bool {
    let matches = matchesData
    if matches, let record = Record.read(descriptor) {
      note(isSynced: record.isSynced)
    } else {
      Record(process: UInt64(getpid()), boot: Self.boot).write(descriptor)
    }
    return matches
  }

  /// Notes the data file as it is now.
  package func note(isSynced: Bool) {
    guard let state = FileState(dataPath) else { return }
    let mark = StableHash.value(
      [state.size, state.seconds, state.nanoseconds].flatMap { word in
        (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) }
      })
    let isMarked = FileTime.setModification(
      of: dataPath, seconds: Int(state.seconds), nanoseconds: Int(mark % 1_000_000_000))
    guard isMarked, let marked = FileState(dataPath) else { return }
    var record = Record(process: UInt64(getpid()), boot: Self.boot)
    record.state = marked
    record.isSynced = isSynced
    record.write(descriptor)
    if isSynced { fdatasync(descriptor) }
  }

  private static func reason(_ problem: Int32) -> String {
    strerror(problem).map { String(cString: $0) } ?? "error \(problem)"
  }

  /// A name of this boot of the machine; 0 where the system has none.
  private static let boot: UInt64 = {
    let descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return 0 }
    defer { Glibc.close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = Glibc.read(descriptor, &bytes, bytes.count)
    return count > 0 ? StableHash.value(bytes[..<count]) : 0
  }()
}

/// What is compared of the data file.
private struct FileState: Equatable {
  var size: UInt64
  var seconds: UInt64
  var nanoseconds: UInt64

  init(size: UInt64, seconds: UInt64, nanoseconds: UInt64) {
    self.size = size
    self.seconds = seconds
    self.nanoseconds = nanoseconds
  }

  init?(_ path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    self.init(
      size: UInt64(clamping: status.st_size), seconds: UInt64(clamping: status.st_mtim.tv_sec),
      nanoseconds: UInt64(clamping: status.st_mtim.tv_nsec))
  }
}

/// The note itself: eight words, the last a checksum of the others.
private struct Record {
  private static let magic: UInt64 = 0x736b_6570_5345_414c
  private static let wordCount = 8

  var process: UInt64
  var boot: UInt64
  var state = FileState(size: 0, seconds: 0, nanoseconds: 0)
  var isSynced = false

  init(process: UInt64, boot: UInt64) {
    self.process = process
    self.boot = boot
  }

  static func read(_ descriptor: Int32) -> Record? {
    var words = [UInt64](repeating: 0, count: wordCount)
    let count = words.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
    guard count == wordCount * 8, words[0] == magic, words[7] == sum(words) else { return nil }
    var record = Record(process: words[1], boot: words[2])
    record.state = FileState(size: words[3], seconds: words[4], nanoseconds: words[5])
    record.isSynced = words[6] == 1
    return record
  }

  func write(_ descriptor: Int32) {
    var words: [UInt64] = [
      Self.magic, process, boot, state.size, state.seconds, state.nanoseconds, isSynced ? 1 : 0, 0,
    ]
    words[7] = Self.sum(words)
    // A note that could not be written is a note that does not match: the cache is rebuilt then.
    _ = words.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
  }

  private static func sum(_ words: [UInt64]) -> UInt64 {
    words[..<7].withUnsafeBytes { StableHash.value($0) }
  }
}
