import Glibc

/// The program's stdout: data only, written in large pieces.
///
/// A reader that goes away ends the program quietly (`OutputClosed`); a full disk is a failure.
final class StandardOutput {
  private let descriptor: Int32
  private var buffer: [UInt8] = []
  private static let pieceBytes = 256 * 1024

  let isTerminal: Bool

  init(descriptor: Int32 = STDOUT_FILENO) {
    self.descriptor = descriptor
    isTerminal = isatty(descriptor) == 1
    buffer.reserveCapacity(Self.pieceBytes + 4096)
  }

  func write(_ bytes: some Sequence<UInt8>) throws {
    buffer.append(contentsOf: bytes)
    if buffer.count >= Self.pieceBytes { try flush() }
  }

  func write(line text: String) throws {
    try write(text.utf8)
    try write(CollectionOfOne(UInt8(ascii: "\n")))
  }

  func write(row: JSON) throws { try write(row.line) }

  /// Hands everything over; called before the program waits for anything, and at its end.
  func flush() throws {
    var start = 0
    defer { buffer.removeAll(keepingCapacity: true) }
    while start < buffer.count {
      let written = buffer.withUnsafeBytes { bytes in
        Glibc.write(descriptor, bytes.baseAddress.map { $0 + start }, bytes.count - start)
      }
      if written >= 0 {
        start += written
      } else if errno == EPIPE {
        throw OutputClosed()
      } else if errno != EINTR {
        throw Failure(.io, "the output could not be written: \(SystemError.text(errno))")
      }
    }
  }
}

/// The words of an errno.
enum SystemError {
  static func text(_ code: Int32) -> String { String(cString: strerror(code)) }

  /// What to do about a failure to write below the home.
  static func failure(_ code: Int32, doing what: String) -> Failure {
    switch code {
    case ENOSPC, EDQUOT:
      Failure(.io, "\(what): the disk is full; make room and run the same command again")
    case EROFS, EACCES, EPERM:
      Failure(
        .io,
        "\(what): no permission to write there; choose another place with --home, or change"
          + " who may write")
    default: Failure(.io, "\(what): \(text(code))")
    }
  }
}
