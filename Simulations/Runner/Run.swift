import Glibc
import SimulationKit

/// One run of one scenario, told to the terminal.
struct Run {
  var scenario: any Scenario
  let asJSON: Bool
  var traceFile: String?
  var flaw: SimulatedClient.Flaw?
  var isExplaining = false
  /// Where the scenario was read from, if it was.
  var file: String?

  func code(of seed: UInt64) throws(UsageError) -> Int32 {
    let file = try openTrace()
    defer { if let file { fclose(file) } }
    let trace = Trace(
      sink: file.map { file in { bytes in _ = fwrite(bytes, 1, bytes.count, file) } })
    let outcome = scenario.outcome(seed: seed, flaw: flaw, trace: trace)
    tell(outcome, trace)
    return outcome.verdict.exitCode
  }

  private func openTrace() throws(UsageError) -> UnsafeMutablePointer<FILE>? {
    guard let traceFile else { return nil }
    guard let file = fopen(traceFile, "w") else {
      throw UsageError(
        message: "\(traceFile) cannot be written: \(String(cString: strerror(errno)))")
    }
    // What a run that never ends has done so far is to be seen as well.
    setvbuf(file, nil, _IOLBF, 0)
    return file
  }

  private func tell(_ outcome: Outcome, _ trace: Trace) {
    if asJSON {
      Output.data(outcome.json)
    } else {
      let faults = outcome.faults.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
      Output.data(
        """
        \(outcome.scenario) seed \(outcome.seed): \(outcome.verdict.rawValue), \
        \(outcome.steps) steps, \(outcome.virtualSeconds) virtual seconds, \
        faults: \(faults.isEmpty ? "none" : faults.joined(separator: ", ")), \
        trace \(outcome.traceHash)
        """)
    }
    guard let rule = outcome.rule else { return }
    for line in trace.tail { Output.talk(line) }
    if isExplaining { for line in outcome.explanation { Output.talk(line) } }
    Output.talk("broken: \(rule) (\(outcome.checker ?? ""))")
    let flaw = flaw.map { " --flaw \($0.rawValue)" } ?? ""
    outcome.tellReplay(file ?? "\(outcome.scenario) --seed \(outcome.seed)\(flaw)")
  }
}

extension Outcome {
  /// How to see a failure again.
  func tellReplay(_ arguments: String) {
    Output.talk(
      """
      scenario \(scenario), seed \(seed), step \(steps), virtual second \(virtualSeconds), \
      commit \(Commit.current)
      replay: skep-sim run \(arguments)
      """)
  }
}

extension Outcome.Verdict {
  var exitCode: Int32 {
    switch self {
    case .pass: 0
    case .safety: 2
    case .liveness: 3
    }
  }

  /// Of two runs the worse one: safety before liveness.
  static func worse(_ left: Int32, _ right: Int32) -> Int32 {
    left == 2 || right == 2 ? 2 : max(left, right)
  }
}

/// The commit of the folder in which the program runs, where that is a repository.
enum Commit {
  static var current: String {
    guard let head = line(".git/HEAD") else { return "unknown" }
    guard head.hasPrefix("ref: ") else { return head }
    return line(".git/\(head.dropFirst(5))") ?? "unknown"
  }

  private static func line(_ path: String) -> String? {
    // Whoever runs the program elsewhere is told that the commit is not known.
    (try? TextFile.read(path))?.split(separator: "\n").first.map(String.init)
  }
}

/// The seeds that once found something, and some that never did.
struct KeptSeeds {
  let file: String
  let asJSON: Bool
  let threads: Int?

  /// - Returns: The exit code of the worst run: safety before liveness.
  func run() throws(UsageError) -> Int32 {
    var soak = Soak(scenarios: [], asJSON: asJSON, extent: .each(try seeds()))
    if let threads { soak.threads = threads }
    return soak.run()
  }

  /// Lines of a scenario and a seed; `#` begins a remark.
  private func seeds() throws(UsageError) -> [(any Scenario, UInt64)] {
    var seeds: [(any Scenario, UInt64)] = []
    for line in try TextFile.read(file).split(separator: "\n") {
      let words = line.prefix { $0 != "#" }.split(separator: " ").map(String.init)
      if words.isEmpty { continue }
      guard words.count == 2 else {
        throw UsageError(message: "\(file): not a scenario and a seed: \(line)")
      }
      seeds.append((try Command.scenario(words[0]), try Command.seed(words[1])))
    }
    guard !seeds.isEmpty else { throw UsageError(message: "\(file) names no seed") }
    return seeds
  }
}

enum TextFile {
  static func read(_ path: String) throws(UsageError) -> String {
    guard let stream = fopen(path, "r") else { throw failure(path, "read") }
    defer { fclose(stream) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = fread(&chunk, 1, chunk.count, stream)
      if count == 0 { return String(decoding: bytes, as: UTF8.self) }
      bytes.append(contentsOf: chunk[..<count])
    }
  }

  static func write(_ text: String, to path: String) throws(UsageError) {
    guard let stream = fopen(path, "w") else { throw failure(path, "written") }
    defer { fclose(stream) }
    let bytes = Array(text.utf8)
    guard fwrite(bytes, 1, bytes.count, stream) == bytes.count else {
      throw failure(path, "written")
    }
  }

  private static func failure(_ path: String, _ what: String) -> UsageError {
    UsageError(message: "\(path) cannot be \(what): \(String(cString: strerror(errno)))")
  }
}

/// Where words go: data to standard output, talk to standard error.
enum Output {
  static func data(_ line: String) { write(line, to: STDOUT_FILENO) }

  static func talk(_ line: String) { write(line, to: STDERR_FILENO) }

  private static func write(_ line: String, to file: Int32) {
    let bytes = Array((line + "\n").utf8)
    var offset = 0
    while offset < bytes.count {
      let written = bytes[offset...].withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
      if written < 0 && errno == EINTR { continue }
      // A reader that has gone is no reason to fail.
      if written <= 0 { return }
      offset += written
    }
  }
}
