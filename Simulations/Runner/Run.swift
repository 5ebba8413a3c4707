import Glibc
import SimulationKit

/// One run of one scenario, told to the terminal.
struct Run {
  let scenario: any Scenario
  let asJSON: Bool
  var traceFile: String?
  var flaw: SimulatedClient.Flaw?

  func code(of seed: UInt64) throws(UsageError) -> Int32 {
    let file = try openTrace()
    defer { if let file { fclose(file) } }
    let trace = Trace(
      sink: file.map { file in { bytes in _ = fwrite(bytes, 1, bytes.count, file) } })
    let outcome = scenario.outcome(seed: seed, flaw: flaw, trace: trace)
    tell(outcome, trace)
    switch outcome.verdict {
    case .pass: return 0
    case .safety: return 2
    case .liveness: return 3
    }
  }

  private func openTrace() throws(UsageError) -> UnsafeMutablePointer<FILE>? {
    guard let traceFile else { return nil }
    guard let file = fopen(traceFile, "w") else {
      throw UsageError(
        message: "\(traceFile) cannot be written: \(String(cString: strerror(errno)))")
    }
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
    Output.talk(
      """
      broken: \(rule)
      scenario \(outcome.scenario), seed \(outcome.seed), step \(outcome.steps), \
      virtual second \(outcome.virtualSeconds)
      replay: skep-sim run \(outcome.scenario) --seed \(outcome.seed)
      """)
  }
}

/// The seeds that once found something, and some that never did.
struct KeptSeeds {
  let file: String
  let asJSON: Bool

  /// - Returns: The exit code of the worst run: safety before liveness.
  func run() throws(UsageError) -> Int32 {
    var worst: Int32 = 0
    for (scenario, seed) in try seeds() {
      let code = try Run(scenario: scenario, asJSON: asJSON).code(of: seed)
      if code != 0 { worst = worst == 2 ? 2 : code == 2 ? 2 : max(worst, code) }
    }
    return worst
  }

  /// Lines of a scenario and a seed; `#` begins a remark.
  private func seeds() throws(UsageError) -> [(any Scenario, UInt64)] {
    var seeds: [(any Scenario, UInt64)] = []
    for line in try text().split(separator: "\n") {
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

  private func text() throws(UsageError) -> String {
    guard let stream = fopen(file, "r") else {
      throw UsageError(message: "\(file) cannot be read: \(String(cString: strerror(errno)))")
    }
    defer { fclose(stream) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = fread(&chunk, 1, chunk.count, stream)
      if count == 0 { return String(decoding: bytes, as: UTF8.self) }
      bytes.append(contentsOf: chunk[..<count])
    }
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
