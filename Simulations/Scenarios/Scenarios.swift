package import SimulationKit

/// Every scenario, by name.
package enum Scenarios {
  package static let all: [any Scenario] = [CappedRelay(), FlakyLinks()]

  package static func named(_ name: String) -> (any Scenario)? {
    all.first { $0.name == name }
  }
}
