import Nostr
import Testing

/// The scenarios that run the machines without the actors.
@Suite struct ScenarioTests {
  private func soak(_ scenario: String) throws -> Simulator.Finished {
    try Simulator.run("soak", scenario, "--seeds", "1..12", "--threads", "1", "--json")
  }

  @Test func `a walk behind page caps calls complete only what is`() throws {
    let soak = try soak("capped-relay")
    #expect(soak.code == 0, "\(soak.talk)")
    #expect(try soak.worlds().count == 12)
  }

  @Test func `over flaky links every message arrives once, and all agree once they heal`() throws {
    let soak = try soak("flaky-links")
    #expect(soak.code == 0, "\(soak.talk)")
    let worlds = try soak.worlds()
    #expect(
      worlds.reduce(into: []) { $0.formUnion($1.faults) } == [
        "cut", "silent-cut", "stall", "refused-connection", "relay-restart", "client-crash",
      ])
    #expect(Set(worlds.map(\.traceHash.string)).count == 12, "the seeds draw different faults")
  }

  /// The twin: a rule that no fault of a client can break would prove nothing.
  @Test(arguments: [
    ("capped-relay", "proves-too-much"), ("capped-relay", "loses-events"),
    ("flaky-links", "believes-too-early"),
  ])
  func `a client that does wrong is caught`(scenario: String, flaw: String) throws {
    let codes = try (1...12).map {
      try Simulator.run("run", scenario, "--seed", "\($0)", "--flaw", flaw).code
    }
    #expect(codes.contains(2))
    #expect(codes.allSatisfy { [0, 2, 3].contains($0) })
  }
}
