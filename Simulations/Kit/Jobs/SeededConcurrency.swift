import Glibc
@_spi(ExperimentalCustomExecutors) @_spi(ExperimentalScheduling) import _Concurrency

/// Puts all of Swift's concurrency under the world that runs on the calling thread.
///
/// This is the one place that uses the runtime's custom executors, which are not public yet. A
/// thread on which a world runs carries that world's `JobQueue`; whatever is spawned there, by
/// whomever, lands in it. Every other thread goes on as before, so worlds may run beside one another
/// and beside tests.
enum SeededConcurrency {
  /// Runs `body` with the calling thread's jobs going to `queue`.
  static func run<Result>(under queue: JobQueue, _ body: () -> Result) -> Result {
    precondition(isSound, "this runtime does not hand its jobs to the simulation")
    return bind(queue, body)
  }

  /// Runs one job that `JobQueue` was given by the global executor.
  static func run(_ job: UnownedJob) {
    job.runSynchronously(on: GlobalExecutor.shared.asUnownedTaskExecutor())
  }

  /// Whether the calling thread is that of the queue's world.
  static func isBound(to queue: JobQueue) -> Bool { current === queue }

  private static func bind<Result>(_ queue: JobQueue, _ body: () -> Result) -> Result {
    let before = pthread_getspecific(threadKey)
    pthread_setspecific(threadKey, Unmanaged.passUnretained(queue).toOpaque())
    defer { pthread_setspecific(threadKey, before) }
    return body()
  }

  private static let threadKey: pthread_key_t = {
    var key = pthread_key_t()
    pthread_key_create(&key, nil)
    return key
  }()

  fileprivate static var current: JobQueue? {
    pthread_getspecific(threadKey).map { Unmanaged<JobQueue>.fromOpaque($0).takeUnretainedValue() }
  }

  /// Installs the executors once, and looks whether everything that the engine uses really lands in
  /// the queue of the calling thread: a runtime in which one of them escapes would make runs that
  /// differ from one another for no reason that anybody could see.
  private static let isSound: Bool = {
    _createExecutors(factory: Factory.self)
    let queue = JobQueue(seed: 1)
    let probe = Probe()
    return bind(queue) {
      Task { await probe.run() }
      var steps = 0
      while !queue.isEmpty, steps < 10_000 {
        queue.runOne()
        steps += 1
      }
      return probe.isDone.value && steps > 5
    }
  }()
}

private struct Factory: ExecutorFactory {
  static var mainExecutor: any MainExecutor { PlatformExecutorFactory.mainExecutor }
  static var defaultExecutor: any TaskExecutor { GlobalExecutor.shared }
}

private final class GlobalExecutor: TaskExecutor {
  static let shared = GlobalExecutor()

  func enqueue(_ job: consuming ExecutorJob) {
    guard let queue = SeededConcurrency.current else {
      return PlatformExecutorFactory.defaultExecutor.enqueue(job)
    }
    queue.add(UnownedJob(job))
  }
}

/// Uses each form of concurrency that the engine uses, and notes when it came through.
private actor Probe {
  // Unchecked: one thread runs the probe, as it runs everything of a world.
  final class Flag: @unchecked Sendable { var value = false }

  nonisolated let isDone = Flag()
  private var sum = 0

  func run() async {
    async let one = add(1)
    _ = await one
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<3 { group.addTask { _ = await self.add(number) } }
    }
    let (stream, bell) = AsyncStream<Int>.makeStream(bufferingPolicy: .bufferingNewest(4))
    Task {
      await Task.yield()
      bell.yield(1)
      bell.finish()
    }
    for await number in stream { sum += number }
    await withCheckedContinuation { continuation in Task { continuation.resume() } }
    isDone.value = sum == 5
  }

  private func add(_ number: Int) -> Int {
    sum += number
    return sum
  }
}
