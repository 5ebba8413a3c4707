import CCrypto
public import Nostr

/// Why NIP-44 text was neither encrypted nor decrypted. No case holds key or plaintext.
public enum NIP44Error: Error, Hashable, Sendable, CustomStringConvertible {
  /// A version other than 2; nil where the payload only says that it is another one (`#`).
  case version(UInt8?)
  /// The payload is too short or too long to be one.
  case payloadLength(Int)
  case base64
  /// Made with another key, or changed on the way.
  case mac
  case padding
  case notUTF8
  /// Plaintext is 1…65535 bytes.
  case plaintextLength(Int)
  /// The other party's public key is not a point on the curve.
  case publicKey

  public var description: String {
    switch self {
    case .version(.some(let number)): "encrypted with version \(number), which is not known here"
    case .version(nil): "encrypted with a version that is not known here"
    case .payloadLength(let count): "\(count) bytes cannot be an encrypted payload"
    case .base64: "the encrypted payload is not Base64"
    case .mac: "the payload was encrypted for another key, or was changed"
    case .padding: "the padding inside the encrypted payload is wrong"
    case .notUTF8: "the decrypted bytes are not text"
    case .plaintextLength(let count): "\(count) bytes cannot be encrypted; 1 to 65535 can"
    case .publicKey: "the public key is not on the curve"
    }
  }
}

