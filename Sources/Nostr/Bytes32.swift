/// Thirty-two bytes held as four big-endian words, so that comparing words compares bytes.
public struct Bytes32: Hashable, Comparable, Sendable {
  let word0: UInt64
  let word1: UInt64
  let word2: UInt64
  let word3: UInt64

  public static let zero = Bytes32(0, 0, 0, 0)

  init(_ word0: UInt64, _ word1: UInt64, _ word2: UInt64, _ word3: UInt64) {
    self.word0 = word0
    self.word1 = word1
    self.word2 = word2
    self.word3 = word3
  }

  /// - Parameter bytes: Exactly 32 bytes; nil otherwise.
  public init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count == 32 else { return nil }
    self.init(
      UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
      UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)),
      UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self)),
      UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 24, as: UInt64.self)))
  }

  /// - Parameter bytes: Exactly 32 bytes; nil otherwise.
  public init?(_ bytes: some Collection<UInt8>) {
    let copy = Array(bytes)
    guard let value = copy.withUnsafeBytes({ Bytes32($0) }) else { return nil }
    self = value
  }

  /// - Parameter hex: Exactly 64 digits of `0-9a-f`; uppercase is refused because it would give
  ///   one key a second name that no lowercase filter matches.
  public init?(hex: some StringProtocol) {
    var text = String(hex)
    let parsed = text.withUTF8 { Hex.bytes32(UnsafeRawBufferPointer($0)) }
    guard let parsed else { return nil }
    self = parsed
  }

  public static func < (left: Bytes32, right: Bytes32) -> Bool {
    if left.word0 != right.word0 { return left.word0 < right.word0 }
    if left.word1 != right.word1 { return left.word1 < right.word1 }
    if left.word2 != right.word2 { return left.word2 < right.word2 }
    return left.word3 < right.word3
  }

  /// Calls `body` with the 32 bytes.
  public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    let words = (word0.bigEndian, word1.bigEndian, word2.bigEndian, word3.bigEndian)
    return Swift.withUnsafeBytes(of: words, body)
  }

  public var array: [UInt8] { withUnsafeBytes { Array($0) } }

  /// 64 lowercase digits.
  public var hex: String {
    withUnsafeBytes { bytes in
      String(unsafeUninitializedCapacity: 64) { Hex.write(bytes, into: $0.baseAddress) }
    }
  }
}

/// 32 bytes that name something, and are written as 64 lowercase digits.
public protocol Name32: Hashable, Sendable, CustomStringConvertible {
  var bytes: Bytes32 { get }

  init(_ bytes: Bytes32)
}

extension Name32 {
  public init?(hex: some StringProtocol) {
    guard let bytes = Bytes32(hex: hex) else { return nil }
    self.init(bytes)
  }

  public var hex: String { bytes.hex }

  public var description: String { hex }
}

/// The SHA-256 of an event's canonical form (NIP-01).
public struct EventID: Name32, Comparable {
  public let bytes: Bytes32

  public init(_ bytes: Bytes32) { self.bytes = bytes }

  public static func < (left: EventID, right: EventID) -> Bool { left.bytes < right.bytes }
}

/// The x-only public key of an author (BIP-340). Only its length is checked here: whether it is a
/// point on the curve is `NostrCrypto`'s question.
public struct PublicKey: Name32, Comparable {
  public let bytes: Bytes32

  public init(_ bytes: Bytes32) { self.bytes = bytes }

  public static func < (left: PublicKey, right: PublicKey) -> Bool { left.bytes < right.bytes }
}

/// A 64-byte BIP-340 signature.
public struct Signature: Hashable, Sendable, CustomStringConvertible {
  public let first: Bytes32
  public let second: Bytes32

  public init(first: Bytes32, second: Bytes32) {
    self.first = first
    self.second = second
  }

  /// - Parameter bytes: Exactly 64 bytes; nil otherwise.
  public init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count == 64,
      let first = Bytes32(UnsafeRawBufferPointer(rebasing: bytes[0..<32])),
      let second = Bytes32(UnsafeRawBufferPointer(rebasing: bytes[32..<64]))
    else { return nil }
    self.init(first: first, second: second)
  }

  public init?(hex: some StringProtocol) {
    guard hex.utf8.count == 128 else { return nil }
    let middle = hex.utf8.index(hex.startIndex, offsetBy: 64)
    guard let first = Bytes32(hex: hex[..<middle]), let second = Bytes32(hex: hex[middle...])
    else { return nil }
    self.init(first: first, second: second)
  }

  /// Calls `body` with the 64 bytes.
  public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    let words = (
      first.word0.bigEndian, first.word1.bigEndian, first.word2.bigEndian, first.word3.bigEndian,
      second.word0.bigEndian, second.word1.bigEndian, second.word2.bigEndian,
      second.word3.bigEndian
    )
    return Swift.withUnsafeBytes(of: words, body)
  }

  public var hex: String { first.hex + second.hex }

  public var description: String { hex }
}
