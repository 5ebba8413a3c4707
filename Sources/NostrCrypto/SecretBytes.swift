import CCrypto

/// A few bytes outside the reach of copy-on-write, wiped when the last owner lets go.
///
/// An array would leave copies behind wherever it was grown, bridged or captured.
final class SecretBytes: @unchecked Sendable {
  // Unchecked: written only by the initialiser, read-only afterwards.
  private let start: UnsafeMutableRawPointer
  let count: Int

  /// - Parameter fill: Writes the bytes; they are zero before.
  init(count: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void) {
    start = .allocate(byteCount: max(count, 1), alignment: 16)
    self.count = count
    start.initializeMemory(as: UInt8.self, repeating: 0, count: count)
    fill(UnsafeMutableRawBufferPointer(start: start, count: count))
  }

  convenience init(copying bytes: UnsafeRawBufferPointer) {
    self.init(count: bytes.count) { $0.copyMemory(from: bytes) }
  }

  deinit {
    // A plain write before a free may be optimised away; this call may not.
    OPENSSL_cleanse(start, count)
    start.deallocate()
  }

  func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    body(UnsafeRawBufferPointer(start: start, count: count))
  }
}

/// Wipes `bytes` in place. Only as good as the array being the sole owner of its storage.
func wipe(_ bytes: inout [UInt8]) {
  bytes.withUnsafeMutableBytes { buffer in
    guard let start = buffer.baseAddress else { return }
    OPENSSL_cleanse(start, buffer.count)
  }
}
