import Glibc

/// Some whole lines of a stream, cut but not copied.
public struct LineBlock: Sendable {
  /// One line of the stream that is not blank.
  public struct Line: Sendable, Hashable {
    /// Counted from 1, blank lines left out.
    public let number: Int
    /// Where in `bytes` it stands, without its end; nil for a line over the limit, whose bytes were
    /// dropped.
    public let range: Range<Int>?
  }

  public internal(set) var bytes: [UInt8] = []
  public internal(set) var lines: [Line] = []

  /// What the block weighs where memory is bounded: a line of two bytes costs more than two bytes.
  public var weight: Int { bytes.count + lines.count * Self.lineWeight }

  private static let lineWeight = 128
}

/// Cuts a stream of bytes into lines, holding no more than one unfinished line.
public struct LineCutter: Sendable {
  /// The longest line that is kept, without its end.
  public let lineBytesMax: Int
  /// Is given what is dropped of the lines that are longer, piece by piece, with their numbers.
  public var overflow: (@Sendable (Int, ArraySlice<UInt8>) -> Void)?

  /// What is said of a line over the usual limit.
  public static let tooLong = "the line is over 16 MiB"

  private var block = LineBlock()
  /// Where in `block.bytes` the unfinished line begins.
  private var start = 0
  private var number = 0
  /// Inside a line that is too long: its bytes are dropped until its end.
  private var isSkipping = false

  public init(lineBytesMax: Int = 16 << 20) { self.lineBytesMax = lineBytesMax }

  /// The bytes held, unfinished line and all.
  public var heldBytes: Int { block.bytes.count }

  /// What is held, as `LineBlock.weight` counts.
  public var heldWeight: Int { block.weight }

  /// Whether there are finished lines to take.
  public var hasLines: Bool { !block.lines.isEmpty }

  public mutating func append(_ chunk: ArraySlice<UInt8>) {
    var searched = block.bytes.count
    block.bytes.append(contentsOf: chunk)
    while let end = lineFeed(from: searched) {
      endLine(at: end)
      searched = end + 1
      start = searched
    }
    // Blank lines alone, however many, are nothing to hold.
    if block.lines.isEmpty && start > 0 {
      block.bytes.removeSubrange(..<start)
      start = 0
    }
    // One byte of grace for a carriage return, which is no part of the line.
    if block.bytes.count - start > lineBytesMax + 1 { isSkipping = true }
    if isSkipping {
      overflow?(number + 1, block.bytes[start...])
      block.bytes.removeSubrange(start...)
    }
  }

  /// Ends the last line, where the stream ends without a line feed.
  public mutating func finish() {
    if isSkipping || block.bytes.count > start { endLine(at: block.bytes.count) }
    start = block.bytes.count
  }

  /// Gives the finished lines away and keeps what is unfinished.
  public mutating func take() -> LineBlock {
    var taken = LineBlock()
    taken.bytes.append(contentsOf: block.bytes[start...])
    swap(&taken, &block)
    taken.bytes.removeSubrange(start...)
    start = 0
    return taken
  }

  private mutating func endLine(at end: Int) {
    if isSkipping {
      isSkipping = false
      number += 1
      if start < end { overflow?(number, block.bytes[start..<end]) }
      block.lines.append(LineBlock.Line(number: number, range: nil))
      return
    }
    var range = start..<end
    if let last = range.last, block.bytes[last] == 0x0d { range = start..<last }
    let isBlank = block.bytes[range].allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0d }
    if isBlank { return }
    number += 1
    let isTooLong = range.count > lineBytesMax
    if isTooLong { overflow?(number, block.bytes[range]) }
    block.lines.append(LineBlock.Line(number: number, range: isTooLong ? nil : range))
  }

  private func lineFeed(from offset: Int) -> Int? {
    block.bytes.withUnsafeBytes { bytes in
      guard offset < bytes.count, let base = bytes.baseAddress,
        let found = memchr(base + offset, 0x0a, bytes.count - offset)
      else { return nil }
      return UnsafeRawPointer(found) - base
    }
  }
}
