extension Tags {
  /// Calls `body` with the packed layout that `Tags` describes, for stores that keep tags without
  /// making a text of every element.
  package func withPackedBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    // `Array.withUnsafeBytes` rethrows untyped, so the failure travels as a value.
    let outcome = packed.withUnsafeBytes { bytes -> Swift.Result<Result, Failure> in
      do throws(Failure) {
        return .success(try body(bytes))
      } catch {
        return .failure(error)
      }
    }
    return try outcome.get()
  }

  /// Takes over bytes in the packed layout; the caller has made them and vouches for their form.
  package init(packedBytes: [UInt8], count: Int) {
    self.init(packed: packedBytes, count: count)
  }
}

extension Hex {
  /// The 32 bytes that 64 lowercase digits spell, or nil.
  package static func decode64(_ digits: UnsafeRawBufferPointer) -> Bytes32? { bytes32(digits) }

  /// Appends two lowercase digits a byte.
  package static func append(_ bytes: UnsafeRawBufferPointer, to text: inout [UInt8]) {
    let start = text.count
    text.append(contentsOf: repeatElement(0, count: bytes.count * 2))
    text.withUnsafeMutableBufferPointer { buffer in
      guard let base = buffer.baseAddress else { return }
      write(bytes, into: base + start)
    }
  }
}
