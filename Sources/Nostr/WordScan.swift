/// Finds the bytes that matter in a string eight at a time: most text has none of them, and a
/// loop over bytes would be the slowest part of reading an event.
enum WordScan {
  private static let ones: UInt64 = 0x0101_0101_0101_0101
  private static let highs: UInt64 = 0x8080_8080_8080_8080

  /// The offset of the first byte that a JSON reader must look at: a quote, a backslash, a
  /// control character or a byte of a non-ASCII character; the count where there is none.
  @inline(__always)
  static func readable(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
    var offset = start
    while offset + 8 <= bytes.count {
      let word = load(bytes, offset)
      // Each mask is exact up to and including its lowest mark, so the lowest of all is exact.
      let marks =
        (zeros(word ^ repeated(0x22)) | zeros(word ^ repeated(0x5c)) | controls(word) | word)
        & highs
      if marks != 0 { return offset + marks.trailingZeroBitCount / 8 }
      offset += 8
    }
    while offset < bytes.count {
      let byte = bytes[offset]
      if byte == 0x22 || byte == 0x5c || byte < 0x20 || byte >= 0x80 { return offset }
      offset += 1
    }
    return offset
  }

  /// The offset of the first byte that a JSON writer may have to escape: a quote, a backslash, a
  /// control character or U+007F; the count where there is none.
  @inline(__always)
  static func writable(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
    var offset = start
    while offset + 8 <= bytes.count {
      let word = load(bytes, offset)
      let marks =
        (zeros(word ^ repeated(0x22)) | zeros(word ^ repeated(0x5c)) | controls(word)
          | zeros(word ^ repeated(0x7f))) & highs
      if marks != 0 { return offset + marks.trailingZeroBitCount / 8 }
      offset += 8
    }
    while offset < bytes.count {
      let byte = bytes[offset]
      if byte == 0x22 || byte == 0x5c || byte < 0x20 || byte == 0x7f { return offset }
      offset += 1
    }
    return offset
  }

  @inline(__always)
  private static func load(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt64 {
    UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  @inline(__always)
  private static func repeated(_ byte: UInt64) -> UInt64 { byte &* ones }

  /// Marks bytes that are zero.
  @inline(__always)
  private static func zeros(_ word: UInt64) -> UInt64 { (word &- ones) & ~word }

  /// Marks bytes below 0x20.
  @inline(__always)
  private static func controls(_ word: UInt64) -> UInt64 { (word &- repeated(0x20)) & ~word }
}
