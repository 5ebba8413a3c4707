import SyncCore

/// Those who wait for something to change.
struct Waiters {
  private var continuations: [UInt64: CheckedContinuation<Void, Never>] = [:]
  private var next: UInt64 = 0

  mutating func add(_ continuation: CheckedContinuation<Void, Never>) -> UInt64 {
    next += 1
    continuations[next] = continuation
    return next
  }

  /// Lets one go, if it still waits.
  mutating func release(_ id: UInt64) {
    continuations.removeValue(forKey: id)?.resume()
  }

  /// Lets everyone look again, in the order in which they came.
  mutating func releaseAll() {
    let all = continuations.sorted { $0.key < $1.key }
    continuations = [:]
    for (_, continuation) in all { continuation.resume() }
  }
}
