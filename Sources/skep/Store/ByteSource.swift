import Glibc
import Platform
import SyncEngine

/// A file or stdin, read in pieces; a stop request ends the wait for more.
actor ByteSource: ByteChunkSource {
  private let descriptor: Int32
  private let isOwned: Bool
  private let executor = ThreadExecutor()
  private let stop: Stop
  nonisolated let name: String
  /// The size of a regular file, for progress.
  nonisolated let size: Int?

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

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Whether a path names the file that is read, through whatever links.
  nonisolated func isFile(_ path: String) -> Bool {
    var own = stat()
    var other = stat()
    return fstat(descriptor, &own) == 0 && stat(path, &other) == 0
      && own.st_mode & S_IFMT == S_IFREG && own.st_dev == other.st_dev
      && own.st_ino == other.st_ino
  }

  private static let pieceBytes = 1 << 20

  /// The next piece; nil at the end.
  func next() async throws(ByteSourceError) -> [UInt8]? {
    while true {
      if size == nil, !waitUntilReadable() { throw .stopped }
      if stop.isRequested { throw .stopped }
      var code: Int32 = 0
      let piece = [UInt8](unsafeUninitializedCapacity: Self.pieceBytes) { buffer, count in
        let got = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
        code = got < 0 ? errno : 0
        count = max(0, got)
      }
      if code == 0 { return piece.isEmpty ? nil : piece }
      guard code == EINTR || code == EAGAIN else {
        throw ByteSourceError("\(SafeText.line(name)) cannot be read: \(SystemError.text(code))")
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
