import CCrypto

/// Where unpredictable bytes come from: keys, nonces and the auxiliary input of signatures.
///
/// It is a port, because a simulated signer has to give the same bytes for the same seed.
public protocol Entropy: Sendable {
  /// Overwrites every byte of `buffer`.
  func fill(_ buffer: UnsafeMutableRawBufferPointer)
}

/// The generator of libcrypto, which the operating system seeds.
public struct SystemEntropy: Entropy {
  public init() {}

  public func fill(_ buffer: UnsafeMutableRawBufferPointer) {
    guard let start = buffer.baseAddress, buffer.count > 0 else { return }
    let filled = RAND_priv_bytes(
      start.assumingMemoryBound(to: UInt8.self), Int32(clamping: buffer.count))
    // A key or a nonce from anything weaker would be worse than stopping.
    precondition(
      filled == 1 && buffer.count <= Int(Int32.max), "the system gave no random bytes")
  }
}

extension Entropy {
  func bytes(_ count: Int) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: count)
    result.withUnsafeMutableBytes { fill($0) }
    return result
  }
}
