/// Bech32 as BIP-173 has it (checksum constant 1, not bech32m), without its limit on length:
/// NIP-19 goes beyond 90 characters.
public enum Bech32 {
  public enum Failure: Error, Hashable, Sendable, CustomStringConvertible {
    case mixedCase
    case missingSeparator
    case invalidCharacter(at: Int)
    case checksum
    case tooShort
    case tooLong
    case prefix(expected: String)
    case payloadLength(Int)
    case padding

    public var description: String {
      switch self {
      case .mixedCase: "upper and lower case are mixed"
      case .missingSeparator: "there is no 1 between prefix and data"
      case .invalidCharacter(let position): "character \(position + 1) is not allowed"
      case .checksum: "the checksum is wrong: a character was mistyped or lost"
      case .tooShort: "it is too short"
      case .tooLong: "it is too long"
      case .prefix(let expected): "it does not begin with \(expected)"
      case .payloadLength(let bytes): "its data has \(bytes) bytes, which is not the right length"
      case .padding: "its last bits are not zero"
      }
    }
  }

  /// Longer text is refused before it is read (NIP-19 leaves the bound open).
  public static let charactersMax = 5000

  private static let alphabet: [UInt8] = Array("qpzry9x8gf2tvdw0s3jn54khce6mua7l".utf8)
  private static let values: [UInt8] = {
    var values = [UInt8](repeating: 0xff, count: 256)
    for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
    return values
  }()

  /// - Parameter prefix: Lowercase ASCII.
  public static func encode(prefix: String, _ data: some Collection<UInt8>) -> String {
    var groups: [UInt8] = []
    var bits: UInt32 = 0
    var count = 0
    for byte in data {
      bits = (bits & 0xfff) << 8 | UInt32(byte)
      count += 8
      while count >= 5 {
        count -= 5
        groups.append(UInt8(truncatingIfNeeded: bits >> UInt32(count) & 31))
      }
    }
    if count > 0 { groups.append(UInt8(truncatingIfNeeded: bits << UInt32(5 - count) & 31)) }

    let name = Array(prefix.utf8)
    let sum = polymod(expanded(name) + groups + [0, 0, 0, 0, 0, 0]) ^ 1
    for index in 0..<6 {
      groups.append(UInt8(truncatingIfNeeded: sum >> UInt32(5 * (5 - index)) & 31))
    }
    return String(decoding: name + [0x31] + groups.map { alphabet[Int($0)] }, as: UTF8.self)
  }

  /// The prefix in lowercase, and the data in bytes.
  public static func decode(
    _ text: some StringProtocol
  ) throws(Failure) -> (prefix: String, data: [UInt8]) {
    let (name, groups) = try groups(Array(text.utf8))
    return (String(decoding: name, as: UTF8.self), try bytes(groups))
  }

  private static func groups(
    _ characters: [UInt8]
  ) throws(Failure) -> (name: [UInt8], groups: ArraySlice<UInt8>) {
    guard characters.count <= charactersMax else { throw .tooLong }
    var hasUpper = false
    var hasLower = false
    for (position, character) in characters.enumerated() {
      guard character >= 0x21, character <= 0x7e else { throw .invalidCharacter(at: position) }
      hasUpper = hasUpper || (character >= 0x41 && character <= 0x5a)
      hasLower = hasLower || (character >= 0x61 && character <= 0x7a)
    }
    guard !(hasUpper && hasLower) else { throw .mixedCase }
    let lower = hasUpper ? characters.map(lowercase) : characters
    guard let separator = lower.lastIndex(of: 0x31), separator > 0 else {
      throw .missingSeparator
    }
    var groups: [UInt8] = []
    for position in (separator + 1)..<lower.count {
      let value = values[Int(lower[position])]
      guard value < 32 else { throw .invalidCharacter(at: position) }
      groups.append(value)
    }
    guard groups.count >= 6 else { throw .tooShort }
    let name = Array(lower[..<separator])
    guard polymod(expanded(name) + groups) == 1 else { throw .checksum }
    return (name, groups.dropLast(6))
  }

  private static func bytes(_ groups: ArraySlice<UInt8>) throws(Failure) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(groups.count * 5 / 8)
    var bits: UInt32 = 0
    var count = 0
    for group in groups {
      bits = (bits & 0xfff) << 5 | UInt32(group)
      count += 5
      if count >= 8 {
        count -= 8
        result.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      }
    }
    guard count < 5, bits & (1 << UInt32(count) - 1) == 0 else { throw .padding }
    return result
  }

  private static func lowercase(_ character: UInt8) -> UInt8 {
    character >= 0x41 && character <= 0x5a ? character | 0x20 : character
  }

  private static func expanded(_ name: [UInt8]) -> [UInt8] {
    name.map { $0 >> 5 } + [0] + name.map { $0 & 31 }
  }

  private static func polymod(_ values: [UInt8]) -> UInt32 {
    var sum: UInt32 = 1
    for value in values {
      let top = sum >> 25
      sum = (sum & 0x1ff_ffff) << 5 ^ UInt32(value)
      if top & 1 != 0 { sum ^= 0x3b6a_57b2 }
      if top & 2 != 0 { sum ^= 0x2650_8e6d }
      if top & 4 != 0 { sum ^= 0x1ea1_19fa }
      if top & 8 != 0 { sum ^= 0x3d42_33dd }
      if top & 16 != 0 { sum ^= 0x2a14_62b3 }
    }
    return sum
  }
}
