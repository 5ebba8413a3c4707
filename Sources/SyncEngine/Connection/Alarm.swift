import SyncCore

/// One wake-up call at the earliest time that was asked for.
struct Alarm {
  private var due: Duration?
  private var task: (any SpawnedTask)?

  /// Makes sure that `ring` is called at `time` or before; a call that comes too early is harmless.
  mutating func set(
    _ time: Duration?, _ name: String, _ ports: Ports,
    ring: @escaping @Sendable () async -> Void
  ) {
    guard let time else { return cancel() }
    if let due, due <= time { return }
    task?.cancel()
    due = time
    let clock = ports.clock
    task = ports.tasks.spawn(name) {
      // A cancelled sleep means that another alarm has taken over.
      guard (try? await clock.sleep(until: time)) != nil else { return }
      await ring()
    }
  }

  /// To be called first when it rings.
  mutating func rang() {
    due = nil
    task = nil
  }

  mutating func cancel() {
    task?.cancel()
    rang()
  }
}
