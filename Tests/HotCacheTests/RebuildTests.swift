import EventLog
import Foundation
import Nostr
import Platform
import SyncCore
import Testing

@testable import HotCache

/// A rebuild while others read, and what rows cost.
struct RebuildTests {
  /// A log that lets a test look on whenever it is read from its beginning.
  private final class WatchedLog: EntrySource {
    let log: ArrayLog
    private let onStart: Lock<(@Sendable () -> Void)?> = Lock(nil)

    init(_ log: ArrayLog) { self.log = log }

    func whenReadAnew(_ body: @escaping @Sendable () -> Void) { onStart.withLock { $0 = body } }

    func logID() throws(CacheError) -> [UInt8] { try log.logID() }

    func head() throws(CacheError) -> LogSequence { try log.head() }

    func entries(after sequence: LogSequence, limit: Int) throws(CacheError) -> [LogEntry] {
      if sequence.number > 0 { onStart.withLock { $0 }?() }
      return try log.entries(after: sequence, limit: limit)
    }
  }

  @Test func `readers keep the old rows until the new ones are whole`() async throws {
    let scratch = Scratch()
    let log = WatchedLog(History(seed: 41, count: 300).log(order: 1))
    let cache = await HotCache.open(
      directory: scratch.path + "/cache", source: log, executor: ThreadExecutor(),
      options: CacheOptions(batchEntries: 40))
    try await cache.catchUp()
    let before = try digest(of: cache.views)
    let seen = Lock<[CacheDigest?]>([])
    let views = cache.views
    log.whenReadAnew { seen.withLock { $0.append(try? digest(of: views)) } }
    try await cache.rebuild()
    let looks = seen.withLock { $0 }
    #expect(looks.count > 5)
    #expect(looks.allSatisfy { $0 == before })
    #expect(cache.views.state == .ok)
    #expect(try digest(of: cache.views) == before)
    await cache.close()
    let left = try FileManager.default.contentsOfDirectory(atPath: scratch.path + "/cache")
    #expect(left.sorted() == ["data.mdb", "lock.mdb", "seal"])
    let again = try CacheReader.open(directory: scratch.path + "/cache", source: log.log)
    #expect(again.state == .ok)
    #expect(try digest(of: again) == before)
  }

  @Test func `what a rebuild that was cut short has left is thrown away`() async throws {
    let scratch = Scratch()
    let folder = scratch.path + "/cache"
    let log = History(seed: 42, count: 100).log(order: 1)
    let cache = await HotCache.open(directory: folder, source: log, executor: ThreadExecutor())
    try await cache.catchUp()
    await cache.close()
    try FileManager.default.createDirectory(
      atPath: folder + "/next", withIntermediateDirectories: true)
    try Data("half".utf8).write(to: URL(filePath: folder + "/next/data.mdb"))
    let again = await HotCache.open(directory: folder, source: log, executor: ThreadExecutor())
    #expect(again.views.state == .ok)
    try await again.catchUp()
    #expect(try digest(of: again.views) == digest(of: views(log)))
    #expect(!FileManager.default.fileExists(atPath: folder + "/next"))
    await again.close()
  }

  /// Counts are the same on every machine, where times are not.
  @Test func `an event costs no more rows and bytes than it did`() async throws {
    let scratch = Scratch()
    let history = History(seed: 43, count: 2000)
    let log = history.log(order: 0)
    let cache = await HotCache.open(
      directory: scratch.path + "/cache", source: log, executor: ThreadExecutor())
    try await cache.catchUp()
    let rows = try cache.views.read { view throws(CacheError) in try view.rowCount() }
    #expect(rows <= history.events.count * 8, "\(rows) rows")
    var status = stat()
    #expect(stat(scratch.path + "/cache/data.mdb", &status) == 0)
    let json = history.events.reduce(0) { $0 + $1.json().count }
    // LMDB keeps whole pages, so that so small a log comes out a little worse than a large one.
    #expect(Int(status.st_blocks) * 512 <= json, "\(status.st_blocks * 512) against \(json)")
    await cache.close()
  }

