import SimulationKit

/// Makes one failing storm smaller, and writes it down.
struct ShrinkRun {
  let scenario: any StormScenario
  let seed: UInt64
  let out: String?

  /// - Returns: The exit code of the storm that is left; 0 where there was nothing to make smaller.
  func run() throws(UsageError) -> Int32 {
    guard var shrinking = Shrinking(scenario, seed: seed, onProgress: { Output.talk($0) }) else {
      Output.talk("\(scenario.name) seed \(seed) does not fail: there is nothing to make smaller")
      return 0
    }
    shrinking.run()
    let text = "# \(shrinking.outcome.rule ?? "")\n\(shrinking.file.text)"
    if let out {
      try TextFile.write(text, to: out)
      Output.talk("written to \(out)")
    } else {
      Output.data(text)
    }
    return shrinking.outcome.verdict.exitCode
  }
}
