import Nostr

/// One number over all logical rows of a cache: equal rows give equal digests, in whatever order
/// they came and wherever they are kept. Sequences and the watermark are not part of it.
public struct CacheDigest: Hashable, Sendable, CustomStringConvertible {
  private var first: UInt64 = 0
  private var second: UInt64 = 0

  /// 32 lowercase digits.
  public var description: String {
    Hex.string(
      [first, second].flatMap { word in Swift.withUnsafeBytes(of: word.bigEndian, Array.init) })
  }

  /// A sum does not depend on the order of its parts.
  mutating func add(_ row: [UInt8]) {
    first = first &+ StableHash.value(row, salt: 0x11)
    second = second &+ StableHash.value(row, salt: 0x22)
  }
}

extension Reading {
  func digest() throws(StoreError) -> CacheDigest {
    var digest = CacheDigest()
    let seen = try addBodies(to: &digest)
    try addIndex(to: &digest, names: seen.names)
    try addSmall(to: &digest, vouched: seen.vouched)
    return digest
  }

  private struct Seen {
    /// What stands for a sequence: a hash of the event's id.
    var names: [UInt64: UInt64] = [:]
    /// The events whose effect depends on who served them.
    var vouched: Set<EventID> = []
  }

  private func addBodies(to digest: inout CacheDigest) throws(StoreError) -> Seen {
    var seen = Seen()
    var last: UInt64 = 0
    while true {
      let piece = try store.bodies(after: last, limit: 500)
      for row in piece {
        if GroupFold.vouchedKinds.contains(row.kind) { seen.vouched.insert(row.id) }
        seen.names[row.sequence] = StableHash.value(row.id.bytes.array)
        digest.add([1] + row.logicalBytes)
        let isFound = try store.sequences(idPrefix: row.id.bytes.prefix).contains(row.sequence)
        if isFound { digest.add([2] + row.id.bytes.array) }
        last = row.sequence
      }
      guard piece.count == 500 else { return seen }
    }
  }

  private func addIndex(to digest: inout CacheDigest, names: [UInt64: UInt64]) throws(StoreError) {
    var next: IndexKey? = IndexKey(space: 0, hash: 0)
    let last = IndexKey(space: .max, hash: .max, sub: .max)
    while let start = next {
      let keys = try store.keys(from: start, through: last, limit: 500)
      for key in keys { try addEntries(of: key, to: &digest, names: names) }
      next = keys.count == 500 ? keys.last?.successor : nil
    }
  }

  private func addEntries(
    of key: IndexKey, to digest: inout CacheDigest, names: [UInt64: UInt64]
  ) throws(StoreError) {
    var lower = IndexEntry.lowest
    while true {
      var piece: [IndexEntry] = []
      try store.entries(
        key, from: lower, through: .highest, descending: false, limit: 1000, into: &piece)
      for entry in piece {
        var row: [UInt8] = [3, key.space]
        row.append(integer: key.hash)
        row.append(integer: UInt64(key.sub))
        row.append(integer: UInt64(entry.time))
        row.append(integer: names[entry.sequence] ?? 0)
        digest.add(row)
      }
      guard piece.count == 1000, let last = piece.last, last.sequence < IndexEntry.sequenceMax
      else { return }
      lower = IndexEntry(time: last.time, prefix: last.prefix, sequence: last.sequence + 1)
    }
  }

  private func addSmall(
    to digest: inout CacheDigest, vouched: Set<EventID>
  ) throws(StoreError) {
    var last: SmallKey?
    var lastFact: [UInt8] = []
    while true {
      let piece = try store.small(prefix: [], after: last, limit: 500)
      for (key, value) in piece where key.bytes != SmallRow.metaKey {
        if key.hasSequence {
          // Of facts that overrule each other only the newest is said, and not when it came.
          let subject = Array(key.bytes.dropLast(8))
          if subject != lastFact { digest.add([4] + subject + [0] + value) }
          lastFact = subject
        } else if key.servedEvent.map(vouched.contains) ?? true {
          // That a relay served what needs no voucher is noted only where the event was there
          // already, and decides nothing.
          digest.add([5] + key.bytes + [0] + value)
        }
      }
      guard piece.count == 500 else { return }
      last = piece.last?.key
    }
  }
}

extension SmallKey {
  /// The event of a row that says who served it.
  var servedEvent: EventID? {
    guard bytes.first == UInt8(ascii: "v") else { return nil }
    return Bytes32(bytes.dropFirst().prefix(32)).map(EventID.init)
  }

  /// Whether the key ends in the sequence of a fact.
  var hasSequence: Bool {
    bytes.first == SmallKey.relaySelves.first || bytes.first == SmallKey.hiddenEvents.first
  }
}
