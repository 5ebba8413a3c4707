import Nostr

/// Where a range ends: before every item at or after this time and id prefix.
public struct NegentropyBound: Hashable, Sendable {
  /// Seconds; nil stands for infinity.
  let time: UInt64?
  /// At most 32 bytes; what is left out counts as zero.
  let prefix: [UInt8]

  static let infinity = NegentropyBound(time: nil, prefix: [])

  /// The shortest bound that stands after `previous` and not after `next`.
  static func between(_ previous: EventPosition, _ next: EventPosition) -> NegentropyBound {
    let time = UInt64(max(0, next.createdAt.seconds))
    if previous.createdAt != next.createdAt { return NegentropyBound(time: time, prefix: []) }
    let left = previous.id.bytes.array
    let right = next.id.bytes.array
    let shared = zip(left, right).prefix { $0 == $1 }.count
    return NegentropyBound(time: time, prefix: Array(right.prefix(shared + 1)))
  }

  /// The bound exactly before `item`.
  static func at(_ item: EventPosition) -> NegentropyBound {
    NegentropyBound(time: UInt64(max(0, item.createdAt.seconds)), prefix: item.id.bytes.array)
  }

  /// Whether `item` lies before this bound.
  func isAfter(_ item: EventPosition) -> Bool {
    guard let time else { return true }
    let seconds = UInt64(max(0, item.createdAt.seconds))
    if seconds != time { return seconds < time }
    return item.id.bytes.withUnsafeBytes { id in
      for (index, byte) in prefix.enumerated() where id[index] != byte { return id[index] < byte }
      return false
    }
  }
}

/// Why a NIP-77 message could not be read; the peer is at fault, and only this session ends.
public enum NegentropyError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The other side speaks a version that is not ours (0x61).
  case version(UInt8)
  case malformed(String)

  public var description: String {
    switch self {
    case .version(let byte): "unknown negentropy version \(byte)"
    case .malformed(let why): "malformed negentropy message: \(why)"
    }
  }
}

enum NegentropyMode {
  static let skip: UInt64 = 0
  static let fingerprint: UInt64 = 1
  static let idList: UInt64 = 2
}

/// Writes one message; times are deltas from the time written before.
struct NegentropyWriter {
  private(set) var bytes: [UInt8]
  private var previousTime: UInt64 = 0

  init() { bytes = [negentropyVersion] }

  mutating func append(_ bound: NegentropyBound, mode: UInt64) {
    if let time = bound.time {
      Self.appendVarint(time - previousTime + 1, to: &bytes)
      previousTime = time
    } else {
      Self.appendVarint(0, to: &bytes)
    }
    Self.appendVarint(UInt64(bound.prefix.count), to: &bytes)
    bytes += bound.prefix
    Self.appendVarint(mode, to: &bytes)
  }

  mutating func append(_ fingerprint: NegentropyFingerprint) { bytes += fingerprint.bytes }

  mutating func appendCount(_ count: Int) { Self.appendVarint(UInt64(count), to: &bytes) }

  mutating func append(_ id: EventID) { id.bytes.withUnsafeBytes { bytes += $0 } }

  /// Base 128, most significant group first, the high bit set on all but the last byte.
  static func appendVarint(_ value: UInt64, to bytes: inout [UInt8]) {
    var shift = 63
    while shift > 0 && value >> UInt64(shift) == 0 { shift -= 7 }
    while shift > 0 {
      bytes.append(UInt8(value >> UInt64(shift) & 0x7f) | 0x80)
      shift -= 7
    }
    bytes.append(UInt8(value & 0x7f))
  }
}

/// Reads one message; every read is checked against its end.
struct NegentropyReader {
  private var rest: ArraySlice<UInt8>
  private var previousTime: UInt64? = 0

  init(_ message: [UInt8]) throws(NegentropyError) {
    guard let version = message.first else { throw .malformed("it is empty") }
    guard version == negentropyVersion else { throw .version(version) }
    rest = message.dropFirst()
  }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func bound() throws(NegentropyError) -> NegentropyBound {
    let delta = try varint()
    if let before = previousTime, delta > 0 {
      let (time, overflow) = before.addingReportingOverflow(delta - 1)
      guard !overflow, time < .max else { throw .malformed("a time out of range") }
      previousTime = time
    } else {
      previousTime = nil
    }
    let length = try varint()
    guard length <= 32 else { throw .malformed("an id prefix of \(length) bytes") }
    return NegentropyBound(time: previousTime, prefix: try take(Int(length)))
  }

  mutating func varint() throws(NegentropyError) -> UInt64 {
    var result: UInt64 = 0
    for _ in 0..<10 {
      guard let byte = rest.popFirst() else { throw .malformed("it ends inside a number") }
      guard result >> 57 == 0 else { throw .malformed("a number over 64 bits") }
      result = result << 7 | UInt64(byte & 0x7f)
      if byte < 0x80 { return result }
    }
    throw .malformed("a number over 64 bits")
  }

  mutating func fingerprint() throws(NegentropyError) -> NegentropyFingerprint {
    NegentropyFingerprint(try take(16))
  }

  mutating func ids() throws(NegentropyError) -> [EventID] {
    let count = try varint()
    guard count <= UInt64(rest.count / 32) else { throw .malformed("a list longer than itself") }
    var ids: [EventID] = []
    ids.reserveCapacity(Int(count))
    for _ in 0..<count {
      guard let bytes = Bytes32(rest.prefix(32)) else { throw .malformed("a short id") }
      rest = rest.dropFirst(32)
      ids.append(EventID(bytes))
    }
    return ids
  }

  private mutating func take(_ count: Int) throws(NegentropyError) -> [UInt8] {
    guard rest.count >= count else { throw .malformed("it ends inside a field") }
    defer { rest = rest.dropFirst(count) }
    return Array(rest.prefix(count))
  }
}

/// Protocol version 1.
let negentropyVersion: UInt8 = 0x61
