import RelayServer

/// The jobs that are ready to run in one world, and the chance that says which is next.
///
/// Jobs of one serial executor keep their order, as they do on a thread; all others may overtake
/// each other, as they do on several cores.
package final class JobQueue: @unchecked Sendable {
  // Unchecked: a world and everything in it belong to the one thread that runs it.
  private var loose: [UnownedJob] = []
  private var lanes: [LaneExecutor] = []
  private var random: SplitMix64

  package init(seed: UInt64) { random = SplitMix64(seed: seed) }

  package var isEmpty: Bool { loose.isEmpty && lanes.isEmpty }

  func add(_ job: UnownedJob) { loose.append(job) }

  fileprivate func isReady(_ lane: LaneExecutor) { lanes.append(lane) }

  /// Runs one of the ready jobs.
  func runOne() {
    let count = loose.count + lanes.count
    let choice = count == 1 ? 0 : random.number(in: 0..<count)
    if choice < loose.count {
      let job = loose[choice]
      loose[choice] = loose[loose.count - 1]
      loose.removeLast()
      SeededConcurrency.run(job)
    } else {
      let index = choice - loose.count
      let lane = lanes[index]
      lanes[index] = lanes[lanes.count - 1]
      lanes.removeLast()
      lane.runOne()
    }
  }
}

/// A serial executor of a world, for actors whose work would block: in here a disk takes no thread,
/// but it takes time.
final class LaneExecutor: SerialExecutor, @unchecked Sendable {
  // Unchecked: as for the world it is in.
  private let queue: JobQueue
  private let delay: (@escaping () -> Void) -> Void
  private var waiting: [UnownedJob] = []
  private var isUnderway = false

  /// - Parameter delay: Calls what it is given when the work may begin.
  init(_ queue: JobQueue, delay: @escaping (@escaping () -> Void) -> Void) {
    self.queue = queue
    self.delay = delay
  }

  func enqueue(_ job: consuming ExecutorJob) {
    waiting.append(UnownedJob(job))
    guard !isUnderway else { return }
    isUnderway = true
    delay { [self] in queue.isReady(self) }
  }

  func asUnownedSerialExecutor() -> UnownedSerialExecutor {
    UnownedSerialExecutor(ordinary: self)
  }

  fileprivate func runOne() {
    let job = waiting.removeFirst()
    job.runSynchronously(on: asUnownedSerialExecutor())
    guard !waiting.isEmpty else { return isUnderway = false }
    queue.isReady(self)
  }
}
