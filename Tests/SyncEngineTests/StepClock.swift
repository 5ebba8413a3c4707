import CSQLite
import Nostr
import Platform
import SyncCore
import Testing

/// A clock that a test moves by hand.
final class StepClock: SyncClock {
  private struct State {
    var uptime = Duration.zero
    var sleepers: [Sleeper] = []
    var next = 0
  }

  private struct Sleeper {
    let id: Int
    let until: Duration
    let continuation: CheckedContinuation<Void, any Error>
  }

  private let state = Lock(State())

  func now() -> Timestamp { 1_700_000_000 }

  func uptime() -> Duration { state.withLock { $0.uptime } }

  func sleep(until uptime: Duration) async throws {
    let id = state.withLock { state in
      state.next += 1
      return state.next
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let isOver = state.withLock { state -> Bool in
          guard state.uptime < uptime else { return true }
          state.sleepers.append(Sleeper(id: id, until: uptime, continuation: continuation))
          return false
        }
        if isOver {
          continuation.resume()
        } else if Task.isCancelled {
          wake(throwing: CancellationError()) { $0.id == id }
        }
      }
    } onCancel: {
      wake(throwing: CancellationError()) { $0.id == id }
    }
  }

  /// Waits until somebody waits for `time`.
  ///
  /// - Returns: Whether somebody did before long.
  func isAwaited(_ time: Duration) async -> Bool {
    for _ in 0..<1_000_000 {
      if state.withLock({ $0.sleepers.contains { $0.until == time } }) { return true }
      await Task.yield()
    }
    return false
  }

  /// Moves the clock on until `time`, at which somebody has to be waiting.
  ///
  /// - Returns: Whether somebody was.
  func step(to time: Duration) async -> Bool {
    while uptime() < time {
      guard let reached = await step(), reached <= time else { return false }
    }
    return uptime() == time
  }

  /// Moves the clock to the earliest time that somebody waits for.
  ///
  /// - Returns: That time, once somebody waits; nil where nobody did for long.
  func step() async -> Duration? {
    for _ in 0..<1_000_000 {
      let due = state.withLock { state -> Duration? in
        guard let due = state.sleepers.map(\.until).min() else { return nil }
        state.uptime = due
        return due
      }
      if let due {
        wake(throwing: nil) { $0.until <= due }
        return due
      }
      await Task.yield()
    }
    return nil
  }

  private func wake(throwing error: (any Error)?, _ isDue: (Sleeper) -> Bool) {
    let due = state.withLock { state -> [Sleeper] in
      let due = state.sleepers.filter(isDue)
      state.sleepers.removeAll(where: isDue)
      return due
    }
    for sleeper in due {
      if let error {
        sleeper.continuation.resume(throwing: error)
      } else {
        sleeper.continuation.resume()
      }
    }
  }
}

/// Somebody else's long read of a database, which pins its write-ahead log.
final class SnapshotHolder {
  private var handle: OpaquePointer?

  init(_ path: String) throws {
    let code = sqlite3_open_v2(path, &handle, SQLITE_OPEN_READONLY, nil)
    try #require(code == SQLITE_OK)
    try #require(
      sqlite3_exec(handle, "BEGIN; SELECT count(*) FROM event;", nil, nil, nil) == SQLITE_OK)
  }

  deinit { letGo() }

  func letGo() {
    sqlite3_close_v2(handle)
    handle = nil
  }
}
