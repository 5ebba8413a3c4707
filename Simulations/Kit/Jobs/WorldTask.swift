import SyncCore

/// A task in a world: its jobs go where the thread that starts it is bound to.
struct WorldTask: SpawnedTask {
  private let task: Task<Void, Never>

  init(_ body: @escaping @Sendable () async -> Void) {
    task = Task { await body() }
  }

  func cancel() { task.cancel() }

  func finished() async { await task.value }
}

/// Spawns tasks in the world whose thread asks.
struct WorldTasks: TaskSpawner {
  func spawn(_ name: String, _ body: @escaping @Sendable () async -> Void) -> any SpawnedTask {
    WorldTask(body)
  }
}
