import EventLog
import Nostr
import Platform
import SyncCore
import Testing

@testable import HotCache

struct OrderTests {
  @Test(arguments: [(1, 50), (2, 10), (3, 10)] as [(UInt64, UInt64)])
  func `any order of the same events gives one digest and equal views`(
    seed: UInt64, orders: UInt64
  ) throws {
    let history = History(seed: seed, count: 300)
    let first = try views(history.log(order: 0))
    let digest = try first.read { view throws(CacheError) in try view.digest() }
    let lines = try dump(first)
    for order in 1...orders {
      let other = try views(history.log(order: order))
      #expect(try other.read { view throws(CacheError) in try view.digest() } == digest)
      #expect(try dump(other) == lines, "history \(seed), order \(order)")
    }
  }

  @Test func `a rule that looks at the order of arrival is found out`() throws {
    let history = History(seed: 1, count: 100)
    func digest(order: UInt64) throws -> CacheDigest {
      let log = history.log(order: order)
      let store = MemoryStore()
      try fold(log, into: store)
      // First come, first served: what no fold may do.
      var batch = RowBatch()
      let first = try log.entries(after: .start, limit: 1).first
      batch.add(
        SmallKey([UInt8(ascii: "z")]), first.map { [UInt8($0.event?.id.bytes.array[0] ?? 0)] } ?? []
      )
      try store.write(&batch, meta: CacheMeta(logID: [], foldVersion: 1))
      return try CacheViews(store: store, state: .ok).read { view throws(CacheError) in
        try view.digest()
      }
    }
    let digests = try Set((0..<10).map { try digest(order: $0) })
    #expect(digests.count > 1)
  }

  @Test func `every event's presence changes the digest`() throws {
    let history = History(seed: 4, count: 60)
    let whole = try digest(of: views(history.events))
    for index in history.events.indices {
      var rest = history.events
      rest.remove(at: index)
      #expect(try digest(of: views(rest)) != whole)
    }
  }

  @Test func `files, memory and a rebuild give one digest and equal views`() async throws {
    let scratch = Scratch()
    let log = History(seed: 9, count: 400).log(order: 3)
    let cache = await HotCache.open(
      directory: scratch.path + "/cache", source: log, executor: ThreadExecutor(),
      options: CacheOptions(batchEntries: 37))
    try await cache.catchUp()
    #expect(cache.views.state == .ok)
    let memory = try views(log)
    #expect(try digest(of: cache.views) == digest(of: memory))
    #expect(try dump(cache.views) == dump(memory))
    try await cache.rebuild()
    #expect(cache.views.state == .ok)
    #expect(try digest(of: cache.views) == digest(of: memory))
    await cache.close()
  }

  @Test func `entries that are folded twice change nothing`() throws {
    let log = History(seed: 5, count: 200).log(order: 1)
    let store = MemoryStore()
    try fold(log, into: store)
    let once = CacheViews(store: store, state: .ok)
    let before = try digest(of: once)
    try fold(log, into: store, batch: 13)
    #expect(try digest(of: once) == before)
  }

}

func digest(of cache: CacheViews) throws -> CacheDigest {
  try cache.read { view throws(CacheError) in try view.digest() }
}

extension LogEntry {
  fileprivate var event: Event? {
    if case .event(let logged) = body { logged.event } else { nil }
  }
}
