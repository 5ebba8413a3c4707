import EventLog
import Nostr
import NostrCrypto
import Platform
import SyncCore
import Testing

@testable import HotCache

/// The cache over the real log.
struct LogTests {
  private struct StillClock: SyncClock {
    func now() -> Timestamp { 1000 }
    func uptime() -> Duration { .zero }
    func sleep(until uptime: Duration) async throws {}
  }

  @Test func `what the log takes in is shown, in this process and to a reader of the files`()
    async throws
  {
    let scratch = Scratch()
    let log = try await EventLog.open(
      path: scratch.path + "/log.sqlite", executor: ThreadExecutor(), clock: StillClock())
    let signer = LocalSigner(SecretKey.generate())
    func signed(_ text: Text, at time: Int64) async throws -> VerifiedEvent {
      let draft = EventDraft(
        createdAt: Timestamp(time), kind: .message, tags: Tags([["h", "g"]]), content: text)
      return try await signer.sign(draft)
    }
    let cache = await HotCache.open(
      directory: scratch.path + "/cache", log: log.reader, executor: ThreadExecutor())
    let first = try await signed("one", at: 10)
    let second = try await signed("two", at: 20)
    _ = try await log.ingest(
      IngestBatch(events: [second, first], source: relayA, receivedAt: 1000))
    let hidden = try await signed("hidden", at: 30)
    _ = try await log.ingest(IngestBatch(events: [hidden], receivedAt: 1000))
    _ = try await log.note(.discarded(hidden.event.id))
    let head = try log.reader.head()
    #expect(try await cache.catchUp() == head)
    func texts(_ views: CacheViews) throws -> [Text] {
      try views.read { view throws(CacheError) in try view.timeline("g", now: noon).map(\.text) }
    }
    #expect(try texts(cache.views) == ["one", "two"])
    let found = try cache.views.read { view throws(CacheError) in
      try view.query([Filter(kinds: [9])], now: noon)
    }
    #expect(
      try log.reader.events(at: found).map { $0?.event.id } == [second, first].map(\.event.id))
    await cache.close()
    let reader = try CacheReader.open(directory: scratch.path + "/cache", log: log.reader)
    #expect(reader.state == .ok)
    #expect(try texts(reader) == ["one", "two"])
    await log.close()
  }
}
