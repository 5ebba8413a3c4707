import CCrypto
import CSecp256k1
import Nostr

/// The one context of libsecp256k1, and every call that goes to it.
///
/// Each return code is looked at here, so that no caller can forget one.
final class Curve: @unchecked Sendable {
  // Unchecked: the library reads a context from any number of threads at once as long as nobody
  // changes it, and after the initialiser nobody does.
  private let context: OpaquePointer

  typealias XOnlyKey = secp256k1_xonly_pubkey

  static let shared = Curve()

  private init() {
    let made = secp256k1_context_create(UInt32(SECP256K1_CONTEXT_NONE))
    guard let made else { preconditionFailure("no memory for the context of libsecp256k1") }
    context = made
    // The default callbacks abort. An argument that the library refuses also makes the call return
    // 0, which is answered below, so there is nothing more to do about it.
    secp256k1_context_set_illegal_callback(made, { _, _ in }, nil)
    secp256k1_context_set_error_callback(
      made, { _, _ in preconditionFailure("libsecp256k1 found its own state broken") }, nil)
    // Blinds the multiplication with the secret key against timing and power analysis.
    var seed = SystemEntropy().bytes(32)
    let randomised = secp256k1_context_randomize(made, seed)
    wipe(&seed)
    precondition(randomised == 1, "the context of libsecp256k1 could not be randomised")
  }

  /// The point with this x coordinate and an even y, or nil where there is none.
  func parse(_ key: PublicKey) -> XOnlyKey? {
    var parsed = XOnlyKey()
    let isPoint = key.bytes.withUnsafeBytes {
      secp256k1_xonly_pubkey_parse(context, &parsed, $0.octets)
    }
    return isPoint == 1 ? parsed : nil
  }

  func isValid(
    _ signature: Signature, over message: Bytes32, by key: inout XOnlyKey
  ) -> Bool {
    signature.withUnsafeBytes { signature in
      message.withUnsafeBytes { message in
        secp256k1_schnorrsig_verify(
          context, signature.octets, message.octets, 32, &key) == 1
      }
    }
  }

  /// False where `secret` is not 32 bytes of a number in 1..<n.
  func makeKeypair(
    from secret: UnsafeRawBufferPointer, into keypair: UnsafeMutablePointer<secp256k1_keypair>
  ) -> Bool {
    guard secret.count == 32 else { return false }
    return secp256k1_keypair_create(
      context, keypair, secret.octets) == 1
  }

  func publicKey(of keypair: UnsafePointer<secp256k1_keypair>) -> PublicKey? {
    var point = XOnlyKey()
    guard secp256k1_keypair_xonly_pub(context, &point, nil, keypair) == 1 else { return nil }
    var bytes = [UInt8](repeating: 0, count: 32)
    guard secp256k1_xonly_pubkey_serialize(context, &bytes, &point) == 1 else { return nil }
    return Bytes32(bytes).map { PublicKey($0) }
  }

  /// - Parameter auxiliary: 32 bytes, fresh for every signature (BIP-340).
  func sign(
    _ message: Bytes32, with keypair: UnsafePointer<secp256k1_keypair>,
    auxiliary: UnsafeRawBufferPointer
  ) -> Signature? {
    guard auxiliary.count == 32 else { return nil }
    var signature = [UInt8](repeating: 0, count: 64)
    let isSigned = message.withUnsafeBytes { message in
      secp256k1_schnorrsig_sign32(
        context, &signature, message.octets, keypair, auxiliary.octets)
    }
    return isSigned == 1 ? signature.withUnsafeBytes { Signature($0) } : nil
  }

  /// Writes the x coordinate of `secret` times the point of `key`, unhashed (NIP-44).
  func sharedX(
    secret: UnsafeRawBufferPointer, key: PublicKey, into result: UnsafeMutableRawBufferPointer
  ) -> Bool {
    guard secret.count == 32, result.count == 32 else { return false }
    // 0x02 says: the even y, which is the one that BIP-340 means by a bare x.
    var compressed: [UInt8] = [2]
    key.bytes.withUnsafeBytes { compressed.append(contentsOf: $0) }
    var point = secp256k1_pubkey()
    guard secp256k1_ec_pubkey_parse(context, &point, compressed, compressed.count) == 1
    else { return false }
    let keepX: secp256k1_ecdh_hash_function = { output, x, _, _ in
      guard let output, let x else { return 0 }
      output.update(from: x, count: 32)
      return 1
    }
    return secp256k1_ecdh(
      context, result.octets, &point,
      secret.octets, keepX, nil) == 1
  }
}
