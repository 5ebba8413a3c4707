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
  case kept(KeptSeeds)
  case soak(Soak)
  case shrink(ShrinkRun)

  static let usage = """
    usage: skep-sim list [--json]
           skep-sim run SCENARIO --seed N [--json] [--trace FILE] [--explain] [--flaw NAME]
           skep-sim run FILE [--json] [--trace FILE] [--explain]
           skep-sim kept [FILE] [--threads N] [--json]
           skep-sim soak [SCENARIO]... [--minutes M | --seeds A..B] [--threads N] [--json]
           skep-sim shrink SCENARIO --seed N [--out FILE]

    FILE is a storm as shrink writes it; its name holds a slash or a dot. soak runs every storm, or
    those named, on all cores. shrink makes a failing storm smaller and prints it as a file.
    --explain tells what everybody was waiting for at a failure.
    --flaw lets every client of the two older scenarios do one thing wrong, to see that the rules
    catch it: \(SimulatedClient.Flaw.allCases.map(\.rawValue).joined(separator: ", ")).

    examples:
      skep-sim run swarm --seed 7
      skep-sim run flaky-links --seed 42 --json --trace /tmp/trace.txt
      skep-sim soak --minutes 10
      skep-sim shrink swarm --seed 7 --out swarm-7.storm
    """

  init(_ arguments: [String]) throws(UsageError) {
    var words = Words(arguments)
    if words.takeFlag("--help") || words.takeFlag("-h") {
      self = .help
      return
    }
    guard let name = words.takeWord() else { throw UsageError(message: "a command is missing") }
    let asJSON = name == "shrink" ? false : words.takeFlag("--json")
    switch name {
    case "list": self = .list(asJSON: asJSON)
    case "kept":
      let threads = try Command.threads(&words)
      self = .kept(
        KeptSeeds(
          file: words.takeWord() ?? "Simulations/seeds.txt", asJSON: asJSON, threads: threads))
    case "run": self = try Command.run(&words, asJSON: asJSON)
    case "soak": self = .soak(try Command.soak(&words, asJSON: asJSON))
    case "shrink": self = .shrink(try Command.shrink(&words))
    default: throw UsageError(message: "unknown command \(name)")
    }
    try words.finish()
  }

  private static func run(_ words: inout Words, asJSON: Bool) throws(UsageError) -> Command {
    let seed = try words.takeValue("--seed")
    let traceFile = try words.takeValue("--trace")
    let flaw = try words.takeValue("--flaw")
    let isExplaining = words.takeFlag("--explain")
    guard let name = words.takeWord() else { throw UsageError(message: "the scenario is missing") }
    var run = Run(
      scenario: Scenarios.all[0], asJSON: asJSON, traceFile: traceFile,
      flaw: try Command.flaw(flaw), isExplaining: isExplaining)
    if name.contains(where: { $0 == "/" || $0 == "." }) {
      let file = try storm(in: name)
      guard seed == nil, flaw == nil else {
        throw UsageError(message: "a kept storm has a seed of its own and no flaw")
      }
      run.scenario = file
      run.file = name
      return .run(run, seed: file.seed)
    }
    run.scenario = try scenario(name)
    guard let seed else { throw UsageError(message: "--seed is missing") }
    if flaw != nil, run.scenario is any StormScenario {
      throw UsageError(
        message: "\(name) runs the engine that ships, which has no flaw to switch on")
    }
    return .run(run, seed: try Command.seed(seed))
  }

  private static func soak(_ words: inout Words, asJSON: Bool) throws(UsageError) -> Soak {
    let minutes = try words.takeValue("--minutes")
    let seeds = try words.takeValue("--seeds")
    let threads = try threads(&words)
    var scenarios: [any Scenario] = []
    while let name = words.takeWord() { scenarios.append(try scenario(name)) }
    if scenarios.isEmpty { scenarios = Scenarios.all }
    guard minutes == nil || seeds == nil else {
      throw UsageError(message: "either --minutes or --seeds")
    }
    var soak = Soak(scenarios: scenarios, asJSON: asJSON)
    if let threads { soak.threads = threads }
    if let seeds {
      let ends = seeds.split(separator: ".", omittingEmptySubsequences: true).map(String.init)
      guard ends.count == 2, seeds.contains(".."), try seed(ends[0]) <= seed(ends[1]) else {
        throw UsageError(message: "--seeds is A..B with A not above B, not \(seeds)")
      }
      soak.extent = .seeds(try seed(ends[0])...(try seed(ends[1])))
    } else {
      soak.extent = .minutes(Int(try number(minutes ?? "1", "minutes", 1...100_000)))
    }
    return soak
  }

  private static func threads(_ words: inout Words) throws(UsageError) -> Int? {
    guard let text = try words.takeValue("--threads") else { return nil }
    return Int(try number(text, "threads", 1...256))
  }

  private static func shrink(_ words: inout Words) throws(UsageError) -> ShrinkRun {
    let out = try words.takeValue("--out")
    let seed = try words.takeValue("--seed")
    guard let name = words.takeWord() else { throw UsageError(message: "the scenario is missing") }
    guard let storm = try scenario(name) as? any StormScenario else {
      throw UsageError(message: "\(name) is no storm: it has nothing that could be made smaller")
    }
    guard let seed else { throw UsageError(message: "--seed is missing") }
    return ShrinkRun(scenario: storm, seed: try Command.seed(seed), out: out)
  }

  static func scenario(_ name: String) throws(UsageError) -> any Scenario {
    guard let scenario = Scenarios.named(name) else {
      let known = Scenarios.all.map(\.name).joined(separator: ", ")
      throw UsageError(message: "unknown scenario \(name); there are \(known)")
    }
    return scenario
  }

  static func storm(in path: String) throws(UsageError) -> RecipeFile {
    let text = try TextFile.read(path)
    do throws(RecipeFile.Malformed) {
      return try RecipeFile(text) { Scenarios.named($0) is any StormScenario }
    } catch {
      throw UsageError(message: "\(path): \(error.reason)")
    }
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

  private static func number(
    _ text: String, _ what: String, _ range: ClosedRange<UInt64>
  ) throws(UsageError) -> UInt64 {
    guard let value = UInt64(text), range.contains(value) else {
      throw UsageError(
        message:
          "--\(what) is a number from \(range.lowerBound) to \(range.upperBound), not \(text)")
    }
    return value
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
    case .kept(let kept): return try kept.run()
    case .soak(let soak): return soak.run()
    case .shrink(let shrink): return try shrink.run()
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
