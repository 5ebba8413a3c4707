public import Nostr

/// Finds out that the machine slept: then the wall clock has gone on and the steady one has not.
public struct WakeWatch: Sendable {
  /// A difference that no stepping of the wall clock by a time server makes in ordinary use.
  public static let jumpMin: Int64 = 10

  private var uptime: Duration
  private var wall: Timestamp

  public init(uptime: Duration, wall: Timestamp) {
    self.uptime = uptime
    self.wall = wall
  }

  /// - Returns: Whether the machine slept since this was asked last.
  public mutating func hasSlept(uptime: Duration, wall: Timestamp) -> Bool {
    let steady = (uptime - self.uptime).components.seconds
    let passed = wall.seconds - self.wall.seconds
    self.uptime = uptime
    self.wall = wall
    return passed - steady >= Self.jumpMin
  }
}
