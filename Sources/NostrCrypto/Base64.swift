/// Base64 with padding (RFC 4648, section 4), in its one canonical spelling.
package enum Base64 {
  package static func encode(_ bytes: some Collection<UInt8>) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count + 2) / 3 * 4)
    var held: UInt32 = 0
    var bits = 0
    for byte in bytes {
      held = held << 8 | UInt32(byte)
      bits += 8
      while bits >= 6 {
        bits -= 6
        text.append(alphabet[Int(held >> UInt32(bits) & 63)])
      }
    }
    if bits > 0 { text.append(alphabet[Int(held << UInt32(6 - bits) & 63)]) }
    while text.count % 4 != 0 { text.append(pad) }
    return text
  }

  /// The bytes, or nil for any other character, missing or misplaced padding, or bits in the
  /// last digit that no byte uses: bytes must not have two spellings.
  package static func decode(_ text: some BidirectionalCollection<UInt8>) -> [UInt8]? {
    let padding = text.suffix(2).reversed().prefix { $0 == pad }.count
    guard text.count % 4 == 0 else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count / 4 * 3)
    var held: UInt32 = 0
    var bits = 0
    for character in text.dropLast(padding) {
      let value = values[Int(character)]
      guard value < 64 else { return nil }
      held = (held << 6 | UInt32(value)) & 0xffff
      bits += 6
      if bits >= 8 {
        bits -= 8
        bytes.append(UInt8(held >> UInt32(bits) & 255))
      }
    }
    let rest = held & ((1 << UInt32(bits)) - 1)
    return rest == 0 && bits < 6 ? bytes : nil
  }

  private static let pad = UInt8(ascii: "=")
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  private static let values: [UInt8] = {
    var table = [UInt8](repeating: 255, count: 256)
    for (value, character) in alphabet.enumerated() { table[Int(character)] = UInt8(value) }
    return table
  }()
}
