extension JSONReader {
  /// Reads a value as tags, or steps over it and returns nil where it is anything else.
  ///
  /// The first pass checks and measures, the second writes: the packed buffer is allocated once,
  /// at its exact size, and every byte is copied once.
  mutating func tags() throws(ScanError) -> Tags? {
    skipSpace()
    let start = offset
    guard let pieces = try tagPieces() else {
      // Not tags, but it may still be JSON: an error of syntax further on comes first.
      offset = start
      try skipValue()
      return nil
    }
    guard pieces.tagCount > 0 else { return Tags.none }
    let packed = [UInt8](unsafeUninitializedCapacity: pieces.packedCount) { buffer, count in
      count = write(pieces, to: UnsafeMutableRawBufferPointer(buffer))
    }
    return Tags(packed: packed, count: pieces.tagCount)
  }

  private mutating func tagPieces() throws(ScanError) -> TagPieces? {
    var pieces = TagPieces()
    guard take(0x5b) else { return nil }
    if take(0x5d) { return pieces }
    repeat {
      guard take(0x5b), !take(0x5d) else { return nil }
      let header = pieces.open()
      repeat {
        guard next == 0x22 else { return nil }
        pieces.append(try string())
      } while try hasMore(until: 0x5d)
      pieces.close(header)
    } while try hasMore(until: 0x5d)
    return pieces
  }

  private func write(_ pieces: TagPieces, to target: UnsafeMutableRawBufferPointer) -> Int {
    var offset = 0
    for piece in pieces.list {
      var rest = piece.count
      while rest >= 0x80 {
        target[offset] = UInt8(rest & 0x7f) | 0x80
        offset += 1
        rest >>= 7
      }
      target[offset] = UInt8(rest)
      offset += 1
      guard piece.start >= 0, piece.count > 0 else { continue }
      copy(piece, to: UnsafeMutableRawBufferPointer(rebasing: target[offset...]))
      offset += piece.count
    }
    return offset
  }
}

/// The layout of packed tags before a byte of them is copied: for each tag a header that carries
/// its number of elements (and starts below zero), then its elements.
private struct TagPieces {
  private(set) var list: [JSONSpan] = []
  private(set) var tagCount = 0
  private(set) var packedCount = 0

  init() { list.reserveCapacity(24) }

  mutating func open() -> Int {
    list.append(JSONSpan(start: -1, end: -1, count: 0))
    return list.count - 1
  }

  mutating func append(_ span: JSONSpan) {
    list.append(span)
    packedCount += span.count + Self.width(span.count)
  }

  mutating func close(_ header: Int) {
    let count = list.count - header - 1
    list[header] = JSONSpan(start: -1, end: -1, count: count)
    packedCount += Self.width(count)
    tagCount += 1
  }

  /// The bytes of a LEB128 count.
  private static func width(_ value: Int) -> Int {
    value < 0x80 ? 1 : (Int.bitWidth - value.leadingZeroBitCount + 6) / 7
  }
}
