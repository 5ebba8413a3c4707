import EventLog
import Foundation
import Nostr
import Platform
import SyncCore
import Testing

@testable import HotCache

/// A long history with every kind that means something, in many orders of arrival.
///
/// `SKEP_ORDERS=200` in the environment tries more orders than fit into every run.
struct PermutationTests {
  private static let eventCount = 2000
  private static let orders =
    ProcessInfo.processInfo.environment["SKEP_ORDERS"].flatMap { UInt64($0) } ?? 5

  @Test func `two thousand events in any order give one digest and equal views`() throws {
    let history = History(seed: 11, count: Self.eventCount)
    let first = try views(history.log(order: 0))
    let expected = try digest(of: first)
    let lines = try dump(first)
    for order in 1...Self.orders {
      let other = try views(history.log(order: order))
      #expect(try digest(of: other) == expected, "order \(order)")
      if order <= 2 { #expect(try dump(other) == lines, "order \(order)") }
    }
  }

  @Test func `live, rebuilt, in memory and laid over one another, the rows are the same`()
    async throws
  {
    let scratch = Scratch()
    let log = History(seed: 12, count: Self.eventCount).log(order: 5)
    let expected = try digest(of: views(log))
    let half = log.prefix(try Int(log.head().number) / 2)
    let folder = scratch.path + "/cache"
    let early = await HotCache.open(
      directory: folder, source: half, executor: ThreadExecutor(),
      options: CacheOptions(batchEntries: 37))
    try await early.catchUp()
    await early.close()
    let laidOver = try CacheReader.open(directory: folder, source: log)
    #expect(laidOver.state == .ok)
    #expect(try digest(of: laidOver) == expected)
    let live = await HotCache.open(
      directory: folder, source: log, executor: ThreadExecutor(),
      options: CacheOptions(batchEntries: 100))
    try await live.catchUp()
    #expect(live.views.state == .ok)
    #expect(try digest(of: live.views) == expected)
    try await live.rebuild()
    #expect(try digest(of: live.views) == expected)
    await live.close()
  }

  /// One twin a kind of row: with a rule that looks at the order of arrival, the test above fails.
  @Test(arguments: Breakage.all)
  func `an order-dependent rule for any kind of row is found out`(breakage: Breakage) throws {
    let history = History(seed: 13, count: 500)
    let first = try breakage.digest(of: history.log(order: 0))
    let isFound = try (1...8).contains { order in
      try breakage.digest(of: history.log(order: order)) != first
    }
    #expect(isFound)
  }
}

/// A fold that keeps only the first row to arrive under each key of some kind.
struct Breakage: Sendable, CustomTestStringConvertible {
  let name: String
  /// What the first row is first of; nil: not one of the broken kind.
  var index: @Sendable (IndexKey) -> IndexKey? = { _ in nil }
  var small: @Sendable (SmallKey) -> [UInt8]? = { _ in nil }

  var testDescription: String { name }

  static let all: [Breakage] =
    [
      ("kind", IndexSpace.kind), ("author", IndexSpace.author), ("slot", IndexSpace.slot),
      ("group state", IndexSpace.groupState), ("membership", IndexSpace.membership),
      ("tag h", UInt8(ascii: "h")), ("tag e", UInt8(ascii: "e")), ("tag p", UInt8(ascii: "p")),
      ("tag a", UInt8(ascii: "a")), ("tag d", UInt8(ascii: "d")),
    ].map { name, space in
      Breakage(name: name, index: { $0.space == space ? $0 : nil })
    }
    + [
      ("deletion", Reference.deletion), ("moderation", .moderation), ("edit", .edit),
      ("reaction", .reaction), ("thread", .thread),
    ].map { name, reference in
      Breakage(
        name: name,
        index: { key in
          key.space == IndexSpace.reference && key.sub >> 28 == reference.rawValue
            ? IndexKey(space: key.space, hash: key.hash) : nil
        })
    }
    + [
      Breakage(
        name: "names", small: { $0.bytes.first == UInt8(ascii: "n") ? $0.bytes.suffix(32) : nil }),
      Breakage(
        name: "groups and served", small: { "gv".utf8.contains($0.bytes[0]) ? [$0.bytes[0]] : nil }),
    ]

  func digest(of log: ArrayLog) throws -> CacheDigest {
    let store = MemoryStore()
    var seenKeys: Set<IndexKey> = []
    var seenSmall: Set<[UInt8]> = []
    var result = RowBatch()
    for entry in try log.entries(after: .start, limit: .max) {
      var folded = RowBatch()
      EntryFold.fold(entry, into: &folded)
      if case .event(let logged) = entry.body {
        result.addBody(logged.event, sequence: UInt64(entry.sequence.number))
      }
      for row in folded.index {
        if let key = index(row.key), !seenKeys.insert(key).inserted { continue }
        result.add(row.key, row.entry)
      }
      for (key, value) in folded.smallSorted {
        if let key = small(key), !seenSmall.insert(key).inserted { continue }
        result.add(key, value)
      }
    }
    try store.write(&result, meta: CacheMeta(logID: [], foldVersion: 1))
    return try HotCacheTests.digest(of: CacheViews(store: store, state: .ok))
  }
}
