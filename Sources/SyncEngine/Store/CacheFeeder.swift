import EventLog
import HotCache
import SyncCore

/// Keeps what is derived from the log, the cache or the words, caught up with it.
///
/// It is told the head after every commit and pulls what is missing; several tellings while it
/// works are one. What goes wrong there stays here: ingest never waits for it to get well.
actor CacheFeeder {
  typealias CatchUp = @Sendable (_ limit: Int) async throws(CacheError) -> LogSequence

  private let name: String
  private let catchUp: CatchUp
  /// Called whenever it has caught up.
  private let rested: @Sendable () async -> Void
  private let tasks: any TaskSpawner
  private var target = LogSequence.start
  private var applied = LogSequence.start
  private var isRunning = false
  private var isClosed = false
  private var work: (any SpawnedTask)?
  private var waiters: [Waiter] = []
  private(set) var failure: CacheError?

  private struct Waiter {
    let sequence: LogSequence
    let continuation: CheckedContinuation<Void, Never>
  }

  /// Entries folded between two looks at what else there is to do.
  private static let step = 4000

  init(
    _ name: String, tasks: any TaskSpawner, catchUp: @escaping CatchUp,
    rested: @escaping @Sendable () async -> Void = {}
  ) {
    self.name = name
    self.tasks = tasks
    self.catchUp = catchUp
    self.rested = rested
  }

  /// Tells that the log reaches to `head`, and returns at once.
  func ring(_ head: LogSequence) {
    target = max(target, head)
    guard applied < target, !isRunning, !isClosed else { return }
    isRunning = true
    work = tasks.spawn(name) { [weak self] in await self?.run() }
  }

  /// Returns once the cache holds everything up to `sequence`, or cannot get there.
  func reach(_ sequence: LogSequence) async {
    ring(sequence)
    guard applied < sequence, isRunning else { return }
    await withCheckedContinuation { continuation in
      waiters.append(Waiter(sequence: sequence, continuation: continuation))
    }
  }

  /// Stops after the step that is running, and lets go everybody who waits.
  func close() async {
    isClosed = true
    await work?.finished()
    work = nil
  }

  private func run() async {
    var seen: LogSequence
    repeat {
      seen = await pull()
      await rested()
      // Whoever rang meanwhile took it to be at work.
    } while target > seen && !isClosed
    isRunning = false
    release { _ in true }
  }

  /// - Returns: The target that it looked at last.
  private func pull() async -> LogSequence {
    while applied < target && !isClosed {
      do throws(CacheError) {
        let reached = try await catchUp(Self.step)
        failure = nil
        // No step forward means that the log has nothing more to give.
        if reached <= applied { break }
        applied = reached
        release { $0 <= reached }
      } catch {
        failure = error
        break
      }
    }
    return target
  }

  private func release(_ isDue: (LogSequence) -> Bool) {
    let due = waiters.filter { isDue($0.sequence) }
    waiters.removeAll { isDue($0.sequence) }
    for waiter in due { waiter.continuation.resume() }
  }
}
