/// A cursor over JSON text that checks as it goes and copies nothing.
///
/// It holds RFC 8259 strictly: valid UTF-8, no raw control characters in strings, no lone
/// surrogate escapes, no leading zeros, no byte-order mark. Nested values are skipped without
/// recursion, so that depth costs one bit a level and never the stack.
struct JSONReader {
  let bytes: UnsafeRawBufferPointer
  var offset = 0

  /// Deeper text is refused: a bound on memory, far above what any event holds.
  static let depthMax = 1 << 20

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  /// The next byte, or nil at the end.
  @inline(__always)
  var next: UInt8? { offset < bytes.count ? bytes[offset] : nil }

  func failure(_ why: String) -> ScanError { .json(offset: offset, why) }

  @inline(__always)
  mutating func skipSpace() {
    while offset < bytes.count {
      let byte = bytes[offset]
      guard byte <= 0x20, byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09 else {
        return
      }
      offset += 1
    }
  }

  /// Skips space, then steps over `byte` if it is what comes next.
  @inline(__always)
  mutating func take(_ byte: UInt8) -> Bool {
    skipSpace()
    guard next == byte else { return false }
    offset += 1
    return true
  }

  /// Steps over the colon after a key and the space around it.
  @inline(__always)
  mutating func colon() throws(ScanError) {
    guard take(0x3a) else { throw failure("expected a colon") }
    skipSpace()
  }

  /// Reads a key and its colon; the cursor must stand on the quote.
  mutating func key() throws(ScanError) -> JSONSpan {
    guard next == 0x22 else { throw failure("expected a key") }
    let span = try string()
    try colon()
    return span
  }

  /// After an element: true where another follows, false where `close` ends the list.
  mutating func hasMore(until close: UInt8) throws(ScanError) -> Bool {
    skipSpace()
    switch next {
    case 0x2c:
      offset += 1
      skipSpace()
      return true
    case close:
      offset += 1
      return false
    default:
      throw failure("expected a comma or the end of the list")
    }
  }

  /// Nothing but space may follow.
  mutating func end() throws(ScanError) {
    skipSpace()
    guard offset == bytes.count else { throw failure("text after the value") }
  }
}

/// A JSON number as it is spelled.
struct JSONNumber {
  let start: Int
  let end: Int
  /// Without minus sign, fraction and exponent.
  let isPlain: Bool
  /// The digits before any fraction; nil beyond 64 bits.
  let digits: UInt64?
}

extension JSONReader {
  mutating func number() throws(ScanError) -> JSONNumber {
    let start = offset
    var isPlain = true
    if next == 0x2d {
      isPlain = false
      offset += 1
    }
    var value: UInt64 = 0
    var overflows = false
    if next == 0x30 {
      offset += 1
    } else {
      guard let first = next, first >= 0x31, first <= 0x39 else {
        throw failure("expected a digit")
      }
      while let byte = next, byte >= 0x30, byte <= 0x39 {
        let (product, wide) = value.multipliedReportingOverflow(by: 10)
        let (sum, carries) = product.addingReportingOverflow(UInt64(byte - 0x30))
        overflows = overflows || wide || carries
        value = sum
        offset += 1
      }
    }
    if next == 0x2e {
      isPlain = false
      offset += 1
      try digits()
    }
    if next == 0x65 || next == 0x45 {
      isPlain = false
      offset += 1
      if next == 0x2b || next == 0x2d { offset += 1 }
      try digits()
    }
    return JSONNumber(
      start: start, end: offset, isPlain: isPlain, digits: overflows ? nil : value)
  }

  private mutating func digits() throws(ScanError) {
    let start = offset
    while let byte = next, byte >= 0x30, byte <= 0x39 { offset += 1 }
    guard offset > start else { throw failure("expected a digit") }
  }

  mutating func literal(_ word: StaticString) throws(ScanError) {
    let length = word.utf8CodeUnitCount
    guard offset + length <= bytes.count else { throw failure("expected a value") }
    for index in 0..<length where bytes[offset + index] != word.utf8Start[index] {
      throw failure("expected a value")
    }
    offset += length
  }
}

extension JSONReader {
  /// Steps over one value of any kind, checking it.
  mutating func skipValue() throws(ScanError) {
    var nesting = Nesting()
    repeat {
      skipSpace()
      if try openList(&nesting) { continue }
      try closeLists(&nesting)
    } while !nesting.isEmpty
  }

  /// Reads a scalar or an empty list (false), or opens a list that holds something (true).
  private mutating func openList(_ nesting: inout Nesting) throws(ScanError) -> Bool {
    switch next {
    case 0x22: _ = try string()
    case 0x7b:
      offset += 1
      if take(0x7d) { return false }
      try push(isObject: true, &nesting)
      _ = try key()
      return true
    case 0x5b:
      offset += 1
      if take(0x5d) { return false }
      try push(isObject: false, &nesting)
      return true
    case 0x74: try literal("true")
    case 0x66: try literal("false")
    case 0x6e: try literal("null")
    default: _ = try number()
    }
    return false
  }

  /// After a value: closes every list that ends here, up to the next value.
  private mutating func closeLists(_ nesting: inout Nesting) throws(ScanError) {
    while !nesting.isEmpty {
      let isObject = nesting.isObject
      if try hasMore(until: isObject ? 0x7d : 0x5d) {
        if isObject { _ = try key() }
        return
      }
      nesting.pop()
    }
  }

  private func push(isObject: Bool, _ nesting: inout Nesting) throws(ScanError) {
    guard nesting.depth < JSONReader.depthMax else { throw failure("nested too deeply") }
    nesting.push(isObject: isObject)
  }

  /// The kinds of the lists that are open, one bit a level.
  private struct Nesting {
    private var full: [UInt64] = []
    private var current: UInt64 = 0
    private(set) var depth = 0

    var isEmpty: Bool { depth == 0 }

    var isObject: Bool { current & 1 == 1 }

    mutating func push(isObject: Bool) {
      if depth > 0 && depth % 64 == 0 {
        full.append(current)
        current = 0
      }
      current = current << 1 | (isObject ? 1 : 0)
      depth += 1
    }

    mutating func pop() {
      current >>= 1
      depth -= 1
      if depth > 0 && depth % 64 == 0 { current = full.removeLast() }
    }
  }
}
