/// Lowercase hexadecimal, the only spelling that ids, keys and signatures have on the wire.
public enum Hex {
  /// The bytes that `digits` spells, or nil for an odd length or any character but `0-9a-f`.
  public static func bytes(_ digits: some Collection<UInt8>) -> [UInt8]? {
    guard digits.count % 2 == 0 else { return nil }
    var result: [UInt8] = []
    result.reserveCapacity(digits.count / 2)
    var high: UInt8?
    for digit in digits {
      let value = values[Int(digit)]
      guard value != invalid else { return nil }
      if let first = high {
        result.append(first << 4 | value)
        high = nil
      } else {
        high = value
      }
    }
    return result
  }

  public static func string(_ bytes: some Collection<UInt8>) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(bytes.count * 2)
    for byte in bytes {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }

  static func bytes32(_ text: UnsafeRawBufferPointer) -> Bytes32? {
    guard text.count == 64 else { return nil }
    guard let word0 = word(text, at: 0), let word1 = word(text, at: 16),
      let word2 = word(text, at: 32), let word3 = word(text, at: 48)
    else { return nil }
    return Bytes32(word0, word1, word2, word3)
  }

  /// Writes two digits a byte and returns how many digits that was.
  @discardableResult
  static func write(_ bytes: UnsafeRawBufferPointer, into text: UnsafeMutablePointer<UInt8>?) -> Int
  {
    guard let text else { return 0 }
    for (index, byte) in bytes.enumerated() {
      text[index * 2] = digits[Int(byte >> 4)]
      text[index * 2 + 1] = digits[Int(byte & 15)]
    }
    return bytes.count * 2
  }

  /// The digit of a value below 16.
  @inline(__always)
  static func digit(_ value: UInt8) -> UInt8 { value < 10 ? value + 0x30 : value - 10 + 0x61 }

  private static func word(_ text: UnsafeRawBufferPointer, at offset: Int) -> UInt64? {
    var result: UInt64 = 0
    var bad: UInt8 = 0
    for index in offset..<offset + 16 {
      let value = values[Int(text[index])]
      bad |= value
      result = result << 4 | UInt64(value & 15)
    }
    return bad & 0xf0 == 0 ? result : nil
  }

  private static let invalid: UInt8 = 0xff
  private static let digits: [UInt8] = Array("0123456789abcdef".utf8)
  private static let values: [UInt8] = (0...255).map { byte in
    switch UInt8(byte) {
    case 0x30...0x39: UInt8(byte) - 0x30
    case 0x61...0x66: UInt8(byte) - 0x61 + 10
    default: invalid
    }
  }
}
