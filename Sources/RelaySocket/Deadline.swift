package import SyncCore

/// Runs `body`, and cancels it when `limit` has passed.
///
/// `body` must end soon after it is cancelled; until then nothing is returned.
package func withDeadline<Value: Sendable>(
  _ limit: Duration,
  _ body: @escaping @Sendable () async -> Result<Value, TransportError>
) async throws(TransportError) -> Value {
  let result = await withTaskGroup(of: Result<Value, TransportError>?.self) { group in
    group.addTask { await body() }
    group.addTask {
      do {
        try await Task.sleep(for: limit)
        return .failure(.timedOut)
      } catch {
        return nil
      }
    }
    var first: Result<Value, TransportError>?
    for await result in group {
      guard first == nil, let result else { continue }
      first = result
      group.cancelAll()
    }
    return first
  }
  return try (result ?? .failure(.cancelled)).get()
}
