import Nostr

/// An event as the cache keeps it: everything but the signature, with ids and keys in tags as
/// binary. Whole events for relays and exports come from the log, by sequence.
///
/// Layout: checksum (4, little-endian, over what follows, bound to the sequence), kind (2), time
/// (8), id (32), author (32), flags (1), byte count of the tags, tags, content. A tag is its element count and
/// its elements; an element is `length << 1 | isHex` and its bytes, 64 lowercase digits being held
/// as the 32 bytes they spell. Counts are LEB128.
struct BodyRow: Sendable {
  let sequence: UInt64
  let kind: EventKind
  let createdAt: Timestamp
  let id: EventID
  let pubkey: PublicKey
  private let bytes: [UInt8]
  private let tagRange: Range<Int>

  private static let headCount = 79
  private static let expiresFlag: UInt8 = 1

  /// Whether it has an `expiration` tag (NIP-40), known without reading the tags.
  var mayExpire: Bool { bytes[78] & Self.expiresFlag != 0 }

  /// The row without checksum: what is the same in every store.
  var logicalBytes: ArraySlice<UInt8> { bytes[4...] }

  /// Nil where the bytes are not what was written at that sequence.
  init?(sequence: UInt64, bytes: [UInt8]) {
    guard bytes.count > Self.headCount else { return nil }
    let head = bytes.withUnsafeBytes { raw -> (UInt16, Int64, Bytes32, Bytes32, Int, Int)? in
      let stored = UInt32(littleEndian: raw.loadUnaligned(as: UInt32.self))
      let rest = UnsafeRawBufferPointer(rebasing: raw[4...])
      guard StableHash.checksum(rest, seed: sequence) == stored else { return nil }
      var offset = Self.headCount
      let count = Varint.read(raw, at: &offset)
      guard let id = Bytes32(UnsafeRawBufferPointer(rebasing: raw[14..<46])),
        let author = Bytes32(UnsafeRawBufferPointer(rebasing: raw[46..<78])),
        count >= 0, offset + count <= raw.count
      else { return nil }
      return (
        UInt16(littleEndian: raw.loadUnaligned(fromByteOffset: 4, as: UInt16.self)),
        Int64(littleEndian: raw.loadUnaligned(fromByteOffset: 6, as: Int64.self)), id, author,
        offset, count
      )
    }
    guard let (kind, time, id, author, start, count) = head else { return nil }
    self.sequence = sequence
    self.bytes = bytes
    self.kind = EventKind(kind)
    self.createdAt = Timestamp(time)
    self.id = EventID(id)
    self.pubkey = PublicKey(author)
    tagRange = start..<start + count
  }

  var position: EventPosition { EventPosition(createdAt: createdAt, id: id) }

  /// The number of the content's bytes.
  var contentCount: Int { bytes.count - tagRange.upperBound }

  var content: Text { Text(utf8: bytes[tagRange.upperBound...]) }

  /// The tags in the form the rest of the program reads.
  var tags: Tags {
    var packed: [UInt8] = []
    packed.reserveCapacity(tagRange.count + tagRange.count / 2)
    var count = 0
    bytes.withUnsafeBytes { raw in
      var offset = tagRange.lowerBound
      while offset < tagRange.upperBound {
        let elements = Varint.read(raw, at: &offset)
        Varint.append(elements, to: &packed)
        for _ in 0..<elements {
          let head = Varint.read(raw, at: &offset)
          let end = offset + head >> 1
          let element = UnsafeRawBufferPointer(rebasing: raw[offset..<end])
          if head & 1 == 1 {
            Varint.append(64, to: &packed)
            Hex.append(element, to: &packed)
          } else {
            Varint.append(element.count, to: &packed)
            packed.append(contentsOf: element)
          }
          offset = end
        }
        count += 1
      }
    }
    return Tags(packedBytes: packed, count: count)
  }

