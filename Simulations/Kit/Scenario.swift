/// One story of faults and promises, told anew by every seed.
package protocol Scenario: Sendable {
  var name: String { get }
  /// One line for `list`.
  var summary: String { get }

  /// Runs to the end or to the first broken rule, which the world then holds.
  ///
  /// - Parameter flaw: What the clients do wrong; nil in earnest, set by the tests that show that
  ///   the scenario can fail.
  func run(in world: World, flaw: SimulatedClient.Flaw?)
}

/// What came of one run.
package struct Outcome: Sendable, Hashable {
  package let scenario: String
  package let seed: UInt64
  package let steps: Int
  package let virtualSeconds: Int64
  package let faults: [String: Int]
  package let verdict: Verdict
  package let rule: String?
  /// Which checker found it.
  package let checker: String?
  package let traceHash: String
  /// What everybody was waiting for when the rule broke.
  package let explanation: [String]

  package enum Verdict: String, Sendable {
    case pass, safety, liveness
  }

  /// The line that the runner prints.
  package var json: String {
    let counts = faults.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }
    return """
      {"scenario":"\(scenario)","seed":\(seed),"steps":\(steps),\
      "virtual_seconds":\(virtualSeconds),"faults":{\(counts.joined(separator: ","))},\
      "verdict":"\(verdict.rawValue)","trace_hash":"\(traceHash)"}
      """
  }
}

extension Scenario {
  /// Runs the scenario for one seed in a world of its own.
  package func outcome(
    seed: UInt64, flaw: SimulatedClient.Flaw? = nil, trace: Trace = Trace()
  ) -> Outcome {
    let world = World(seed: seed, trace: trace)
    // All of it under the world's own queue: whatever resumes somebody must do so in there.
    SeededConcurrency.run(under: world.jobs) {
      run(in: world, flaw: flaw)
      world.drain()
    }
    let verdict: Outcome.Verdict =
      switch world.failure?.family {
      case nil: .pass
      case .safety: .safety
      case .liveness: .liveness
      }
    return Outcome(
      scenario: name, seed: seed, steps: world.steps, virtualSeconds: world.now.components.seconds,
      faults: world.faults, verdict: verdict, rule: world.failure?.rule,
      checker: world.failure?.checker, traceHash: trace.finish(),
      explanation: world.explanation)
  }
}
