/// Writing JSON at the end of a byte buffer, in exactly one way.
extension [UInt8] {
  mutating func appendASCII(_ text: StaticString) {
    append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  mutating func appendDecimal(_ value: Int64) {
    var digits: (UInt64, UInt64, UInt64) = (0, 0, 0)
    Swift.withUnsafeMutableBytes(of: &digits) { buffer in
      var rest = value.magnitude
      var offset = buffer.count
      repeat {
        offset -= 1
        buffer[offset] = UInt8(truncatingIfNeeded: rest % 10) + 0x30
        rest /= 10
      } while rest > 0
      if value < 0 {
        offset -= 1
        buffer[offset] = 0x2d
      }
      append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[offset...]))
    }
  }

  /// Appends two lowercase digits a byte.
  mutating func appendHex(_ bytes: UnsafeRawBufferPointer) {
    for byte in bytes {
      append(Hex.digit(byte >> 4))
      append(Hex.digit(byte & 15))
    }
  }

  /// Appends a key or an id in quotes.
  mutating func appendQuotedHex(_ bytes: Bytes32) {
    append(0x22)
    bytes.withUnsafeBytes { appendHex($0) }
    append(0x22)
  }

  mutating func appendString(_ text: Text, form: IdForm = .standard) {
    text.utf8.withUnsafeBytes { appendString($0, form: form) }
  }

  /// Appends a string with its quotes; what is escaped, and how, follows `form`.
  mutating func appendString(_ bytes: UnsafeRawBufferPointer, form: IdForm = .standard) {
    append(0x22)
    var start = 0
    while start < bytes.count {
      let special = WordScan.writable(bytes, from: start)
      if special > start {
        append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[start..<special]))
      }
      guard special < bytes.count else { break }
      appendEscaped(bytes[special], form: form)
      start = special + 1
    }
    append(0x22)
  }

  private mutating func appendEscaped(_ byte: UInt8, form: IdForm) {
    switch byte {
    case 0x22: appendASCII("\\\"")
    case 0x5c: appendASCII("\\\\")
    case 0x0a: appendASCII("\\n")
    case 0x0d: appendASCII("\\r")
    case 0x09: appendASCII("\\t")
    case 0x08: appendASCII("\\b")
    case 0x0c: appendASCII("\\f")
    case 0x7f where form != .escapedDelete: append(byte)
    case _ where form == .rawControl: append(byte)
    default:
      appendASCII("\\u00")
      append(Hex.digit(byte >> 4))
      append(Hex.digit(byte & 15))
    }
  }

  mutating func appendTags(_ tags: Tags, form: IdForm = .standard) {
    append(0x5b)
    tags.packed.withUnsafeBytes { packed in
      var offset = 0
      while offset < packed.count {
        if offset > 0 { append(0x2c) }
        append(0x5b)
        let elements = Tags.readCount(packed, at: &offset)
        for index in 0..<elements {
          if index > 0 { append(0x2c) }
          let length = Tags.readCount(packed, at: &offset)
          let element = UnsafeRawBufferPointer(rebasing: packed[offset..<offset + length])
          appendString(element, form: form)
          offset += length
        }
        append(0x5d)
      }
    }
    append(0x5d)
  }
}
