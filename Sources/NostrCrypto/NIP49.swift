import Nostr

/// Why an encrypted secret key did not open.
public enum NIP49Error: Error, Hashable, Sendable, CustomStringConvertible {
  /// Not `ncryptsec1…`, or damaged.
  case malformed
  case version(UInt8)
  /// More rounds than this program is ready to spend, or none at all.
  case rounds(logN: UInt8)
  /// scrypt needs 1 KiB times 2^logN of memory and did not get it.
  case memory(logN: UInt8)
  /// The wrong passphrase, or a changed text; the two cannot be told apart.
  case doesNotDecrypt

  public var description: String {
    switch self {
    case .malformed: "this is not an encrypted key in the form ncryptsec1…, or it is damaged"
    case .version(let number): "the key was encrypted with version \(number), not known here"
    case .rounds(let logN): "the key asks for 2^\(logN) rounds of scrypt; 2^1 to 2^22 are allowed"
    case .memory(let logN): "not enough memory for 2^\(logN) rounds of scrypt"
    case .doesNotDecrypt: "the passphrase does not open the key"
    }
  }
}

/// What is known about how a key was treated (NIP-49).
public enum KeyCare: UInt8, Sendable, Hashable, CaseIterable {
  /// It has been stored or pasted unencrypted.
  case careless = 0
  case careful = 1
  case unknown = 2
}

/// A secret key encrypted with a passphrase (NIP-49).
///
/// Passphrases come as bytes that the caller has brought to Unicode form NFKC, as the NIP asks:
/// the tables for that are not below the program's shell.
public enum NIP49 {
  /// 64 MiB and about a tenth of a second.
  public static let logNDefault: UInt8 = 16

  /// - Complexity: scrypt with 2^`logN` rounds; it blocks, so keep it off the cooperative pool.
  public static func encrypt(
    _ key: SecretKey, passphrase: [UInt8], logN: UInt8 = logNDefault,
    care: KeyCare = .unknown, entropy: any Entropy = SystemEntropy()
  ) throws(NIP49Error) -> String {
    let salt = entropy.bytes(saltLength)
    let nonce = entropy.bytes(nonceLength)
    let symmetric = try symmetricKey(passphrase, salt: salt, logN: logN)
    let sealed = key.withUnsafeBytes {
      XChaCha20Poly1305.seal($0, key: symmetric, nonce: nonce, associated: [care.rawValue])
    }
    let bytes = [version, logN] + salt + nonce + [care.rawValue] + sealed
    return Bech32.encode(prefix: prefix, bytes)
  }

  /// - Complexity: scrypt with as many rounds as the text asks for, 2^22 at most.
  public static func decrypt(
    _ text: some StringProtocol, passphrase: [UInt8]
  ) throws(NIP49Error) -> SecretKey {
    let bytes = try parts(text)
    let salt = Array(bytes[2..<18])
    let nonce = Array(bytes[18..<42])
    let symmetric = try symmetricKey(passphrase, salt: salt, logN: bytes[1])
    let plain = XChaCha20Poly1305.open(
      Array(bytes[43...]), key: symmetric, nonce: nonce, associated: [bytes[42]])
    guard let plain else { throw .doesNotDecrypt }
    do throws(KeyError) {
      return try SecretKey(plain)
    } catch {
      // The tag was right, so somebody encrypted 32 bytes that are no key.
      throw .malformed
    }
  }

  /// The bytes of a text that can be tried with a passphrase.
  static func parts(_ text: some StringProtocol) throws(NIP49Error) -> [UInt8] {
    let bytes = try decode(text)
    guard let first = bytes.first else { throw .malformed }
    guard first == version else { throw .version(first) }
    guard bytes.count == 91 else { throw .malformed }
    return bytes
  }

  static let prefix = "ncryptsec"
  private static let version: UInt8 = 2
  private static let saltLength = 16
  private static let nonceLength = 24

  private static func decode(_ text: some StringProtocol) throws(NIP49Error) -> [UInt8] {
    do throws(Bech32.Failure) {
      let (found, bytes) = try Bech32.decode(text)
      if found == prefix { return bytes }
    } catch {
      throw .malformed
    }
    throw .malformed
  }

  private static func symmetricKey(
    _ passphrase: [UInt8], salt: [UInt8], logN: UInt8
  ) throws(NIP49Error) -> SecretBytes {
    guard (1...22).contains(logN) else { throw .rounds(logN: logN) }
    guard let key = Scrypt.key(passphrase: passphrase, salt: salt, logN: logN)
    else { throw .memory(logN: logN) }
    return key
  }
}
