import Glibc
import Platform
import SimulationKit

/// Many worlds, a seed each, on all cores.
struct Soak {
  enum Extent {
    case minutes(Int)
    case seeds(ClosedRange<UInt64>)
    /// Just these, whatever the scenarios are.
    case each([(any Scenario, UInt64)])
  }

  let scenarios: [any Scenario]
  let asJSON: Bool
  var extent = Extent.minutes(1)
  var threads = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))

  private struct Progress: Sendable {
    /// Counts the worlds that were begun.
    var next: UInt64 = 0
    var worlds = 0
    var virtualSeconds: Int64 = 0
    var failed: [Outcome] = []
    var running: Int
  }

  /// - Returns: The exit code of the worst run: safety before liveness.
  func run() -> Int32 {
    let began = Soak.now()
    let progress = Lock(Progress(running: threads))
    let finished = Semaphore()
    for _ in 0..<threads {
      startThread {
        while let (scenario, seed) = take(progress, since: began) {
          note(scenario.outcome(seed: seed), progress)
        }
        finished.signal()
      }
    }
    for _ in 0..<threads { finished.wait() }
    let end = progress.withLock { $0 }
    summarise(end, seconds: Soak.now() - began)
    return end.failed.reduce(0) { Outcome.Verdict.worse($0, $1.verdict.exitCode) }
  }

  /// The next world; nil where the time is over or there is none left.
  private func take(
    _ progress: Lock<Progress>, since began: Double
  ) -> (any Scenario, UInt64)? {
    let number = progress.withLock { progress -> UInt64 in
      defer { progress.next += 1 }
      return progress.next
    }
    if case .each(let worlds) = extent {
      return number < worlds.count ? worlds[Int(number)] : nil
    }
    let scenario = scenarios[Int(number % UInt64(scenarios.count))]
    let turn = number / UInt64(scenarios.count)
    switch extent {
    case .each: return nil
    case .minutes(let minutes):
      guard Soak.now() - began < Double(minutes * 60) else { return nil }
      // Every soak sees worlds that none before it saw.
      return (scenario, UInt64(began) &* 1_000_000 &+ turn)
    case .seeds(let seeds):
      guard turn <= seeds.upperBound - seeds.lowerBound else { return nil }
      return (scenario, seeds.lowerBound + turn)
    }
  }

  private func note(_ outcome: Outcome, _ progress: Lock<Progress>) {
    progress.withLock { progress in
      progress.worlds += 1
      progress.virtualSeconds += outcome.virtualSeconds
      if outcome.verdict != .pass { progress.failed.append(outcome) }
      if asJSON { Output.data(outcome.json) }
      guard outcome.verdict != .pass else { return }
      Output.talk(
        "\(outcome.verdict.rawValue): \(outcome.rule ?? "") (\(outcome.checker ?? ""))")
      outcome.tellReplay("\(outcome.scenario) --seed \(outcome.seed)")
    }
  }

  private func summarise(_ end: Progress, seconds: Double) {
    let aMinute = Int(Double(end.worlds) / seconds * 60)
    let speed = Int(Double(end.virtualSeconds) / seconds)
    if asJSON {
      Output.data(
        """
        {"type":"summary","worlds":\(end.worlds),"failed":\(end.failed.count),\
        "seconds":\(Int(seconds)),"worlds_per_minute":\(aMinute),\
        "virtual_per_real":\(speed),"threads":\(threads)}
        """)
    } else {
      Output.data(
        """
        \(end.worlds) worlds on \(threads) threads in \(Int(seconds)) s: \(end.failed.count) failed, \
        \(aMinute) a minute, virtual time \(speed) times real time
        """)
    }
  }

  private static func now() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}

/// Counts what was signalled, and lets one go for each.
private final class Semaphore: @unchecked Sendable {
  // Unchecked: the semaphore is the system's, made once and never moved.
  private let handle = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  init() { sem_init(handle, 0, 0) }

  deinit {
    sem_destroy(handle)
    handle.deallocate()
  }

  func signal() { sem_post(handle) }

  func wait() { while sem_wait(handle) != 0 && errno == EINTR {} }
}
