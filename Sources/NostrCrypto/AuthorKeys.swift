import CSecp256k1
import Nostr
import Platform

/// Parsed keys of recent authors: parsing finds a square root, about an eighth of the whole check.
///
/// A table of fixed size in sets of four, so it is bounded without any bookkeeping, and cut into
/// shards, so that threads seldom meet. What is in it never changes a verdict, only its cost.
final class AuthorKeys: Sendable {
  private let shards: [Lock<Shard>]
  private let setsPerShard: UInt64

  init(authorsMax: Int) {
    let sets = max(1, authorsMax / (Shard.ways * AuthorKeys.shardCount))
    setsPerShard = UInt64(sets)
    shards = (0..<AuthorKeys.shardCount).map { _ in Lock(Shard(sets: sets)) }
  }

  /// The key as a point, or nil where it is none.
  func parsed(_ key: PublicKey) -> Curve.XOnlyKey? {
    // The low end of a key: people mine pretty beginnings, not ends.
    let place = key.bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 24, as: UInt64.self) }
    let shard = shards[Int(place % UInt64(AuthorKeys.shardCount))]
    let set = Int(place / UInt64(AuthorKeys.shardCount) % setsPerShard)
    if let known = shard.withLock({ $0.find(key, in: set) }) { return known }
    // Outside the lock; two threads may parse the same key at once, and both are right.
    guard let parsed = Curve.shared.parse(key) else { return nil }
    shard.withLock { $0.insert(key, parsed, in: set) }
    return parsed
  }

  private static let shardCount = 16
}

private struct Shard: Sendable {
  static let ways = 4
  private var keys: [PublicKey?]
  private var points: [Curve.XOnlyKey]
  private var next = 0

  init(sets: Int) {
    keys = Array(repeating: nil, count: sets * Shard.ways)
    points = Array(repeating: Curve.XOnlyKey(), count: sets * Shard.ways)
  }

  func find(_ key: PublicKey, in set: Int) -> Curve.XOnlyKey? {
    for way in set * Shard.ways..<(set + 1) * Shard.ways where keys[way] == key {
      return points[way]
    }
    return nil
  }

  mutating func insert(_ key: PublicKey, _ point: Curve.XOnlyKey, in set: Int) {
    let ways = set * Shard.ways..<(set + 1) * Shard.ways
    let way = ways.first { keys[$0] == nil || keys[$0] == key } ?? ways.lowerBound + next
    next = (next + 1) % Shard.ways
    keys[way] = key
    points[way] = point
  }
}
