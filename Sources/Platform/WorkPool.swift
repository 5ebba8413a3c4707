import Glibc

/// Where work that a batch can be cut into is run.
///
/// The program brings threads (`WorkPool`), the simulator runs everything in order on its own
/// thread (`InlineWork`); the callers cannot tell the difference, because results are placed by
/// index and never by completion.
public protocol ParallelWork: Sendable {
  /// How many pieces are worth making at once.
  var width: Int { get }

  /// Runs `body` for every index in `0..<count` and returns when all have ended.
  func run(count: Int, _ body: @escaping @Sendable (Int) -> Void) async
}

/// Runs every piece in index order on the caller's own thread.
public struct InlineWork: ParallelWork {
  public init() {}

  public var width: Int { 1 }

  public func run(count: Int, _ body: @escaping @Sendable (Int) -> Void) async {
    for index in 0..<max(count, 0) { body(index) }
  }
}

/// A fixed set of threads for work that keeps a core busy, such as checking signatures.
///
/// It stands beside the cooperative pool, so that a large batch cannot delay sockets and timers.
public final class WorkPool: ParallelWork {
  public let width: Int
  private let lanes: [ThreadExecutor]

  /// - Parameter width: The number of threads; the machine's core count when nil, at least 1.
  public init(width: Int? = nil) {
    self.width = max(1, width ?? Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
    lanes = (0..<self.width).map { _ in ThreadExecutor() }
  }

  public func run(count: Int, _ body: @escaping @Sendable (Int) -> Void) async {
    guard count > 0 else { return }
    let next = Lock(0)
    await withTaskGroup(of: Void.self) { group in
      for lane in lanes.prefix(count) {
        group.addTask {
          await WorkLane(executor: lane).drain(next: next, count: count, body)
        }
      }
    }
  }
}

/// One worker's turn at a batch, on that worker's thread.
private actor WorkLane {
  private let executor: ThreadExecutor

  init(executor: ThreadExecutor) { self.executor = executor }

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  func drain(next: Lock<Int>, count: Int, _ body: @Sendable (Int) -> Void) {
    while true {
      let index = next.withLock { value -> Int in
        defer { value += 1 }
        return value
      }
      if index >= count { return }
      body(index)
    }
  }
}
