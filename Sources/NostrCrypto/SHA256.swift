import CCrypto
public import Nostr

/// SHA-256 by libcrypto.
public enum SHA256 {
  /// The digest of `bytes`; cheap to call often, from any thread.
  public static func hash(_ bytes: UnsafeRawBufferPointer) -> Bytes32 {
    Scratch.withCurrent { $0.digest.hash(bytes) }
  }

  public static func hash(_ bytes: some Collection<UInt8>) -> Bytes32 {
    let direct = bytes.withContiguousStorageIfAvailable { hash(UnsafeRawBufferPointer($0)) }
    return direct ?? Array(bytes).withUnsafeBytes { hash($0) }
  }
}

/// SHA-256 of bytes that come in pieces.
public final class SHA256Stream {
  private let context: OpaquePointer

  public init() {
    guard let made = EVP_MD_CTX_new() else { preconditionFailure("no memory for a digest") }
    context = made
    restart()
  }

  deinit { EVP_MD_CTX_free(context) }

  public func update(_ bytes: UnsafeRawBufferPointer) {
    let updated = EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
    precondition(updated == 1, "libcrypto refused bytes to hash")
  }

  public func update(_ bytes: some Collection<UInt8>) {
    if bytes.withContiguousStorageIfAvailable({ update(UnsafeRawBufferPointer($0)) }) == nil {
      Array(bytes).withUnsafeBytes { update($0) }
    }
  }

  /// The digest of everything so far; afterwards the stream is empty again.
  public func finish() -> Bytes32 {
    let digest = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32) { buffer in
      var count: UInt32 = 0
      let finished = EVP_DigestFinal_ex(context, buffer.baseAddress, &count)
      precondition(finished == 1 && count == 32, "libcrypto gave no SHA-256")
      return Bytes32(UnsafeRawBufferPointer(buffer)) ?? .zero
    }
    restart()
    return digest
  }

  func hash(_ bytes: UnsafeRawBufferPointer) -> Bytes32 {
    update(bytes)
    return finish()
  }

  private func restart() {
    let started = EVP_DigestInit_ex2(context, Algorithm.sha256.pointer, nil)
    precondition(started == 1, "libcrypto has no SHA-256")
  }
}

/// An algorithm looked up once: the look-up takes a lock that all threads share.
private final class Algorithm: @unchecked Sendable {
  // Unchecked: a fetched algorithm never changes.
  let pointer: OpaquePointer

  static let sha256 = Algorithm("SHA256")

  private init(_ name: String) {
    guard let fetched = EVP_MD_fetch(nil, name, nil)
    else { preconditionFailure("libcrypto has no \(name)") }
    pointer = fetched
  }
}
