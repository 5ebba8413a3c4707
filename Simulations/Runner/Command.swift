import SimulationKit
import SimulationScenarios

struct UsageError: Error {
  let message: String
}

/// What the arguments ask for.
enum Command {
  case help
  case list(asJSON: Bool)
  case run(Run, seed: UInt64)
  case kept(file: String, asJSON: Bool)

  static let usage = """
    usage: skep-sim list [--json]
           skep-sim run SCENARIO --seed N [--json] [--trace FILE] [--flaw NAME]
           skep-sim kept [FILE] [--json]

    --flaw lets every client do one thing wrong, to see that the rules catch it:
    \(SimulatedClient.Flaw.allCases.map(\.rawValue).joined(separator: ", ")).

    examples:
      skep-sim run capped-relay --seed 7
      skep-sim run flaky-links --seed 42 --json --trace /tmp/trace.txt
    """

  init(_ arguments: [String]) throws(UsageError) {
    var words = Words(arguments)
    if words.takeFlag("--help") || words.takeFlag("-h") {
      self = .help
      return
    }
    let asJSON = words.takeFlag("--json")
    let seed = try words.takeValue("--seed")
    let traceFile = try words.takeValue("--trace")
    let flaw = try words.takeValue("--flaw")
    guard let name = words.takeWord() else { throw UsageError(message: "a command is missing") }
    switch name {
    case "list": self = .list(asJSON: asJSON)
    case "kept": self = .kept(file: words.takeWord() ?? "Simulations/seeds.txt", asJSON: asJSON)
    case "run":
      guard let scenarioName = words.takeWord() else {
        throw UsageError(message: "the scenario is missing")
      }
      let scenario = try Command.scenario(scenarioName)
      guard let seed else { throw UsageError(message: "--seed is missing") }
      let run = Run(
        scenario: scenario, asJSON: asJSON, traceFile: traceFile, flaw: try Command.flaw(flaw))
      self = .run(run, seed: try Command.seed(seed))
    default: throw UsageError(message: "unknown command \(name)")
    }
    if case .run = self {
    } else if seed != nil || traceFile != nil || flaw != nil {
      throw UsageError(message: "--seed, --trace and --flaw belong to run")
    }
    try words.finish()
  }

  static func scenario(_ name: String) throws(UsageError) -> any Scenario {
    guard let scenario = Scenarios.named(name) else {
      let known = Scenarios.all.map(\.name).joined(separator: ", ")
      throw UsageError(message: "unknown scenario \(name); there are \(known)")
    }
    return scenario
  }

  static func flaw(_ text: String?) throws(UsageError) -> SimulatedClient.Flaw? {
    guard let text else { return nil }
    guard let flaw = SimulatedClient.Flaw(rawValue: text) else {
      throw UsageError(message: "unknown flaw \(text)")
    }
    return flaw
  }

  static func seed(_ text: String) throws(UsageError) -> UInt64 {
    guard !text.isEmpty, text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }),
      let seed = UInt64(text)
    else { throw UsageError(message: "a seed is a number from 0 to \(UInt64.max), not \(text)") }
    return seed
  }

  /// - Returns: The exit code.
  func run() throws(UsageError) -> Int32 {
    switch self {
    case .help:
      Output.data(Command.usage)
      return 0
    case .list(let asJSON):
      for scenario in Scenarios.all {
        Output.data(
          asJSON
            ? "{\"scenario\":\"\(scenario.name)\",\"summary\":\"\(scenario.summary)\"}"
            : "\(scenario.name)\t\(scenario.summary)")
      }
      return 0
    case .run(let run, let seed): return try run.code(of: seed)
    case .kept(let file, let asJSON): return try KeptSeeds(file: file, asJSON: asJSON).run()
    }
  }
}

/// Arguments that are taken one by one; what is left at the end was not understood.
struct Words {
  private var left: [String]

  init(_ arguments: [String]) { left = arguments }

  mutating func takeFlag(_ name: String) -> Bool {
    guard let index = left.firstIndex(of: name) else { return false }
    left.remove(at: index)
    return true
  }

  mutating func takeValue(_ name: String) throws(UsageError) -> String? {
    guard let index = left.firstIndex(of: name) else { return nil }
    guard index + 1 < left.count else { throw UsageError(message: "\(name) needs a value") }
    defer { left.removeSubrange(index...index + 1) }
    return left[index + 1]
  }

  mutating func takeWord() -> String? {
    guard let index = left.firstIndex(where: { !$0.hasPrefix("-") }) else { return nil }
    return left.remove(at: index)
  }

  func finish() throws(UsageError) {
    if let word = left.first { throw UsageError(message: "not understood: \(word)") }
  }
}
