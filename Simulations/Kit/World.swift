package import Nostr
import NostrCrypto
package import RelayServer

/// One simulated world: its clock, its chance, everybody in it and everything that happens.
///
/// It runs on the thread that calls it and knows no other time, so a seed decides everything. What
/// draws from chance for one purpose has a generator of its own: a change in one part of a scenario
/// does not turn every other part around.
package final class World {
  package let seed: UInt64
  package let trace: Trace
  package private(set) var now = Duration.zero
  package private(set) var steps = 0
  package private(set) var faults: [String: Int] = [:]
  package private(set) var failure: Failure?
  package let verdicts = VerdictMemo()
  /// The wall clock at time zero.
  package let epoch = Timestamp(1_760_000_000)
  private var agenda = Agenda()

  /// A rule that was broken, or a promise that was not kept in time.
  package struct Failure: Error {
    package enum Family: String, Sendable {
      case safety, liveness
    }

    package let family: Family
    package let rule: String
    package let step: Int
    package let time: Duration
  }

  package init(seed: UInt64, trace: Trace = Trace()) {
    self.seed = seed
    self.trace = trace
  }

  package var wall: Timestamp { epoch + now.components.seconds }

  /// A generator for one purpose.
  package func generator(_ purpose: String) -> SplitMix64 {
    let digest = SHA256.hash(Array("\(seed) \(purpose)".utf8))
    let first = digest.array.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    return SplitMix64(seed: first)
  }

  // MARK: Time

  package func after(_ delay: Duration, _ run: @escaping () -> Void) {
    agenda.add(at: now + max(delay, .zero), run)
  }

  /// Runs until the world's time is `end`, until nothing is left to happen, or until a rule breaks.
  package func run(until end: Duration) {
    while failure == nil, let due = agenda.nextDue, due <= end, let item = agenda.takeFirst() {
      now = max(now, item.due)
      steps += 1
      item.run()
    }
    if failure == nil { now = max(now, end) }
  }

  /// Runs until `isDone`, looked at once a second; a broken promise where `bound` is over first.
  package func run(
    for bound: Duration, until isDone: () -> Bool, otherwise rule: @autoclosure () -> String
  ) {
    let end = now + bound
    while failure == nil && !isDone() {
      if now >= end { return fail(.liveness, rule()) }
      run(until: min(now + .seconds(1), end))
    }
  }

  /// Forgets what is still to happen, so that nothing in the world refers to itself any more.
  package func drain() { agenda.removeAll() }

  // MARK: What is told

  package func note(_ text: @autoclosure () -> String) { trace.add(now, text()) }

  package func count(fault name: String) { faults[name, default: 0] += 1 }

  /// Records a failure; the first one stands.
  package func fail(_ family: Failure.Family, _ rule: String) {
    guard failure == nil else { return }
    note("FAILURE \(family.rawValue): \(rule)")
    failure = Failure(family: family, rule: rule, step: steps, time: now)
  }

  package func check(_ holds: Bool, _ rule: @autoclosure () -> String) {
    if !holds { fail(.safety, rule()) }
  }
}
