package import Nostr
import SyncCore

/// The clocks of one computer: a wall clock that may be wrong and may jump, and a steady one that may
/// run too fast or too slow.
package final class DeviceClock: SyncClock, @unchecked Sendable {
  // Unchecked: as for the world it is in.
  private let world: World
  /// By how many seconds the wall clock is ahead of the world's.
  package var offset: Int64 {
    didSet { offsetMax = max(offsetMax, offset) }
  }
  /// The most that it was ever ahead.
  package private(set) var offsetMax: Int64
  /// How much time it takes for one second to pass in the world.
  private let rate: Double
  private let origin: Duration

  package init(_ world: World, offset: Int64, rate: Double = 1) {
    self.world = world
    self.offset = offset
    offsetMax = offset
    self.rate = rate
    origin = world.now
  }

  package func now() -> Timestamp { world.wall + offset }

  package func uptime() -> Duration {
    rate == 1 ? world.now - origin : (world.now - origin) * rate
  }

  package func sleep(until uptime: Duration) async throws {
    if rate == 1 { return try await world.sleep(until: origin + uptime) }
    // Whoever wakes must find that the time has come.
    try await world.sleep(until: origin + uptime / rate + .microseconds(2))
  }
}
