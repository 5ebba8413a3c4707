import CEdit
import Glibc

/// Reads characters for libedit, which would drop in silence every byte that it cannot take: the
/// rest of the line would look like what was meant, and be signed.
///
/// What is no UTF-8, and control characters that no key of a terminal sends, show as a mark in the
/// line, and the line is then refused as a whole.
enum TypedCharacters {
  // libedit calls a plain function, on the one thread that edits lines.
  nonisolated(unsafe) private static var decoder = TypedDecoder()

  /// Makes `edit` take its characters from here.
  static func read(for edit: OpaquePointer) {
    // The runtime would answer the quit key with its own debugger in the middle of the line.
    signal(SIGQUIT, SIG_IGN)
    skep_el_set_reader(edit) { _, character in
      while true {
        var byte: UInt8 = 0
        let count = Glibc.read(STDIN_FILENO, &byte, 1)
        if count < 0 && errno == EINTR { continue }
        guard count > 0 else { return Int32(count) }
        guard let scalar = TypedCharacters.decoder.take(byte) else { continue }
        character?.pointee = wchar_t(bitPattern: scalar.value)
        return 1
      }
    }
  }

  /// Whether something could not be taken since the last time this was asked.
  static func takeFault() -> Bool {
    defer { decoder.hasFault = false }
    return decoder.hasFault
  }
}

/// UTF-8 as it is typed, a byte at a time.
struct TypedDecoder {
  /// Whether a mark was given in place of something that could not be taken.
  var hasFault = false
  private var pending: [UInt8] = []

  private static let mark: Unicode.Scalar = "\u{fffd}"

  /// The character that `byte` completes; nil while more is needed.
  mutating func take(_ byte: UInt8) -> Unicode.Scalar? {
    let isContinuation = byte & 0xc0 == 0x80
    if !pending.isEmpty && !isContinuation {
      // The character before was cut short, and this byte begins another one.
      pending = []
      hasFault = true
    }
    if pending.isEmpty && byte < 0x80 { return Unicode.Scalar(byte) }
    pending.append(byte)
    guard let length = Self.length(pending[0]) else { return fault() }
    guard pending.count == length else { return nil }
    guard let text = String(validating: pending, as: UTF8.self),
      let scalar = text.unicodeScalars.first, scalar.value >= 0xa0
    else { return fault() }
    pending = []
    return scalar
  }

  private mutating func fault() -> Unicode.Scalar {
    pending = []
    hasFault = true
    return Self.mark
  }

  private static func length(_ first: UInt8) -> Int? {
    switch first {
    case 0xc2...0xdf: 2
    case 0xe0...0xef: 3
    case 0xf0...0xf4: 4
    default: nil
    }
  }
}
