public import Nostr

/// Why text cannot be sent as it stands.
public enum ComposeError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A control character other than tab and line feed.
  case control(offset: Int, scalar: UInt32)
  case notUTF8(offset: Int)
  case tooLong(Int)

  public var description: String {
    switch self {
    case .control(let offset, let scalar):
      "the text has the control character U+\(ComposeError.digits(scalar)) at byte \(offset)"
    case .notUTF8(let offset): "the text is not UTF-8 at byte \(offset)"
    case .tooLong(let count):
      "the text is \(count) bytes long; \(ComposedText.bytesMax) can be sent"
    }
  }

  private static func digits(_ scalar: UInt32) -> String {
    let digits = String(scalar, radix: 16, uppercase: true)
    return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
  }
}

/// Text that a person wrote and that every relay and client hashes, stores and shows alike.
///
/// Implementations disagree about control characters (raw or escaped, cut at NUL), and terminals
/// obey them, so none but tab and line feed is sent. CR LF becomes LF.
public struct ComposedText: Hashable, Sendable {
  public let text: Text

  /// What Buzz's own clients accept.
  public static let bytesMax = 65_536

  public init(_ text: Text) throws(ComposeError) { try self.init(utf8: text.utf8) }

  /// - Parameter utf8: As typed. Offsets in errors count from its first byte.
  public init(utf8: some Collection<UInt8>) throws(ComposeError) {
    let bytes = Array(utf8)
    var kept: [UInt8] = []
    kept.reserveCapacity(bytes.count)
    var offset = 0
    while offset < bytes.count {
      let length = try ComposedText.scalarLength(bytes, at: offset)
      if bytes[offset] == 0x0d, offset + 1 < bytes.count, bytes[offset + 1] == 0x0a {
        offset += 1
        continue
      }
      if let scalar = ComposedText.control(bytes, at: offset) {
        throw .control(offset: offset, scalar: scalar)
      }
      kept.append(contentsOf: bytes[offset..<offset + length])
      offset += length
    }
    guard kept.count <= ComposedText.bytesMax else { throw .tooLong(kept.count) }
    text = Text(utf8: kept)
  }

  /// The control character at `offset`: C0 but tab and line feed, DEL, and C1 (U+0080…U+009F).
  private static func control(_ bytes: [UInt8], at offset: Int) -> UInt32? {
    let byte = bytes[offset]
    if byte < 0x20 { return byte == 0x09 || byte == 0x0a ? nil : UInt32(byte) }
    if byte == 0x7f { return 0x7f }
    if byte == 0xc2, bytes[offset + 1] < 0xa0 { return UInt32(bytes[offset + 1]) }
    return nil
  }

  /// The number of bytes of the scalar at `offset`, by the table of well-formed UTF-8.
  private static func scalarLength(_ bytes: [UInt8], at offset: Int) throws(ComposeError) -> Int {
    func byte(_ index: Int) -> UInt8 { offset + index < bytes.count ? bytes[offset + index] : 0 }
    func isTail(_ index: Int) -> Bool { byte(index) & 0xc0 == 0x80 }
    let length: Int? =
      switch byte(0) {
      case 0x00...0x7f: 1
      case 0xc2...0xdf: isTail(1) ? 2 : nil
      case 0xe0: (0xa0...0xbf).contains(byte(1)) && isTail(2) ? 3 : nil
      case 0xed: (0x80...0x9f).contains(byte(1)) && isTail(2) ? 3 : nil
      case 0xe1...0xef: isTail(1) && isTail(2) ? 3 : nil
      case 0xf0: (0x90...0xbf).contains(byte(1)) && isTail(2) && isTail(3) ? 4 : nil
      case 0xf4: (0x80...0x8f).contains(byte(1)) && isTail(2) && isTail(3) ? 4 : nil
      case 0xf1...0xf3: isTail(1) && isTail(2) && isTail(3) ? 4 : nil
      default: nil
      }
    guard let length else { throw .notUTF8(offset: offset) }
    return length
  }
}