/// The key that two parties share (NIP-44); both compute the same. Wiped, and printed as nothing.
public final class ConversationKey: Sendable, CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  fileprivate let secret: SecretBytes

  fileprivate init(_ secret: SecretBytes) { self.secret = secret }

  /// For test vectors, which start from this key.
  package init?(bytes: some Collection<UInt8>) {
    guard bytes.count == 32 else { return nil }
    secret = SecretBytes(count: 32) { $0.copyBytes(from: bytes) }
  }

  package func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    secret.withUnsafeBytes(body)
  }

  public var description: String { "ConversationKey(<redacted>)" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// NIP-44 version 2: encrypted payloads between two keys.
///
/// Decrypts the length prefix of six bytes, which the text of the NIP gives to 65536 bytes and
/// more, but never writes it: the published vectors and most software still refuse it.
public enum NIP44 {
  /// - Complexity: One multiplication on the curve; keep the key for many messages.
  public static func conversationKey(
    secret: SecretKey, public key: PublicKey
  ) throws(NIP44Error) -> ConversationKey {
    var isShared = false
    let x = SecretBytes(count: 32) { result in
      isShared = secret.withUnsafeBytes {
        Curve.shared.sharedX(secret: $0, key: key, into: result)
      }
    }
    guard isShared else { throw .publicKey }
    return ConversationKey(HKDF.extract(x, salt: "nip44-v2"))
  }

  public static func encrypt(
    _ text: Text, with key: ConversationKey, entropy: any Entropy = SystemEntropy()
  ) throws(NIP44Error) -> Text {
    try encrypt(text, with: key, nonce: entropy.bytes(32))
  }

  /// - Parameter nonce: 32 bytes that this key has never been used with.
  package static func encrypt(
    _ text: Text, with key: ConversationKey, nonce: [UInt8]
  ) throws(NIP44Error) -> Text {
    precondition(nonce.count == nonceLength, "a nonce of NIP-44 is 32 bytes")
    guard (1..<extendedPrefixFrom).contains(text.count) else { throw .plaintextLength(text.count) }
    var padded: [UInt8] = []
    padded.reserveCapacity(2 + paddedLength(text.count))
    padded.append(UInt8(text.count >> 8))
    padded.append(UInt8(text.count & 0xff))
    padded.append(contentsOf: text.utf8)
    padded.append(contentsOf: repeatElement(0, count: paddedLength(text.count) - text.count))
    defer { wipe(&padded) }
    return seal(padded, with: key, nonce: nonce)
  }

  /// Encrypts what already carries its prefix and its padding: tests put in what no sender would.
  @_spi(Testing) public static func seal(
    _ padded: [UInt8], with key: ConversationKey, nonce: [UInt8]
  ) -> Text {
    let keys = MessageKeys(key, nonce: nonce)
    var payload: [UInt8] = [version]
    payload.reserveCapacity(1 + nonceLength + padded.count + macLength)
    payload.append(contentsOf: nonce)
    payload.append(contentsOf: keys.applyCipher(to: padded[...]))
    payload.append(contentsOf: keys.mac(of: payload[1...]))
    return Text(utf8: Base64.encode(payload))
  }

  public static func decrypt(
    _ payload: Text, with key: ConversationKey
  ) throws(NIP44Error) -> Text {
    let bytes = try decode(payload)
    let nonce = bytes[1..<1 + nonceLength]
    let mac = bytes.suffix(macLength)
    let keys = MessageKeys(key, nonce: Array(nonce))
    // The MAC comes first: nothing of a payload that fails it is ever looked at.
    guard equalInConstantTime(keys.mac(of: bytes[1..<bytes.count - macLength]), Array(mac))
    else { throw .mac }
    var padded = keys.applyCipher(to: bytes[(1 + nonceLength)..<bytes.count - macLength])
    defer { wipe(&padded) }
    return try unpad(padded)
  }

  /// How many bytes a plaintext of `count` bytes fills, its prefix not counted.
  package static func paddedLength(_ count: Int) -> Int {
    if count <= 32 { return 32 }
    // The power of two above count − 1.
    let power = 1 << (Int.bitWidth - (count - 1).leadingZeroBitCount)
    let chunk = power <= 256 ? 32 : power / 8
    return chunk * ((count - 1) / chunk + 1)
  }

  private static let version: UInt8 = 2
  private static let nonceLength = 32
  private static let macLength = 32
  private static let payloadMin = 132
  /// The largest event is 8 MiB, so no honest payload is longer.
  private static let payloadMax = 8 << 20
  private static let extendedPrefixFrom = 65536

  private static func decode(_ payload: Text) throws(NIP44Error) -> [UInt8] {
    if payload.utf8.first == UInt8(ascii: "#") { throw .version(nil) }
    guard (payloadMin...payloadMax).contains(payload.count)
    else { throw .payloadLength(payload.count) }
    guard let bytes = Base64.decode(payload.utf8) else { throw .base64 }
    guard let first = bytes.first, first == version else { throw .version(bytes.first) }
    guard bytes.count >= 1 + nonceLength + 2 + 32 + macLength
    else { throw .payloadLength(payload.count) }
    return bytes
  }

  private static func unpad(_ padded: [UInt8]) throws(NIP44Error) -> Text {
    var prefix = 2
    var count = Int(padded[0]) << 8 | Int(padded[1])
    if count == 0 {
      // Zero can only open a prefix of six bytes, and that only stands before a length which two
      // bytes cannot say: one plaintext must not have two encodings.
      prefix = 6
      count = padded[2..<6].reduce(0) { $0 << 8 | Int($1) }
      guard count >= extendedPrefixFrom else { throw .padding }
    }
    guard padded.count == prefix + paddedLength(count) else { throw .padding }
    // Validated through `String`, because whoever makes a `Text` answers for its UTF-8.
    guard let text = String(validating: padded[prefix..<prefix + count], as: UTF8.self)
    else { throw .notUTF8 }
    return Text(text)
  }
}

/// The keys of one message.
struct MessageKeys {
  private let secret: SecretBytes

  init(_ conversation: ConversationKey, nonce: [UInt8]) {
    secret = HKDF.expand(conversation.secret, info: nonce, count: 76)
  }

  /// 32 bytes of cipher key, 12 of cipher nonce, 32 of MAC key.
  func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    secret.withUnsafeBytes(body)
  }

  func applyCipher(to bytes: ArraySlice<UInt8>) -> [UInt8] {
    secret.withUnsafeBytes { keys in
      ChaCha20.apply(
        to: bytes, key: UnsafeRawBufferPointer(rebasing: keys[0..<32]), counter: 0,
        nonce: UnsafeRawBufferPointer(rebasing: keys[32..<44]))
    }
  }

  func mac(of bytes: ArraySlice<UInt8>) -> [UInt8] {
    secret.withUnsafeBytes { keys in
      HMAC.sha256(bytes, key: UnsafeRawBufferPointer(rebasing: keys[44..<76]))
    }
  }
}
