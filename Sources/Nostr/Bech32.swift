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
    groups.reserveCapacity(data.count * 8 / 5 + 8)
    // What passes through here may be a secret key.
    defer { wipe(&groups) }
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

    var checksum = Checksum(prefix: prefix.utf8)
    for group in groups { checksum.add(group) }
    for _ in 0..<6 { checksum.add(0) }
    for index in 0..<6 {
      groups.append(UInt8(truncatingIfNeeded: (checksum.sum ^ 1) >> UInt32(5 * (5 - index)) & 31))
    }
    var text = prefix + "1"
    text.reserveCapacity(text.utf8.count + groups.count)
    for group in groups { text.unicodeScalars.append(Unicode.Scalar(alphabet[Int(group)])) }
    return text
  }

  /// The prefix in lowercase, and the data in bytes.
  public static func decode(
    _ text: some StringProtocol
  ) throws(Failure) -> (prefix: String, data: [UInt8]) {
    guard text.utf8.count <= charactersMax else { throw .tooLong }
    var characters = Array(text.utf8)
    defer { wipe(&characters) }
    try unifyCase(&characters)
    guard let separator = characters.lastIndex(of: 0x31), separator > 0 else {
      throw .missingSeparator
    }
    let data = (separator + 1)..<characters.count
    // The characters are replaced by their values in place, and no slice of them is kept: a
    // second owner would turn the wiping into a copy.
    for position in data {
      let value = values[Int(characters[position])]
      guard value < 32 else { throw .invalidCharacter(at: position) }
      characters[position] = value
    }
    guard data.count >= 6 else { throw .tooShort }
    var checksum = Checksum(prefix: characters[..<separator])
    for position in data { checksum.add(characters[position]) }
    guard checksum.sum == 1 else { throw .checksum }
    let prefix = String(decoding: characters[..<separator], as: UTF8.self)
    return (prefix, try bytes(characters, data.dropLast(6)))
  }

  private static func unifyCase(_ characters: inout [UInt8]) throws(Failure) {
    var hasUpper = false
    var hasLower = false
    for position in characters.indices {
      let character = characters[position]
      guard character >= 0x21, character <= 0x7e else { throw .invalidCharacter(at: position) }
      hasUpper = hasUpper || (character >= 0x41 && character <= 0x5a)
      hasLower = hasLower || (character >= 0x61 && character <= 0x7a)
      characters[position] = lowercase(character)
    }
    guard !(hasUpper && hasLower) else { throw .mixedCase }
  }

  private static func bytes(
    _ groups: [UInt8], _ range: Range<Int>
  ) throws(Failure) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(range.count * 5 / 8)
    var bits: UInt32 = 0
    var count = 0
    for position in range {
      bits = (bits & 0xfff) << 5 | UInt32(groups[position])
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

  /// Overwrites bytes that are no longer needed, in their own storage.
  @inline(never)
  static func wipe(_ bytes: inout [UInt8]) {
    for index in bytes.indices { bytes[index] = 0 }
  }

  /// BIP-173's checksum over prefix and groups.
  private struct Checksum {
    private(set) var sum: UInt32 = 1

    init(prefix: some Collection<UInt8>) {
      for byte in prefix { add(byte >> 5) }
      add(0)
      for byte in prefix { add(byte & 31) }
    }

    mutating func add(_ value: UInt8) {
      let top = sum >> 25
      sum = (sum & 0x1ff_ffff) << 5 ^ UInt32(value)
      if top & 1 != 0 { sum ^= 0x3b6a_57b2 }
      if top & 2 != 0 { sum ^= 0x2650_8e6d }
      if top & 4 != 0 { sum ^= 0x1ea1_19fa }
      if top & 8 != 0 { sum ^= 0x3d42_33dd }
      if top & 16 != 0 { sum ^= 0x2a14_62b3 }
    }
  }
}
