import Glibc

/// A serial executor with one thread of its own, for actors whose work blocks (SQLite, LMDB).
///
/// Blocking on the cooperative pool of a two-core machine stops every other actor, so each store
/// gets a thread. The queue holds only jobs of actors that wait for an answer, so it is bounded by
/// the number of callers. The thread ends when the executor is released.
public final class ThreadExecutor: SerialExecutor {
  private let queue: JobQueue

  public init() {
    queue = JobQueue()
    startThread { [queue] in queue.runUntilStopped() }
  }

  deinit { queue.stop() }

  public func enqueue(_ job: consuming ExecutorJob) {
    queue.push(UnownedJob(job), on: asUnownedSerialExecutor())
  }

  public func asUnownedSerialExecutor() -> UnownedSerialExecutor {
    UnownedSerialExecutor(ordinary: self)
  }
}

/// The jobs of one executor, and the condition its thread waits on.
private final class JobQueue: @unchecked Sendable {
  // Unchecked: all state is touched only while `mutex` is held.
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private var jobs: [(job: UnownedJob, executor: UnownedSerialExecutor)] = []
  private var isStopped = false

  init() {
    pthread_mutex_init(mutex, nil)
    pthread_cond_init(condition, nil)
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  func push(_ job: UnownedJob, on executor: UnownedSerialExecutor) {
    pthread_mutex_lock(mutex)
    jobs.append((job, executor))
    pthread_cond_signal(condition)
    pthread_mutex_unlock(mutex)
  }

  func stop() {
    pthread_mutex_lock(mutex)
    isStopped = true
    pthread_cond_signal(condition)
    pthread_mutex_unlock(mutex)
  }

  func runUntilStopped() {
    while true {
      pthread_mutex_lock(mutex)
      while jobs.isEmpty && !isStopped { pthread_cond_wait(condition, mutex) }
      let batch = jobs
      jobs.removeAll(keepingCapacity: true)
      pthread_mutex_unlock(mutex)
      if batch.isEmpty { return }
      for (job, executor) in batch { job.runSynchronously(on: executor) }
    }
  }
}

/// Starts a detached thread that runs `body` and ends: for a call that blocks and has no actor.
package func startThread(_ body: @escaping @Sendable () -> Void) {
  let box = Unmanaged.passRetained(ThreadBody(body))
  var thread = pthread_t()
  var attributes = pthread_attr_t()
  pthread_attr_init(&attributes)
  pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
  let started = pthread_create(
    &thread, &attributes,
    { argument in
      guard let argument else { return nil }
      Unmanaged<ThreadBody>.fromOpaque(argument).takeRetainedValue().run()
      return nil
    }, box.toOpaque())
  pthread_attr_destroy(&attributes)
  precondition(started == 0, "a thread could not be started: \(started)")
}

private final class ThreadBody: Sendable {
  let run: @Sendable () -> Void

  init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}
