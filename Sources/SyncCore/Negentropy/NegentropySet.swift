public import Nostr
import NostrCrypto

/// The items of one side of a NIP-77 reconciliation, fixed when the session opens.
///
/// Sums of ids are kept for every prefix of the sorted items, so that the fingerprint of any range
/// costs one subtraction and one hash, however long the range is. Thirty-two bytes an item buy that.
public struct NegentropySet: Sendable {
  private let items: [EventPosition]
  private let sums: [IDSum]

  /// - Parameter items: In any order; repeats are dropped.
  /// - Complexity: O(n log n).
  public init(_ items: some Sequence<EventPosition>) {
    var sorted = items.sorted()
    var kept = 0
    for index in sorted.indices where index == 0 || sorted[index] != sorted[kept - 1] {
      sorted[kept] = sorted[index]
      kept += 1
    }
    sorted.removeLast(sorted.count - kept)
    self.items = sorted
    var sums: [IDSum] = [.zero]
    sums.reserveCapacity(sorted.count + 1)
    var sum = IDSum.zero
    for item in sorted {
      sum.add(item.id)
      sums.append(sum)
    }
    self.sums = sums
  }

  public var count: Int { items.count }

  public subscript(index: Int) -> EventPosition { items[index] }

  /// The first index in `lower...count` whose item is not before `bound`.
  func firstIndex(from lower: Int, notBefore bound: NegentropyBound) -> Int {
    var low = lower
    var high = items.count
    while low < high {
      let middle = low + (high - low) / 2
      if bound.isAfter(items[middle]) { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// The same fingerprint by adding up the ids of the range: what the sums are measured against.
  package func scannedFingerprint(_ range: Range<Int>) -> NegentropyFingerprint {
    var sum = IDSum.zero
    for index in range { sum.add(items[index].id) }
    return Self.fingerprint(sum, count: range.count)
  }

  /// The first 16 bytes of SHA-256 over the sum of the ids as little-endian numbers modulo 2^256,
  /// followed by their count.
  public func fingerprint(_ range: Range<Int>) -> NegentropyFingerprint {
    let sum = sums[range.upperBound].subtracting(sums[range.lowerBound])
    return Self.fingerprint(sum, count: range.count)
  }

  private static func fingerprint(_ sum: IDSum, count: Int) -> NegentropyFingerprint {
    var preimage = sum.littleEndianBytes
    NegentropyWriter.appendVarint(UInt64(count), to: &preimage)
    let hash = preimage.withUnsafeBytes { SHA256.hash($0) }
    return NegentropyFingerprint(Array(hash.array.prefix(16)))
  }
}

/// Sixteen bytes that two equal ranges share.
public struct NegentropyFingerprint: Hashable, Sendable {
  public let bytes: [UInt8]

  init(_ bytes: [UInt8]) { self.bytes = bytes }
}

/// A sum of ids, each read as a little-endian number, modulo 2^256.
private struct IDSum: Sendable {
  // The least significant word first.
  private var words: (UInt64, UInt64, UInt64, UInt64)

  static let zero = IDSum(words: (0, 0, 0, 0))

  mutating func add(_ id: EventID) {
    let other = id.bytes.withUnsafeBytes { bytes in
      (
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)),
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self)),
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 24, as: UInt64.self))
      )
    }
    var carry = false
    words.0 = Self.sum(words.0, other.0, &carry)
    words.1 = Self.sum(words.1, other.1, &carry)
    words.2 = Self.sum(words.2, other.2, &carry)
    words.3 = Self.sum(words.3, other.3, &carry)
  }

  func subtracting(_ other: IDSum) -> IDSum {
    var borrow = false
    return IDSum(
      words: (
        Self.difference(words.0, other.words.0, &borrow),
        Self.difference(words.1, other.words.1, &borrow),
        Self.difference(words.2, other.words.2, &borrow),
        Self.difference(words.3, other.words.3, &borrow)
      ))
  }

  var littleEndianBytes: [UInt8] {
    withUnsafeBytes(
      of: (
        words.0.littleEndian, words.1.littleEndian, words.2.littleEndian, words.3.littleEndian
      )
    ) { Array($0) }
  }

  private static func sum(_ left: UInt64, _ right: UInt64, _ carry: inout Bool) -> UInt64 {
    let (partial, first) = left.addingReportingOverflow(right)
    let (result, second) = partial.addingReportingOverflow(carry ? 1 : 0)
    carry = first || second
    return result
  }

  private static func difference(_ left: UInt64, _ right: UInt64, _ borrow: inout Bool) -> UInt64 {
    let (partial, first) = left.subtractingReportingOverflow(right)
    let (result, second) = partial.subtractingReportingOverflow(borrow ? 1 : 0)
    borrow = first || second
    return result
  }
}
