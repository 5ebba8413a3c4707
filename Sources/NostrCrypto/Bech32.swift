/// Bech32 (BIP-173) without a limit on length, for the texts that hold a secret.
enum Bech32 {
  static func encode(_ bytes: UnsafeRawBufferPointer, prefix: String) -> String {
    let human = Array(prefix.utf8)
    var values = regroup(bytes, from: 8, to: 5, padding: true) ?? []
    defer { wipe(&values) }
    let check = checksum(human, values + [0, 0, 0, 0, 0, 0]) ^ 1
    var text = human + [separator]
    text.append(contentsOf: values.map { alphabet[Int($0)] })
    for index in 0..<6 { text.append(alphabet[Int(check >> (5 * (5 - index))) & 31]) }
    return String(decoding: text, as: UTF8.self)
  }

  /// The bytes behind `text`, or nil where it has another prefix, mixed case, a wrong character,
  /// checksum or padding.
  static func decode(_ text: some StringProtocol, prefix: String) -> [UInt8]? {
    let human = Array(prefix.utf8)
    let given = Array(text.utf8)
    let isUpper = given.contains { (0x41...0x5a).contains($0) }
    let isLower = given.contains { (0x61...0x7a).contains($0) }
    guard !(isUpper && isLower) else { return nil }
    let folded = isUpper ? given.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 } : given
    guard let end = folded.lastIndex(of: separator), Array(folded[..<end]) == human,
      folded.count - end > 6
    else { return nil }
    var values: [UInt8] = []
    values.reserveCapacity(folded.count)
    defer { wipe(&values) }
    for character in folded[(end + 1)...] {
      guard let value = alphabet.firstIndex(of: character) else { return nil }
      values.append(UInt8(value))
    }
    guard checksum(human, values) == 1 else { return nil }
    return values.withUnsafeBytes {
      regroup(UnsafeRawBufferPointer(rebasing: $0.dropLast(6)), from: 5, to: 8, padding: false)
    }
  }

  private static let separator = UInt8(ascii: "1")
  private static let alphabet = Array("qpzry9x8gf2tvdw0s3jn54khce6mua7l".utf8)

  private static func checksum(_ human: [UInt8], _ values: [UInt8]) -> UInt32 {
    let generator: [UInt32] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3]
    var state: UInt32 = 1
    for value in human.map({ $0 >> 5 }) + [0] + human.map({ $0 & 31 }) + values {
      let top = state >> 25
      state = (state & 0x1ff_ffff) << 5 ^ UInt32(value)
      for bit in 0..<5 where top >> bit & 1 == 1 { state ^= generator[bit] }
    }
    return state
  }

  private static func regroup(
    _ bytes: UnsafeRawBufferPointer, from: UInt32, to: UInt32, padding: Bool
  ) -> [UInt8]? {
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count * Int(from) / Int(to) + 1)
    var held: UInt32 = 0
    var bits: UInt32 = 0
    for byte in bytes {
      held = (held << from | UInt32(byte)) & 0xfff
      bits += from
      while bits >= to {
        bits -= to
        result.append(UInt8(held >> bits & (1 << to - 1)))
      }
    }
    let rest = held & (1 << bits - 1)
    if padding {
      if bits > 0 { result.append(UInt8(rest << (to - bits))) }
    } else if bits >= from || rest != 0 {
      return nil
    }
    return result
  }
}
