import HotCache
import Platform
import SyncCore
import Testing

@testable import SyncEngine

@Suite struct CacheFeederTests {
  /// Keeps what it spawns, to be waited for.
  private final class KeptTasks: TaskSpawner {
    private let kept = Lock<[any SpawnedTask]>([])

    func spawn(_ name: String, _ body: @escaping @Sendable () async -> Void) -> any SpawnedTask {
      let task = PlainTasks().spawn(name, body)
      kept.withLock { $0.append(task) }
      return task
    }

    func finished() async { for task in kept.withLock({ $0 }) { await task.finished() } }
  }

  @Test func `what is told while it comes to rest is fed too`() async {
    let head = Lock(LogSequence(1))
    let fed = Lock<[LogSequence]>([])
    let own = Lock<CacheFeeder?>(nil)
    let tasks = KeptTasks()
    let feeder = CacheFeeder(
      "feeder", tasks: tasks,
      catchUp: { _ throws(CacheError) in
        let reached = head.withLock { $0 }
        fed.withLock { $0.append(reached) }
        return reached
      },
      rested: {
        guard head.withLock({ $0 }) == LogSequence(1) else { return }
        head.withLock { $0 = LogSequence(2) }
        await own.withLock { $0 }?.ring(LogSequence(2))
      })
    own.withLock { $0 = feeder }
    await feeder.ring(LogSequence(1))
    await tasks.finished()
    #expect(fed.withLock { $0 } == [LogSequence(1), LogSequence(2)])
    own.withLock { $0 = nil }
  }

  @Test func `what cannot be fed is not tried again before it is told of anew`() async {
    let tries = Lock(0)
    let tasks = KeptTasks()
    let feeder = CacheFeeder(
      "feeder", tasks: tasks,
      catchUp: { _ throws(CacheError) in
        tries.withLock { $0 += 1 }
        throw CacheError.unavailable("no room")
      })
    await feeder.reach(LogSequence(1))
    await tasks.finished()
    #expect(tries.withLock { $0 } == 1)
    #expect(await feeder.failure == .unavailable("no room"))
    await feeder.reach(LogSequence(1))
    #expect(tries.withLock { $0 } == 2)
  }
}
