import Glibc
package import Nostr
import SyncCore

/// The machine's clocks.
package struct SystemClock: SyncClock {
  private let origin = ContinuousClock.now
  private let offset: Int64

  /// - Parameter offset: Seconds added to the wall clock, for tests of a wrong one; the steady
  ///   clock is never shifted.
  package init(offset: Int64 = 0) { self.offset = offset }

  /// The clock with the offset that the environment's `SKEP_CLOCK_OFFSET` asks for.
  package static func fromEnvironment() -> SystemClock {
    guard let text = getenv("SKEP_CLOCK_OFFSET"), let offset = Int64(String(cString: text)) else {
      return SystemClock()
    }
    return SystemClock(offset: offset)
  }

  package func now() -> Timestamp {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(Int64(time.tv_sec)) + offset
  }

  package func uptime() -> Duration { origin.duration(to: .now) }

  package func sleep(until uptime: Duration) async throws {
    try await Task.sleep(until: origin + uptime, clock: .continuous)
  }
}
