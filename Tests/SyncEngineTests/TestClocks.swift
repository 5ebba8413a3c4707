import Nostr
import Platform
import SyncCore

/// A clock that runs faster than the system's, so that real tasks and channels live through minutes
/// in seconds.
final class FastClock: SyncClock {
  private let base: any SyncClock
  private let factor: Int
  private let origin: Duration
  private let wallOrigin: Timestamp

  init(_ base: any SyncClock, factor: Int) {
    self.base = base
    self.factor = factor
    origin = base.uptime()
    wallOrigin = base.now()
  }

  func uptime() -> Duration { origin + (base.uptime() - origin) * factor }

  func now() -> Timestamp { wallOrigin + (uptime() - origin).components.seconds }

  func sleep(until uptime: Duration) async throws {
    try await base.sleep(until: origin + (uptime - origin) / factor)
  }
}

/// A clock that can be put forward: who sleeps past its time wakes at once.
final class LeapClock: SyncClock {
  private struct Sleeper {
    let due: Duration
    let continuation: CheckedContinuation<Void, Never>
  }

  private struct State {
    var leapt: Duration = .zero
    var sleepers: [UInt64: Sleeper] = [:]
    var next: UInt64 = 0
  }

  private let base: any SyncClock
  private let state = Lock(State())

  init(_ base: any SyncClock) { self.base = base }

  func uptime() -> Duration { base.uptime() + state.withLock { $0.leapt } }

  func now() -> Timestamp { base.now() + state.withLock { $0.leapt.components.seconds } }

  func leap(by span: Duration) {
    let now = base.uptime()
    let due = state.withLock { state -> [Sleeper] in
      state.leapt += span
      let time = now + state.leapt
      let due = state.sleepers.filter { $0.value.due <= time }
      for id in due.keys { state.sleepers[id] = nil }
      return due.sorted { $0.value.due < $1.value.due }.map(\.value)
    }
    for sleeper in due { sleeper.continuation.resume() }
  }

  func sleep(until uptime: Duration) async throws {
    let id = state.withLock { state -> UInt64 in
      state.next += 1
      return state.next
    }
    let base = base
    let timer = Task { [weak self] in
      guard let leapt = self?.state.withLock({ $0.leapt }) else { return }
      // A leap wakes the sleeper itself.
      guard (try? await base.sleep(until: uptime - leapt)) != nil else { return }
      self?.wake(id)
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state -> Bool in
          if Task.isCancelled || base.uptime() + state.leapt >= uptime { return true }
          state.sleepers[id] = Sleeper(due: uptime, continuation: continuation)
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      wake(id)
    }
    timer.cancel()
    try Task.checkCancellation()
  }

  private func wake(_ id: UInt64) {
    let sleeper = state.withLock { $0.sleepers.removeValue(forKey: id) }
    sleeper?.continuation.resume()
  }
}
