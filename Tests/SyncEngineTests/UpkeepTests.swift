import EventLog
import Foundation
import HotCache
import Nostr
import NostrCrypto
import SyncCore
import SyncEngine
import Testing

@Suite struct UpkeepTests {
  private let clock = StepClock()

  private func open(
    _ bench: StoreBench, cache: CacheOptions = CacheOptions()
  ) async throws -> CommunityStore {
    try await CommunityStore.open(
      folder: bench.folder, clock: clock, tasks: bench.tasks, cacheOptions: cache)
  }

  private func walBytes(_ bench: StoreBench) throws -> Int {
    let path = bench.folder + "/log.sqlite-wal"
    return try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
  }

  /// Waits for what a task that is already running brings about.
  private func eventually(_ isTrue: () async throws -> Bool) async throws -> Bool {
    for _ in 0..<1_000_000 {
      if try await isTrue() { return true }
      await Task.yield()
    }
    return false
  }

  private func write(_ count: Int, to store: CommunityStore, bytes: Int = 20) async throws {
    let author = Author()
    let text = String(repeating: "x", count: bytes)
    let verifier = Verifier()
    let events = try (0..<count).map { number in
      try verifier.verify(try author.event(number, text: text))
    }
    for event in events { _ = try await store.ingest(IngestBatch(events: [event], receivedAt: 0)) }
  }

  @Test func `a held snapshot lets the write-ahead log grow, and after it idling cuts it`()
    async throws
  {
    let bench = try StoreBench()
    let store = try await open(bench)
    try await write(1, to: store)
    let holder = try SnapshotHolder(bench.folder + "/log.sqlite")
    try await write(16, to: store, bytes: 1 << 20)
    let grown = try walBytes(bench)
    #expect(grown > 16 << 20)
    #expect(await clock.step(to: .seconds(5)))
    // It was in the way, so each attempt is put off for longer than the one before.
    #expect(await clock.step(to: .seconds(15)))
    #expect(await clock.isAwaited(.seconds(35)))
    #expect(try walBytes(bench) >= grown)
    holder.letGo()
    #expect(await clock.step(to: .seconds(35)))
    #expect(try await eventually { try walBytes(bench) == 0 })
    await store.close()
  }

  @Test func `writing puts the checkpoint off`() async throws {
    let bench = try StoreBench()
    let store = try await open(bench)
    try await write(1, to: store)
    #expect(await clock.step(to: .seconds(5)))
    #expect(try await eventually { try walBytes(bench) == 0 })
    try await write(1, to: store)
    #expect(try walBytes(bench) > 0)
    #expect(await clock.step(to: .seconds(10)))
    #expect(try await eventually { try walBytes(bench) == 0 })
    await store.close()
  }

  @Test func `a full map takes nothing from the log, and the cache moves back when it may`()
    async throws
  {
    let bench = try StoreBench()
    let store = try await open(
      bench, cache: CacheOptions(mapBytes: 64 << 10, mapBytesMax: 64 << 10))
    let lines = try Author().lines(0..<1000)
    let progress = try await bench.pipeline(store).run(Chunks(lines))
    #expect(progress.stored == 1000)
    #expect(store.views.state.name == "degraded")
    #expect(await clock.step(to: .seconds(30)))
    #expect(await clock.step(to: .seconds(90)))
    #expect(await clock.isAwaited(.seconds(210)))
    #expect(store.views.state.name == "degraded")
    await store.cache.setMapBytesMax(1 << 30)
    #expect(await clock.step(to: .seconds(210)))
    #expect(try await eventually { store.views.state == .ok })
    let count = try store.views.read { view throws(CacheError) in
      try view.count([Filter(kinds: [9])], now: clock.now())
    }
    #expect(count == 1000)
    await store.close()
  }
}
