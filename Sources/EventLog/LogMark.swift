import Glibc
import Nostr
import NostrCrypto
import Platform
import SyncCore

/// What the last writer noted about a log that it closed in order, in a small file beside it.
///
/// A file that still is as it was noted need not be checked before it is written to. The note holds
/// the size and both times of the log, of which the modification time is one of our own making: who
/// touches the file replaces it by the clock's, and nobody sets the other.
struct LogMark: Hashable, Sendable {
  /// The last entry of the log.
  var head: LogSequence
  /// Up to this entry the ids are still to be checked.
  var uncheckedThrough: LogSequence
  /// When the log was found sound, in seconds.
  var checkedAt: Int64

  private static let name = "skep-log-checked-1"
  private static let bytesMax = 512

  static func path(of log: String) -> String { log + "-checked" }

  /// Notes a log that was closed, with everything folded into its main file.
  ///
  /// What cannot be noted is checked anew by the next writer, so nothing here can fail.
  func write(for log: String) {
    guard let state = FileState(log), FileSize.of(log + "-wal") ?? 0 == 0 else { return }
    let isMarked = FileTime.setModification(
      of: log, seconds: Int(state.modified), nanoseconds: Self.ownNanoseconds(state))
    guard isMarked, let marked = FileState(log) else { return }
    _ = write(beside: log, of: marked.numbers)
  }

  /// Makes the note beside a log fit no file any more. It goes on telling how many entries there
  /// were, so that a log which is lost after this is missed.
  static func void(for log: String) {
    guard let (mark, _) = read(for: log) else { return }
    let done = mark.write(
      beside: log, of: [Int64](repeating: 0, count: FileState.numbersCount))
    if !done { unlink(path(of: log)) }
  }

  private func write(beside log: String, of state: [Int64]) -> Bool {
    let text = Self.line(state + [head.number, uncheckedThrough.number, checkedAt])
    let bytes = Array(text.utf8)
    let path = Self.path(of: log)
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return false }
    let written = Glibc.write(descriptor, bytes, bytes.count)
    fdatasync(descriptor)
    Glibc.close(descriptor)
    if written != bytes.count { unlink(path) }
    return written == bytes.count
  }

  /// The note beside a log, whether or not it still fits; nil where there is none that is whole.
  static func read(for log: String) -> (mark: LogMark, fits: Bool)? {
    let descriptor = open(path(of: log), O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { Glibc.close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: bytesMax)
    let count = Glibc.read(descriptor, &bytes, bytes.count)
    guard count > 0 else { return nil }
    let text = String(decoding: bytes[..<count], as: UTF8.self)
    let numbers = text.split(separator: " ").dropFirst().dropLast().compactMap { Int64($0) }
    guard numbers.count == FileState.numbersCount + 3, line(numbers) == text else { return nil }
    let own = numbers.suffix(3)
    let mark = LogMark(
      head: LogSequence(own[own.startIndex]),
      uncheckedThrough: LogSequence(own[own.startIndex + 1]), checkedAt: own[own.startIndex + 2])
    let fits =
      FileState(log)?.numbers == Array(numbers.prefix(FileState.numbersCount))
      && FileSize.of(log + "-wal") ?? 0 == 0
    return (mark, fits)
  }

  /// The note as it is written: its numbers between its name and a checksum.
  private static func line(_ numbers: [Int64]) -> String {
    let body = ([name] + numbers.map { String($0) }).joined(separator: " ")
    return body + " " + SHA256.hash(Array(body.utf8)).hex + "\n"
  }

  private static func ownNanoseconds(_ state: FileState) -> Int {
    let digest = SHA256.hash(Array(state.numbers.map { String($0) }.joined(separator: " ").utf8))
    let word = digest.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
    return Int(word % 1_000_000_000)
  }
}

/// What is compared of a file.
private struct FileState {
  let size: Int64
  let node: Int64
  let modified: Int64
  let modifiedNanoseconds: Int64
  let changed: Int64
  let changedNanoseconds: Int64

  static let numbersCount = 6

  init?(_ path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    size = Int64(status.st_size)
    node = Int64(truncatingIfNeeded: status.st_ino)
    modified = Int64(status.st_mtim.tv_sec)
    modifiedNanoseconds = Int64(status.st_mtim.tv_nsec)
    changed = Int64(status.st_ctim.tv_sec)
    changedNanoseconds = Int64(status.st_ctim.tv_nsec)
  }

  var numbers: [Int64] {
    [size, node, modified, modifiedNanoseconds, changed, changedNanoseconds]
  }
}
