package import SyncCore

/// Tasks of the concurrency runtime.
package struct SystemTasks: TaskSpawner {
  package init() {}

  package func spawn(_ name: String, _ body: @escaping @Sendable () async -> Void)
    -> any SpawnedTask
  {
    SystemTask(task: Task.detached(name: name) { await body() })
  }
}

private struct SystemTask: SpawnedTask {
  let task: Task<Void, Never>

  func cancel() { task.cancel() }

  func finished() async { await task.value }
}