  /// Whether an `e` tag names `id`, looked up in the row itself: a deletion may have very many
  /// targets, and each of them asks.
  func refers(to id: EventID) -> Bool {
    bytes.withUnsafeBytes { raw in
      var offset = tagRange.lowerBound
      while offset < tagRange.upperBound {
        let elements = Varint.read(raw, at: &offset)
        var isReference = false
        for index in 0..<elements {
          let head = Varint.read(raw, at: &offset)
          let end = offset + head >> 1
          if index == 0 { isReference = head == 1 << 1 && raw[offset] == UInt8(ascii: "e") }
          if index == 1, isReference, head == 32 << 1 | 1,
            Bytes32(UnsafeRawBufferPointer(rebasing: raw[offset..<end])) == id.bytes
          {
            return true
          }
          offset = end
        }
      }
      return false
    }
  }

  /// The event without its signature, for matching filters and reading tags.
  var event: Event {
    Event(
      id: id, pubkey: pubkey, createdAt: createdAt, kind: kind, tags: tags, content: content,
      sig: Signature(first: .zero, second: .zero))
  }

  /// Appends the row of `event` to `arena`.
  static func append(_ event: Event, sequence: UInt64, to arena: inout [UInt8]) {
    let start = arena.count
    append(integer: UInt32(0), to: &arena)
    append(integer: event.kind.number, to: &arena)
    append(integer: event.createdAt.seconds, to: &arena)
    event.id.bytes.withUnsafeBytes { arena.append(contentsOf: $0) }
    event.pubkey.bytes.withUnsafeBytes { arena.append(contentsOf: $0) }
    arena.append(event.tags.contains(named: "expiration") ? expiresFlag : 0)
    let tags = packTags(event.tags)
    Varint.append(tags.count, to: &arena)
    arena.append(contentsOf: tags)
    arena.append(contentsOf: event.content.utf8)
    arena.withUnsafeMutableBytes { raw in
      let rest = UnsafeRawBufferPointer(rebasing: raw[(start + 4)...])
      let sum = StableHash.checksum(rest, seed: sequence)
      raw.storeBytes(of: sum.littleEndian, toByteOffset: start, as: UInt32.self)
    }
  }

  private static func append(integer: some FixedWidthInteger, to arena: inout [UInt8]) {
    withUnsafeBytes(of: integer.littleEndian) { arena.append(contentsOf: $0) }
  }

  private static func packTags(_ tags: Tags) -> [UInt8] {
    var result: [UInt8] = []
    tags.withPackedBytes { raw in
      result.reserveCapacity(raw.count)
      var offset = 0
      while offset < raw.count {
        let elements = Varint.read(raw, at: &offset)
        Varint.append(elements, to: &result)
        for _ in 0..<elements {
          let length = Varint.read(raw, at: &offset)
          let element = UnsafeRawBufferPointer(rebasing: raw[offset..<offset + length])
          if length == 64, let binary = Hex.decode64(element) {
            Varint.append(32 << 1 | 1, to: &result)
            binary.withUnsafeBytes { result.append(contentsOf: $0) }
          } else {
            Varint.append(length << 1, to: &result)
            result.append(contentsOf: element)
          }
          offset += length
        }
      }
    }
    return result
  }
}

/// LEB128 counts.
enum Varint {
  @inline(__always)
  static func append(_ value: Int, to bytes: inout [UInt8]) {
    var rest = value
    while rest >= 0x80 {
      bytes.append(UInt8(rest & 0x7f) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  /// Reads what `append` wrote; stops at the end of the bytes and never beyond eight groups.
  @inline(__always)
  static func read(_ bytes: UnsafeRawBufferPointer, at offset: inout Int) -> Int {
    var result = 0
    var shift = 0
    while offset < bytes.count, shift < 56 {
      let byte = bytes[offset]
      offset += 1
      result |= Int(byte & 0x7f) << shift
      if byte < 0x80 { break }
      shift += 7
    }
    return result
  }
}
