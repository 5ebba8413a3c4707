/// Where a string stands in the text, between its quotes.
struct JSONSpan {
  let start: Int
  let end: Int
  /// The bytes of what it spells; fewer than `end - start` where there are escapes.
  let count: Int

  var isEscaped: Bool { count != end - start }
}

extension JSONReader {
  /// Reads a string whose quote is next. What it returns can be decoded without a check.
  @inline(__always)
  mutating func string() throws(ScanError) -> JSONSpan {
    let start = offset + 1
    let end = WordScan.readable(bytes, from: start)
    if end < bytes.count, bytes[end] == 0x22 {
      offset = end + 1
      return JSONSpan(start: start, end: end, count: end - start)
    }
    return try unusualString(start: start, from: end)
  }

  /// Goes on with a string that holds an escape, a non-ASCII character or a fault.
  private mutating func unusualString(start: Int, from first: Int) throws(ScanError) -> JSONSpan {
    var position = first
    var saved = 0
    while position < bytes.count {
      let byte = bytes[position]
      if byte == 0x22 {
        offset = position + 1
        return JSONSpan(start: start, end: position, count: position - start - saved)
      }
      if byte == 0x5c {
        let escape = try escape(at: position)
        saved += escape.length - escape.count
        position += escape.length
      } else if byte < 0x20 {
        throw .json(offset: position, "a control character in a string")
      } else {
        position = try nonASCIIEnd(from: position)
      }
      position = WordScan.readable(bytes, from: position)
    }
    throw .json(offset: position, "a string that never ends")
  }

  /// Checks the UTF-8 of a run of non-ASCII characters: no overlong form, no surrogate, nothing
  /// above U+10FFFF (RFC 3629).
  private func nonASCIIEnd(from start: Int) throws(ScanError) -> Int {
    var position = start
    while position < bytes.count, bytes[position] >= 0x80 {
      guard let length = UTF8Check.length(bytes, at: position) else {
        throw .json(offset: position, "invalid UTF-8")
      }
      position += length
    }
    return position
  }

  /// The length of the escape at `position`, and the bytes of what it spells.
  private func escape(at position: Int) throws(ScanError) -> (length: Int, count: Int) {
    guard position + 1 < bytes.count else {
      throw .json(offset: position, "a string that never ends")
    }
    switch bytes[position + 1] {
    case 0x22, 0x5c, 0x2f, 0x62, 0x66, 0x6e, 0x72, 0x74: return (2, 1)
    case 0x75: break
    default: throw .json(offset: position, "an unknown escape")
    }
    guard let unit = codeUnit(at: position) else {
      throw .json(offset: position, "a bad \\u escape")
    }
    switch unit {
    case 0..<0x80: return (6, 1)
    case 0x80..<0x800: return (6, 2)
    case 0xd800..<0xdc00:
      guard let low = codeUnit(at: position + 6), low >= 0xdc00, low <= 0xdfff else {
        throw .json(offset: position, "a lone surrogate")
      }
      return (12, 4)
    case 0xdc00...0xdfff: throw .json(offset: position, "a lone surrogate")
    default: return (6, 3)
    }
  }

  /// The value of the `\uXXXX` at `position`, or nil where none stands there.
  private func codeUnit(at position: Int) -> UInt32? {
    guard position + 6 <= bytes.count, bytes[position] == 0x5c, bytes[position + 1] == 0x75
    else { return nil }
    var value: UInt32 = 0
    for index in 2..<6 {
      let byte = bytes[position + index]
      switch byte {
      case 0x30...0x39: value = value << 4 | UInt32(byte - 0x30)
      case 0x41...0x46: value = value << 4 | UInt32(byte - 0x41 + 10)
      case 0x61...0x66: value = value << 4 | UInt32(byte - 0x61 + 10)
      default: return nil
      }
    }
    return value
  }
}

extension JSONReader {
  /// The bytes that a string spells, in storage of their own.
  @inline(__always)
  func decoded(_ span: JSONSpan) -> [UInt8] {
    guard span.count > 0 else { return [] }
    return Array(unsafeUninitializedCapacity: span.count) { buffer, count in
      copy(span, to: UnsafeMutableRawBufferPointer(buffer))
      count = span.count
    }
  }

  func text(_ span: JSONSpan) -> Text { Text(utf8: decoded(span)) }

