package import Nostr
import NostrCrypto
package import RelayServer

/// One simulated world: its clock, its chance, everybody in it and everything that happens.
///
/// It runs on the thread that calls it and knows no other time, so a seed decides everything. What
/// draws from chance for one purpose has a generator of its own: a change in one part of a scenario
/// does not turn every other part around.
package final class World: @unchecked Sendable {
  // Unchecked: a world and everything in it belong to the one thread that runs it.
  package let seed: UInt64
  package let trace: Trace
  package private(set) var now = Duration.zero
  package private(set) var steps = 0
  package private(set) var faults: [String: Int] = [:]
  package private(set) var failure: Failure?
  package let verdicts = VerdictMemo()
  /// The wall clock at time zero.
  package let epoch = Timestamp(1_760_000_000)
  /// What everybody was waiting for at a failure.
  package var explanation: [String] = []
  /// What the actors in the world have to do now.
  package let jobs: JobQueue
  /// Looks at the world whenever time is about to move on.
  package var watch: (() -> Void)?
  /// Is told of every frame that a client sends.
  package var onFrame: ((String, [UInt8]) -> Void)?
  private var agenda = Agenda()
  private var order: SplitMix64
  private var sleepers: [UInt64: Sleeper] = [:]
  private var sleeperNext: UInt64 = 0
  private var stepsNow = 0

  /// So many steps without time moving on are a loop that waits for nothing.
  private static let stepsAtOnceMax = 2_000_000

  private struct Sleeper {
    let continuation: CheckedContinuation<Void, any Error>
  }

  /// A rule that was broken, or a promise that was not kept in time.
  package struct Failure: Error {
    package enum Family: String, Sendable {
      case safety, liveness
    }

    package let family: Family
    package let rule: String
    /// Which part of the simulation watched over it.
    package let checker: String
    package let step: Int
    package let time: Duration
  }

  package init(seed: UInt64, trace: Trace = Trace()) {
    self.seed = seed
    self.trace = trace
    jobs = JobQueue(seed: World.number(seed, "order of jobs"))
    order = SplitMix64(seed: World.number(seed, "order of events"))
  }

  package var wall: Timestamp { epoch + now.components.seconds }

  /// A generator for one purpose.
  package func generator(_ purpose: String) -> SplitMix64 {
    SplitMix64(seed: World.number(seed, purpose))
  }

  private static func number(_ seed: UInt64, _ purpose: String) -> UInt64 {
    let digest = SHA256.hash(Array("\(seed) \(purpose)".utf8))
    return digest.array.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
  }

  // MARK: Time

  package func after(_ delay: Duration, _ run: @escaping () -> Void) {
    agenda.add(at: now + max(delay, .zero), run)
  }

  /// The same for what has to be done even if the world ends before.
  func afterAll(_ delay: Duration, _ run: @escaping () -> Void) {
    agenda.add(at: now + max(delay, .zero), isOwed: true, run)
  }

  /// Runs until the world's time is `end`, until nothing is left to happen, or until a rule breaks.
  package func run(until end: Duration) {
    SeededConcurrency.run(under: jobs) {
      while failure == nil, step(until: end) {}
    }
    if failure == nil { now = max(now, end) }
  }

  /// - Returns: Whether there was anything to do.
  private func step(until end: Duration) -> Bool {
    let due = agenda.nextDue
    let isDueNow = due.map { $0 <= now } == true
    if !jobs.isEmpty, !isDueNow || !order.chance(25) {
      steps += 1
      stepsNow += 1
      if stepsNow > World.stepsAtOnceMax { fail(.liveness, "a loop that waits for nothing") }
      jobs.runOne()
      return true
    }
    if !isDueNow { watch?() }
    guard failure == nil, let due, due <= end, let item = agenda.takeFirst() else { return false }
    if due > now {
      now = due
      stepsNow = 0
    }
    steps += 1
    item.run()
    return true
  }

  /// Runs until `isDone`, looked at every so often; a broken promise where `bound` is over first.
  package func run(
    for bound: Duration, every interval: Duration = .seconds(1), until isDone: () -> Bool,
    otherwise rule: @autoclosure () -> String, file: String = #fileID
  ) {
    let end = now + bound
    while failure == nil && !isDone() {
      if now >= end { return fail(.liveness, rule(), file: file) }
      run(until: min(now + interval, end))
    }
  }

  /// Lets the actors do what they can do at once, although a rule is broken and time stands still.
  func finishJobs() {
    var left = 10_000
    while left > 0, !jobs.isEmpty {
      jobs.runOne()
      left -= 1
    }
  }

  /// Forgets what is still to happen, so that nothing in the world refers to itself any more.
  ///
  /// Whoever sleeps is woken by a cancellation, and what the actors then do is still done.
  package func drain() {
    watch = nil
    onFrame = nil
    SeededConcurrency.run(under: jobs) {
      var rounds = 0
      while rounds < 20, !jobs.isEmpty || !sleepers.isEmpty || !agenda.isEmpty {
        rounds += 1
        for id in sleepers.keys.sorted() { cancelSleep(id) }
        var steps = 0
        while !jobs.isEmpty, steps < 200_000 {
          jobs.runOne()
          steps += 1
        }
        while let item = agenda.takeFirst() { if item.isOwed { item.run() } }
      }
    }
    agenda.removeAll()
  }

  // MARK: Tasks of the world itself

  /// Starts a task that belongs to the world, such as what a user does.
  package func spawn(_ body: @escaping @Sendable () async -> Void) {
    SeededConcurrency.run(under: jobs) { _ = WorldTask(body) }
  }

  /// Waits in virtual time; throws `CancellationError` where the task is cancelled.
  func sleep(until due: Duration) async throws {
    precondition(SeededConcurrency.isBound(to: jobs), "a world was entered from another thread")
    if due <= now { return try Task.checkCancellation() }
    let id = sleeperNext
    sleeperNext += 1
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation {
        (continuation: CheckedContinuation<Void, any Error>) in
        if Task.isCancelled { return continuation.resume(throwing: CancellationError()) }
        sleepers[id] = Sleeper(continuation: continuation)
        after(due - now) { [self] in
          sleepers.removeValue(forKey: id)?.continuation.resume()
        }
      }
    } onCancel: {
      cancelSleep(id)
    }
  }

  private func cancelSleep(_ id: UInt64) {
    sleepers.removeValue(forKey: id)?.continuation.resume(throwing: CancellationError())
  }

  // MARK: What is told

  package func note(_ text: @autoclosure () -> String) { trace.add(now, text()) }

  package func count(fault name: String) { faults[name, default: 0] += 1 }

  /// Records a failure; the first one stands.
  package func fail(
    _ family: Failure.Family, _ rule: String, file: String = #fileID
  ) {
    guard failure == nil else { return }
    note("FAILURE \(family.rawValue): \(rule)")
    let name = file.split(separator: "/").last?.split(separator: ".").first.map(String.init)
    failure = Failure(
      family: family, rule: rule, checker: name ?? file, step: steps, time: now)
  }

  package func check(
    _ holds: Bool, _ rule: @autoclosure () -> String, file: String = #fileID
  ) {
    if !holds { fail(.safety, rule(), file: file) }
  }
}
