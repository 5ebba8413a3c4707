import Glibc

/// Some whole lines of a stream, cut but not copied.
struct LineBlock: Sendable {
  /// One line of the stream that is not blank.
  struct Line: Sendable {
    /// Counted from 1, blank lines left out.
    let number: Int
    /// Where in `bytes` it stands; nil for a line over the limit, whose bytes were dropped.
    let range: Range<Int>?
  }

  var bytes: [UInt8]
  var lines: [Line]
  /// How far into the stream the block reaches.
  var offset: Int
}

/// Cuts a byte stream into lines, holding no more than one piece and one line.
struct LineSource {
  static let lineBytesMax = 16 * 1024 * 1024
  static let pieceBytes = 1024 * 1024

  private let source: ByteSource
  private var pending: [UInt8] = []
  private var number = 0
  private var offset = 0
  /// Inside a line that is over the limit: its bytes are dropped until its end.
  private var isSkipping = false
  private var isAtEnd = false

  init(_ source: ByteSource) { self.source = source }

  /// The next lines in order, nil after the last.
  mutating func next() throws -> LineBlock? {
    while !isAtEnd {
      var bytes = pending
      pending = []
      bytes.reserveCapacity(bytes.count + Self.pieceBytes)
      let got = try source.read(into: &bytes, count: Self.pieceBytes)
      offset += got
      isAtEnd = got == 0
      let block = cut(bytes)
      if !block.lines.isEmpty { return block }
    }
    return nil
  }

  private mutating func cut(_ bytes: [UInt8]) -> LineBlock {
    var block = LineBlock(bytes: [], lines: [], offset: offset)
    var start = 0
    bytes.withUnsafeBytes { raw in
      while let end = LineSource.lineFeed(in: raw, from: start) {
        take(start..<end, of: raw, into: &block)
        start = end + 1
      }
      if isAtEnd && start < raw.count {
        take(start..<raw.count, of: raw, into: &block)
        start = raw.count
      }
    }
    keep(bytes[start...])
    block.bytes = bytes
    return block
  }

  /// What is left of the last line waits for the next piece, unless it is too long already.
  private mutating func keep(_ rest: ArraySlice<UInt8>) {
    if isSkipping { return }
    // One byte of grace for a carriage return, which is no part of the line.
    if rest.count > Self.lineBytesMax + 1 {
      isSkipping = true
    } else {
      pending = Array(rest)
    }
  }

  private mutating func take(
    _ range: Range<Int>, of raw: UnsafeRawBufferPointer, into block: inout LineBlock
  ) {
    if isSkipping {
      isSkipping = false
      number += 1
      block.lines.append(LineBlock.Line(number: number, range: nil))
      return
    }
    var range = range
    if let last = range.last, raw[last] == 0x0d { range = range.lowerBound..<last }
    let isBlank = raw[range].allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0d }
    if isBlank { return }
    number += 1
    let isTooLong = range.count > Self.lineBytesMax
    block.lines.append(LineBlock.Line(number: number, range: isTooLong ? nil : range))
  }

  private static func lineFeed(in raw: UnsafeRawBufferPointer, from start: Int) -> Int? {
    guard start < raw.count, let base = raw.baseAddress,
      let found = memchr(base + start, 0x0a, raw.count - start)
    else { return nil }
    return UnsafeRawPointer(found) - base
  }
}
