package import RelayServer

/// Which faults a seed has drawn, and how strong.
package struct FaultPlan: Sendable {
  /// The shortest time that a frame takes, and how much longer the slowest take.
  package var latency: Duration = .milliseconds(20)
  package var jitter: Duration = .milliseconds(30)
  /// How often a connection is hit, on average; nil for never.
  package var cutEvery: Duration?
  package var stallEvery: Duration?
  package var stallMax: Duration = .seconds(20)
  /// How many in a hundred cuts are not told to the client: the line goes silent.
  package var silentPercent = 0
  /// How many in a hundred lose one direction alone, without a word.
  package var oneWayPercent = 0
  /// How much a line carries; nil: as much as it is given.
  package var bytesPerSecond: Int?
  /// How many in a hundred attempts to connect fail.
  package var refusedPercent = 0
  package var relayRestartEvery: Duration?
  package var relayDownMax: Duration = .seconds(60)
  package var clientCrashEvery: Duration?

  package init() {}

  /// No faults but distance.
  package static let none = FaultPlan()

  package static func drawn(from random: inout SplitMix64) -> FaultPlan {
    var plan = FaultPlan()
    plan.latency = .milliseconds(random.number(in: 1..<200))
    plan.jitter = .milliseconds(random.number(in: 1..<300))
    func every(_ percent: Int, _ seconds: Range<Int>, _ random: inout SplitMix64) -> Duration? {
      let drawn = random.number(in: seconds)
      return random.chance(percent) ? .seconds(drawn) : nil
    }
    plan.cutEvery = every(80, 5..<200, &random)
    plan.stallEvery = every(60, 5..<100, &random)
    plan.stallMax = .seconds(random.number(in: 1..<60))
    plan.silentPercent = random.chance(50) ? random.number(in: 0..<60) : 0
    plan.refusedPercent = random.chance(50) ? random.number(in: 0..<60) : 0
    plan.relayRestartEvery = every(50, 60..<300, &random)
    plan.relayDownMax = .seconds(random.number(in: 1..<120))
    plan.clientCrashEvery = every(50, 30..<300, &random)
    return plan
  }
}
