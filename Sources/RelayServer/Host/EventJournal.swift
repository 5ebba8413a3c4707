import Glibc
package import Nostr
import Platform

/// The events of a small relay in one file, a line of JSON each, so that they survive a restart.
///
/// Each event is one `write` at the end of the file. The file survives the process; it is not
/// forced to the disk, because a demo relay promises no more than that. A last line torn by a
/// crash is cut off when the file is opened. One process has the file at a time.
package final class EventJournal: Sendable {
  private let file: Lock<Int32>

  /// Opens or makes the file.
  ///
  /// - Returns: The journal, and the events in it in the order in which they were accepted.
  package static func open(path: String) throws(JournalError) -> (EventJournal, [Event]) {
    let file = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw .cannotOpen(path: path, errno: errno) }
    let journal = EventJournal(file)
    if let problem = FileLock.take(file) {
      throw problem == EWOULDBLOCK ? .inUse(path: path) : .cannotOpen(path: path, errno: problem)
    }
    let (events, bytesGood) = try journal.read(path)
    guard ftruncate(file, off_t(bytesGood)) == 0, lseek(file, 0, SEEK_END) >= 0 else {
      throw .cannotWrite(errno: errno)
    }
    return (journal, events)
  }

  private init(_ file: Int32) { self.file = Lock(file) }

  deinit { file.withLock { _ = close($0) } }

  package func append(_ event: Event) throws(JournalError) { try append([event]) }

  /// Writes many at once; what was written of them before a failure stays.
  package func append(_ events: [Event]) throws(JournalError) {
    var lines: [UInt8] = []
    for event in events {
      lines.append(contentsOf: event.json())
      lines.append(UInt8(ascii: "\n"))
    }
    try write(lines)
  }

  private func write(_ bytes: [UInt8]) throws(JournalError) {
    let failure = file.withLock { file -> Int32? in
      var offset = 0
      while offset < bytes.count {
        let written = bytes[offset...].withUnsafeBytes {
          Glibc.write(file, $0.baseAddress, $0.count)
        }
        if written < 0 && errno == EINTR { continue }
        if written <= 0 { return errno }
        offset += written
      }
      return nil
    }
    if let failure { throw .cannotWrite(errno: failure) }
  }

  private func read(_ path: String) throws(JournalError) -> ([Event], Int) {
    let bytes = try readAll(path)
    var events: [Event] = []
    var start = 0
    while let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
      do throws(ScanError) {
        events.append(try EventScanner.event(bytes[start..<end]))
      } catch {
        throw .damaged(path: path, line: events.count + 1, reason: error.reason)
      }
      start = end + 1
    }
    return (events, start)
  }

  private func readAll(_ path: String) throws(JournalError) -> [UInt8] {
    let (bytes, failure) = file.withLock { file -> ([UInt8], Int32?) in
      var bytes: [UInt8] = []
      var chunk = [UInt8](repeating: 0, count: 1 << 16)
      while true {
        let count = chunk.withUnsafeMutableBytes { Glibc.read(file, $0.baseAddress, $0.count) }
        if count < 0 && errno == EINTR { continue }
        if count < 0 { return ([], errno) }
        if count == 0 { return (bytes, nil) }
        bytes.append(contentsOf: chunk[..<count])
      }
    }
    if let failure { throw .cannotOpen(path: path, errno: failure) }
    return bytes
  }
}

package enum JournalError: Error, Hashable, Sendable, CustomStringConvertible {
  case cannotOpen(path: String, errno: Int32)
  case cannotWrite(errno: Int32)
  /// Another process has it.
  case inUse(path: String)
  /// A line is not an event; nothing was changed.
  case damaged(path: String, line: Int, reason: String)

  package var description: String {
    switch self {
    case .cannotOpen(let path, let code):
      "\(path) cannot be opened: \(String(cString: strerror(code)))"
    case .inUse(let path):
      "\(path) is in use by another relay; stop that one, or give this one a --home of its own"
    case .cannotWrite(let code):
      "the relay's events cannot be written: \(String(cString: strerror(code)))"
    case .damaged(let path, let line, let reason):
      "\(path) is damaged at line \(line) (\(reason)); move it away to start afresh"
    }
  }
}
