import Glibc

/// A file or stdin, read in pieces; a stop request ends the wait for more.
final class ByteSource {
  private let descriptor: Int32
  private let isOwned: Bool
  private let stop: Stop
  let name: String
  /// The size of a regular file, for progress.
  let size: Int?

  /// - Parameter path: `-` is stdin.
  init(path: String, stop: Stop) throws {
    self.stop = stop
    if path == "-" {
      descriptor = STDIN_FILENO
      isOwned = false
      name = "stdin"
    } else {
      descriptor = open(path, O_RDONLY | O_CLOEXEC)
      isOwned = true
      name = path
      guard descriptor >= 0 else {
        throw Failure(
          .io, "\(SafeText.line(path)) cannot be read: \(SystemError.text(errno)); check the path")
      }
    }
    var status = stat()
    let isKnown = fstat(descriptor, &status) == 0
    guard !isKnown || status.st_mode & S_IFMT != S_IFDIR else {
      if isOwned { close(descriptor) }
      throw Failure(.io, "\(SafeText.line(path)) is a folder; name a file of JSON lines")
    }
    let isRegular = isKnown && status.st_mode & S_IFMT == S_IFREG
    size = isRegular ? Int(status.st_size) : nil
  }

  deinit {
    if isOwned { close(descriptor) }
  }

  /// Appends at most `count` bytes and returns how many came; 0 at the end, and after a stop.
  func read(into buffer: inout [UInt8], count: Int) throws -> Int {
    while true {
      if size == nil, !waitUntilReadable() { return 0 }
      if stop.isRequested { return 0 }
      let start = buffer.count
      buffer.append(contentsOf: repeatElement(0, count: count))
      let got = buffer.withUnsafeMutableBytes { bytes in
        Glibc.read(descriptor, bytes.baseAddress.map { $0 + start }, count)
      }
      let code = errno
      buffer.removeLast(count - max(0, got))
      if got >= 0 { return got }
      guard code == EINTR || code == EAGAIN else {
        throw Failure(.io, "\(SafeText.line(name)) cannot be read: \(SystemError.text(code))")
      }
    }
  }

  /// False once a stop was asked for.
  private func waitUntilReadable() -> Bool {
    var waits = [
      pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0),
    ]
    while poll(&waits, 2, -1) < 0 && errno == EINTR {}
    return waits[1].revents == 0
  }
}
