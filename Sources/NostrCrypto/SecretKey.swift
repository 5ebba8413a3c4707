import CSecp256k1
public import Nostr

/// Why bytes or text are not a secret key.
public enum KeyError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Not 32 bytes.
  case length(Int)
  /// Zero, or not below the order of the curve.
  case range
  /// Not an `nsec1…` of NIP-19.
  case notNsec(NIP19.Failure)

  public var description: String {
    switch self {
    case .length(let count): "a secret key is 32 bytes, not \(count)"
    case .range: "these 32 bytes are not a secret key: zero, or too large for the curve"
    case .notNsec(let failure): "this is not a secret key in the form nsec1…: \(failure)"
    }
  }
}

/// An author's secret key.
///
/// It cannot be encoded, printed or compared by accident, it is checked when it is made, and it is
/// wiped when its last owner lets go. `nsec()` is the one deliberate way out.
public final class SecretKey: Sendable {
  /// The 32 bytes, and then libsecp256k1's key pair, so that signing needs no multiplication to
  /// find the public half again.
  private let storage: SecretBytes

  public let publicKey: PublicKey

  /// - Parameter bytes: 32 bytes, big-endian, in 1..<n. The caller wipes its own copy.
  public convenience init(bytes: UnsafeRawBufferPointer) throws(KeyError) {
    try self.init(SecretBytes(copying: bytes))
  }

  /// - Parameter bytes: 32 bytes, big-endian, in 1..<n. The caller wipes its own copy.
  public convenience init(bytes: some Collection<UInt8>) throws(KeyError) {
    try self.init(SecretBytes(count: bytes.count) { $0.copyBytes(from: bytes) })
  }

  init(_ secret: SecretBytes) throws(KeyError) {
    guard secret.count == 32 else { throw .length(secret.count) }
    var isInRange = false
    storage = SecretBytes(count: 32 + MemoryLayout<secp256k1_keypair>.size) { buffer in
      guard let start = buffer.baseAddress else { return }
      let keypair = (start + 32).bindMemory(to: secp256k1_keypair.self, capacity: 1)
      isInRange = secret.withUnsafeBytes { bytes in
        buffer.copyMemory(from: bytes)
        return Curve.shared.makeKeypair(from: bytes, into: keypair)
      }
    }
    guard isInRange, let key = SecretKey.withKeypair(storage, Curve.shared.publicKey(of:))
    else { throw .range }
    publicKey = key
  }

  /// - Parameter nsec: The `nsec1…` form of NIP-19.
  public convenience init(nsec: some StringProtocol) throws(KeyError) {
    let secret: Result<SecretBytes, Never>
    do throws(NIP19.Failure) {
      secret = try NIP19.withSecretKey(nsec: nsec) { SecretBytes(copying: $0) }
    } catch {
      throw .notNsec(error)
    }
    try self.init(secret.get())
  }

  /// A key that nobody has had before.
  public static func generate(from entropy: any Entropy = SystemEntropy()) -> SecretKey {
    while true {
      var bytes = entropy.bytes(32)
      defer { wipe(&bytes) }
      // Out of range happens once in 2^128 draws; drawing again keeps the choice even.
      if let key = try? SecretKey(bytes: bytes) { return key }
    }
  }

  /// Calls `body` with the 32 bytes. Whatever `body` copies is its own to wipe.
  public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    storage.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[0..<32])) }
  }

  /// The key as NIP-19 text: the only way to disclose it.
  public func nsec() -> String { withUnsafeBytes { NIP19.nsec($0) } }

  func sign(_ message: Bytes32, auxiliary: UnsafeRawBufferPointer) -> Signature? {
    SecretKey.withKeypair(storage) {
      Curve.shared.sign(message, with: $0, auxiliary: auxiliary)
    }
  }

  private static func withKeypair<Result>(
    _ storage: SecretBytes, _ body: (UnsafePointer<secp256k1_keypair>) -> Result?
  ) -> Result? {
    storage.withUnsafeBytes { bytes in
      guard let start = bytes.baseAddress else { return nil }
      return body((start + 32).assumingMemoryBound(to: secp256k1_keypair.self))
    }
  }
}

extension SecretKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "SecretKey(<redacted>)" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: []) }
}
