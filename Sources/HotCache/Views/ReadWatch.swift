import SyncCore

/// Reads that take long: each keeps old pages of the file alive, and the file grows meanwhile.
struct ReadWatch: Sendable {
  /// From here on a read is worth telling.
  static let slowFrom: Duration = .seconds(5)

  /// Nil: nobody has brought a clock, and nothing is watched.
  var clock: (any SyncClock)?
  private var running: [UInt64: Duration] = [:]
  private var next: UInt64 = 0
  private var slowestEnded: Duration?

  init() {}

  mutating func began() -> UInt64 {
    guard let clock else { return 0 }
    next += 1
    running[next] = clock.uptime()
    return next
  }

  mutating func ended(_ read: UInt64) {
    guard let clock, let start = running.removeValue(forKey: read) else { return }
    let length = clock.uptime() - start
    if length >= Self.slowFrom { slowestEnded = max(slowestEnded ?? length, length) }
  }

  /// The longest of the slow reads, whether it has ended or still runs; nil: none was slow.
  var slowest: Duration? {
    guard let clock else { return nil }
    let now = clock.uptime()
    let oldest = running.values.min().map { now - $0 }
    return [slowestEnded, oldest].compactMap { $0 }.filter { $0 >= Self.slowFrom }.max()
  }
}
