package import SimulationKit

/// Every scenario, by name.
package enum Scenarios {
  package static let all: [any Scenario] =
    ([CappedRelay(), FlakyLinks()] + storms).sorted { $0.name < $1.name }

  private static let storms: [any Scenario] = [
    AuthMaze(), CacheVandal(), Calm(), ClockChaos(), CrashLoop(), DeletionsFirst(), DenseSeconds(),
    DiskFilling(),
    FlappingRelay(), HalfOpenNight(), LateArrivals(), LongOfflineWriter(), LyingRelay(),
    NegentropyMaze(), PowerLoss(), QuotaStorm(), RelayThatForgets(), Swarm(), ThreeReplicas(),
  ]

  package static func named(_ name: String) -> (any Scenario)? {
    all.first { $0.name == name }
  }
}
