import Nostr
import Platform
import SyncCore
import Testing

@testable import HotCache

@Suite struct ReadWatchTests {
  private final class HandClock: SyncClock {
    let time = Lock(Duration.zero)

    func now() -> Timestamp { 0 }

    func uptime() -> Duration { time.withLock { $0 } }

    func sleep(until uptime: Duration) async throws { throw CancellationError() }
  }

  @Test func `a read of five seconds is told while it runs and after it`() throws {
    let clock = HandClock()
    let views = try HotCacheTests.views([message("text", at: 1)])
    views.watch(with: clock)
    try views.read { _ throws(CacheError) in clock.time.withLock { $0 = .seconds(4) } }
    #expect(views.slowestRead == nil)
    try views.read { _ throws(CacheError) in
      clock.time.withLock { $0 = .seconds(10) }
      #expect(views.slowestRead == .seconds(6))
    }
    #expect(views.slowestRead == .seconds(6))
  }
}
