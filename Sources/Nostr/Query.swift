/// The parameters of a link, percent-decoded.
struct Query {
  private var items: [(name: Text, value: Text)] = []

  /// - Parameter text: What stands behind the question mark.
  init(_ text: ArraySlice<UInt8>) {
    for part in text.prefix(while: { $0 != 0x23 }).split(separator: 0x26) {
      let halves = part.split(separator: 0x3d, maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = Self.decoded(halves[0]) else { continue }
      guard halves.count == 2, let value = Self.decoded(halves[1]) else { continue }
      items.append((name, value))
    }
  }

  /// The first parameter of that name.
  subscript(_ name: Text) -> Text? { items.first { $0.name == name }?.value }

  /// Nil for a bad escape and for bytes that are not UTF-8.
  static func decoded(_ text: ArraySlice<UInt8>) -> Text? {
    var result: [UInt8] = []
    var rest = text
    while let byte = rest.first {
      rest = rest.dropFirst()
      guard byte == 0x25 else {
        result.append(byte)
        continue
      }
      guard let value = hexPair(rest.prefix(2)) else { return nil }
      result.append(value)
      rest = rest.dropFirst(2)
    }
    return result.withUnsafeBytes(UTF8Check.isValid) ? Text(utf8: result) : nil
  }

  /// The text with everything escaped but letters, digits and `-._~`.
  static func escaped(_ text: Text) -> String {
    var result: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f, 0x7e: result.append(byte)
      default:
        result.append(0x25)
        result.append(contentsOf: Hex.string([byte]).uppercased().utf8)
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  private static func hexPair(_ digits: ArraySlice<UInt8>) -> UInt8? {
    guard digits.count == 2 else { return nil }
    let lower = digits.map { $0 >= 0x41 && $0 <= 0x46 ? $0 | 0x20 : $0 }
    return Hex.bytes(lower)?.first
  }
}
