import Glibc

/// A file that appears whole or not at all: written beside its place, made durable, then renamed.
///
/// What is no file (a terminal, a named pipe, `/dev/null`) is written to as it is, since a rename
/// would replace it for everybody; and a link goes on pointing where it points.
final class AtomicFile {
  private let path: String
  /// Nil where the path is written to as it is.
  private let draft: String?
  private var descriptor: Int32
  private var buffer: [UInt8] = []
  private static let pieceBytes = 1024 * 1024

  init(_ path: String) throws {
    var status = stat()
    let isThere = stat(path, &status) == 0
    if isThere, status.st_mode & S_IFMT != S_IFREG {
      self.path = path
      draft = nil
      descriptor = open(path, O_WRONLY | O_CLOEXEC)
    } else {
      let place = Self.target(of: path)
      let draft = place + ".part-\(getpid())"
      self.path = place
      self.draft = draft
      descriptor = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode_t(0o644))
      // What was kept from others stays so.
      if isThere, descriptor >= 0 { fchmod(descriptor, status.st_mode & 0o777) }
    }
    guard descriptor >= 0 else { throw failure() }
  }

  deinit {
    guard descriptor >= 0 else { return }
    close(descriptor)
    if let draft { unlink(draft) }
  }

  /// Where a chain of links ends, also where nothing is there yet.
  private static func target(of path: String) -> String {
    var place = path
    for _ in 0..<linksMax {
      var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
      let count = readlink(place, &buffer, buffer.count)
      // What is no link cannot be read as one, and is the end.
      guard count > 0, count < buffer.count else { return place }
      let next = String(
        decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
      let end = place.lastIndex(of: "/").map { place.index(after: $0) } ?? place.startIndex
      place = next.hasPrefix("/") ? next : place[..<end] + next
    }
    return place
  }

  /// As many as the kernel follows.
  private static let linksMax = 40

  func write(_ bytes: [UInt8]) throws {
    buffer.append(contentsOf: bytes)
    if buffer.count >= Self.pieceBytes { try drain() }
  }

  /// Puts the file in its place; it survives a power cut from then on.
  func finish() throws {
    try drain()
    guard let draft else {
      close(descriptor)
      descriptor = -1
      return
    }
    guard fsync(descriptor) == 0 else { throw failure() }
    close(descriptor)
    descriptor = -1
    guard rename(draft, path) == 0 else {
      let code = errno
      unlink(draft)
      throw SystemError.failure(code, doing: "\(path) cannot be written")
    }
    let end = path.lastIndex(of: "/")
    let parent = end.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    let folder = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard folder >= 0 else { return }
    fsync(folder)
    close(folder)
  }

  private func drain() throws {
    var start = 0
    while start < buffer.count {
      let written = buffer.withUnsafeBytes { bytes in
        Glibc.write(descriptor, bytes.baseAddress.map { $0 + start }, bytes.count - start)
      }
      if written >= 0 { start += written } else if errno != EINTR { throw failure() }
    }
    buffer.removeAll(keepingCapacity: true)
  }

  private func failure() -> Failure {
    SystemError.failure(errno, doing: "\(path) cannot be written")
  }
}
