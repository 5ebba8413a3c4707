import SimulationKit
import SimulationScenarios
import Testing

@Suite struct ScenarioTests {
  private static let seeds: [UInt64] = Array(1...12)

  @Test(arguments: seeds)
  func `a walk behind page caps calls complete only what is`(seed: UInt64) {
    let outcome = CappedRelay().outcome(seed: seed)
    #expect(
      outcome.verdict == .pass,
      "\(outcome.rule ?? ""); replay: skep-sim run capped-relay --seed \(seed)")
  }

  @Test(arguments: seeds)
  func `over flaky links every message arrives once, and all agree once they heal`(seed: UInt64) {
    let outcome = FlakyLinks().outcome(seed: seed)
    #expect(
      outcome.verdict == .pass,
      "\(outcome.rule ?? ""); replay: skep-sim run flaky-links --seed \(seed)")
  }

  /// The twin: a rule that no fault of a client can break would prove nothing.
  @Test(arguments: SimulatedClient.Flaw.allCases)
  func `a client that does wrong is caught`(flaw: SimulatedClient.Flaw) {
    let scenario: any Scenario = flaw == .believesTooEarly ? FlakyLinks() : CappedRelay()
    let outcomes = ScenarioTests.seeds.map { scenario.outcome(seed: $0, flaw: flaw) }
    #expect(outcomes.contains { $0.verdict == .safety })
    #expect(outcomes.allSatisfy { $0.verdict != .pass || $0.rule == nil })
  }

  @Test func `the seeds draw different faults, and all kinds of them`() {
    let outcomes = ScenarioTests.seeds.map { FlakyLinks().outcome(seed: $0) }
    let kinds = Set(outcomes.flatMap { $0.faults.keys })
    #expect(
      kinds == [
        "cut", "silent-cut", "stall", "refused-connection", "relay-restart", "client-crash",
      ])
    #expect(Set(outcomes.map(\.traceHash)).count == outcomes.count)
  }

  @Test(arguments: ["capped-relay", "flaky-links"])
  func `the same seed gives the same trace`(name: String) throws {
    let scenario = try #require(Scenarios.named(name))
    var lines: [[UInt8]] = []
    var again: [[UInt8]] = []
    let first = scenario.outcome(seed: 5, trace: Trace { lines.append($0) })
    let second = scenario.outcome(seed: 5, trace: Trace { again.append($0) })
    #expect(first == second)
    #expect(lines == again && !lines.isEmpty)
    #expect(scenario.outcome(seed: 6).traceHash != first.traceHash)
  }
}