  /// Whether the string, however spelled, is `word`.
  func spells(_ span: JSONSpan, _ word: StaticString) -> Bool {
    guard span.count == word.utf8CodeUnitCount else { return false }
    if span.isEscaped {
      return decoded(span).elementsEqual(
        UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    }
    for index in 0..<span.count where bytes[span.start + index] != word.utf8Start[index] {
      return false
    }
    return true
  }

  /// Writes what the string spells to the front of `target`, which has `span.count` bytes at least.
  @inline(__always)
  func copy(_ span: JSONSpan, to target: UnsafeMutableRawBufferPointer) {
    if span.isEscaped {
      unescape(span, to: target)
    } else {
      target.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[span.start..<span.end]))
    }
  }

  private func unescape(_ span: JSONSpan, to target: UnsafeMutableRawBufferPointer) {
    var position = span.start
    var written = 0
    while position < span.end {
      var run = position
      while run < span.end, bytes[run] != 0x5c { run += 1 }
      if run > position {
        let source = UnsafeRawBufferPointer(rebasing: bytes[position..<run])
        UnsafeMutableRawBufferPointer(rebasing: target[written...]).copyMemory(from: source)
        written += run - position
        position = run
      }
      if position < span.end {
        position = unescapeOne(at: position, to: target, &written)
      }
    }
    precondition(written == span.count, "a string decodes to the length that was counted")
  }

  private func unescapeOne(
    at position: Int, to target: UnsafeMutableRawBufferPointer, _ written: inout Int
  ) -> Int {
    let plain: UInt8
    switch bytes[position + 1] {
    case 0x62: plain = 0x08
    case 0x66: plain = 0x0c
    case 0x6e: plain = 0x0a
    case 0x72: plain = 0x0d
    case 0x74: plain = 0x09
    case 0x75:
      var scalar = codeUnit(at: position) ?? 0
      var length = 6
      if scalar >= 0xd800 && scalar < 0xdc00 {
        let low = codeUnit(at: position + 6) ?? 0xdc00
        scalar = 0x10000 + (scalar - 0xd800) << 10 + (low - 0xdc00)
        length = 12
      }
      UTF8Check.write(scalar, to: target, &written)
      return position + length
    case let other: plain = other
    }
    target[written] = plain
    written += 1
    return position + 2
  }
}

/// UTF-8 one character at a time (RFC 3629).
enum UTF8Check {
  /// The length of the valid character at `position`, or nil.
  static func length(_ bytes: UnsafeRawBufferPointer, at position: Int) -> Int? {
    let length: Int
    var second: ClosedRange<UInt8> = 0x80...0xbf
    switch bytes[position] {
    case 0..<0x80: return 1
    case 0xc2...0xdf: length = 2
    case 0xe0:
      length = 3
      second = 0xa0...0xbf
    case 0xed:
      length = 3
      second = 0x80...0x9f
    case 0xe1...0xef: length = 3
    case 0xf0:
      length = 4
      second = 0x90...0xbf
    case 0xf1...0xf3: length = 4
    case 0xf4:
      length = 4
      second = 0x80...0x8f
    default: return nil
    }
    guard position + length <= bytes.count, second.contains(bytes[position + 1]) else {
      return nil
    }
    for index in 2..<max(2, length) where bytes[position + index] & 0xc0 != 0x80 { return nil }
    return length
  }

  static func isValid(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var position = 0
    while position < bytes.count {
      guard let length = length(bytes, at: position) else { return false }
      position += length
    }
    return true
  }

  fileprivate static func write(
    _ scalar: UInt32, to target: UnsafeMutableRawBufferPointer, _ written: inout Int
  ) {
    func put(_ byte: UInt32) {
      target[written] = UInt8(truncatingIfNeeded: byte)
      written += 1
    }
    switch scalar {
    case 0..<0x80:
      put(scalar)
    case 0x80..<0x800:
      put(0xc0 | scalar >> 6)
      put(0x80 | scalar & 0x3f)
    case 0x800..<0x10000:
      put(0xe0 | scalar >> 12)
      put(0x80 | scalar >> 6 & 0x3f)
      put(0x80 | scalar & 0x3f)
    default:
      put(0xf0 | scalar >> 18)
      put(0x80 | scalar >> 12 & 0x3f)
      put(0x80 | scalar >> 6 & 0x3f)
      put(0x80 | scalar & 0x3f)
    }
  }
}