  @Test func `a page costs no more reads than it did`() throws {
    let root = message("root", at: 1)
    var events = [root]
    for number in 0..<49 { events.append(message("\(number)", at: Int64(number + 2))) }
    for number in 0..<3 {
      events.append(event(7, by: UInt8(number + 2), at: 60, [["e", root.id.hex]], "+"))
      events.append(reply("r", to: root, by: 2, at: Int64(70 + number)))
    }
    events.append(event(40003, by: 1, at: 80, [["e", root.id.hex]], "edited"))
    let store = CountingStore()
    let log = ArrayLog()
    log.append(events)
    try fold(log, into: store)
    let cache = CacheViews(store: store, state: .ok)
    store.counts.withLock { $0 = CountingStore.Counts() }
    let page = try cache.read { view throws(CacheError) in
      try view.timeline("g", limit: 50, now: noon)
    }
    #expect(page.count == 50)
    let counts = store.counts.withLock { $0 }
    // A message each, and what refers to one of them: 3 reactions, an edit, and 3 replies, which are
    // read once for the thread and once to see that it has a beginning.
    #expect(counts.bodies <= 50 + 3 + 1 + 3 + 3 + 1)
    #expect(counts.keys <= 50 + 3 + 3 + 1)
    #expect(counts.small <= 4)
    #expect(counts.entries <= 7)
  }

  @Test func `the beginning of a thread is read once for all its replies`() throws {
    let root = message("root", at: 1)
    let store = CountingStore()
    let log = ArrayLog()
    log.append([root] + (0..<20).map { reply("\($0)", to: root, by: 2, at: 10 + Int64($0)) })
    try fold(log, into: store)
    let cache = CacheViews(store: store, state: .ok)
    store.counts.withLock { $0 = CountingStore.Counts() }
    let replies = try cache.read { view throws(CacheError) in
      try view.thread(root.id, limit: 50, now: noon)
    }
    #expect(replies.count == 20 && replies.allSatisfy { !$0.isStray })
    // Once for its group, once to see that it is here.
    #expect(store.counts.withLock { $0.bodies } == 20 + 2)
  }
}

/// A store in memory that counts what is asked of it.
private final class CountingStore: CacheStore, @unchecked Sendable {
  // Unchecked: the memory store looks after itself, and the counts have a lock.
  struct Counts {
    var bodies = 0
    var keys = 0
    var entries = 0
    var small = 0
  }

  let counts = Lock(Counts())
  private let memory = MemoryStore()

  func write(_ batch: inout RowBatch, meta: CacheMeta) throws(StoreError) {
    try memory.write(&batch, meta: meta)
  }

  func read<Result, Failure: Error>(
    _ body: (any StoreSnapshot) throws(Failure) -> Result
  ) throws(StoreReadError<Failure>) -> Result {
    try memory.read { snapshot throws(Failure) in
      try body(CountingSnapshot(base: snapshot, counts: counts))
    }
  }

  func close() {}
}

private final class CountingSnapshot: StoreSnapshot {
  private let base: any StoreSnapshot
  private let counts: Lock<CountingStore.Counts>

  init(base: any StoreSnapshot, counts: Lock<CountingStore.Counts>) {
    self.base = base
    self.counts = counts
  }

  func meta() throws(StoreError) -> CacheMeta? { try base.meta() }

  func body(at sequence: UInt64) throws(StoreError) -> BodyRow? {
    counts.withLock { $0.bodies += 1 }
    return try base.body(at: sequence)
  }

  func bodies(after sequence: UInt64, limit: Int) throws(StoreError) -> [BodyRow] {
    try base.bodies(after: sequence, limit: limit)
  }

  func sequences(idPrefix prefix: UInt64) throws(StoreError) -> [UInt64] {
    try base.sequences(idPrefix: prefix)
  }

  func keys(from lower: IndexKey, through upper: IndexKey, limit: Int) throws(StoreError)
    -> [IndexKey]
  {
    counts.withLock { $0.keys += 1 }
    return try base.keys(from: lower, through: upper, limit: limit)
  }

  func count(_ key: IndexKey) throws(StoreError) -> Int { try base.count(key) }

  func entries(
    _ key: IndexKey, from lower: IndexEntry, through upper: IndexEntry, descending: Bool,
    limit: Int, into entries: inout [IndexEntry]
  ) throws(StoreError) {
    counts.withLock { $0.entries += 1 }
    try base.entries(
      key, from: lower, through: upper, descending: descending, limit: limit, into: &entries)
  }

  func small(prefix: [UInt8], after key: SmallKey?, limit: Int) throws(StoreError)
    -> [(key: SmallKey, value: [UInt8])]
  {
    counts.withLock { $0.small += 1 }
    return try base.small(prefix: prefix, after: key, limit: limit)
  }
}
