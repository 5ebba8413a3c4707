import Platform

/// Ends a long statement from another thread.
final class Interruption: Sendable {
  private struct State {
    var isStopped = false
    var database: Connection?
  }

  private let state = Lock(State())

  var isStopped: Bool { state.withLock { $0.isStopped } }

  /// Ends what runs now, and whatever would begin later.
  func stop() {
    state.withLock { state in
      state.isStopped = true
      state.database?.interrupt()
    }
  }

  /// Lets `body` run statements on a connection that `stop` may interrupt.
  func run<Result>(
    _ database: Connection, _ body: () throws(LogError) -> Result
  ) throws(LogError) -> Result {
    state.withLock { $0.database = $0.isStopped ? nil : database }
    if isStopped { throw LogError.closed }
    // The connection is closed only after this, so that none is interrupted that is gone.
    defer { state.withLock { $0.database = nil } }
    return try body()
  }
}
