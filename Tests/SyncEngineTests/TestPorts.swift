import Nostr
import Platform
import RelaySocket
import SyncCore

/// The system's clock with a wall time that can be moved: a wrong clock, or a machine that slept.
final class MovingClock: SyncClock {
  private let system = SystemClock()
  private let offset: Lock<Int64>

  init(offset: Int64 = 0) { self.offset = Lock(offset) }

  func move(by seconds: Int64) { offset.withLock { $0 += seconds } }

  func now() -> Timestamp { system.now() + offset.withLock { $0 } }

  func uptime() -> Duration { system.uptime() }

  func sleep(until uptime: Duration) async throws { try await system.sleep(until: uptime) }
}

/// Tasks that can be ended by name behind everybody's back.
final class FragileTasks: TaskSpawner {
  private let system = SystemTasks()
  private let running = Lock<[(name: String, task: any SpawnedTask)]>([])

  func spawn(_ name: String, _ body: @escaping @Sendable () async -> Void) -> any SpawnedTask {
    let task = system.spawn(name, body)
    running.withLock { $0.append((name: name, task: task)) }
    return task
  }

  func kill(_ name: String) {
    for entry in running.withLock({ $0 }) where entry.name.hasPrefix(name) { entry.task.cancel() }
  }
}

/// Tasks that are counted by name.
final class CountedTasks: TaskSpawner {
  private let system = SystemTasks()
  private let counts = Lock<[String: Int]>([:])

  func spawn(_ name: String, _ body: @escaping @Sendable () async -> Void) -> any SpawnedTask {
    counts.withLock { $0[name, default: 0] += 1 }
    return system.spawn(name, body)
  }

  func count(_ name: String) -> Int { counts.withLock { $0[name] ?? 0 } }
}

/// A transport that tells of every ping.
final class PingedTransport: Transport {
  let pings: AsyncStream<Void>
  private let inner: any Transport
  private let pinged: AsyncStream<Void>.Continuation

  init(_ inner: any Transport) {
    self.inner = inner
    (pings, pinged) = AsyncStream.makeStream()
  }

  func open(
    _ url: RelayURL, frameBytesMax: Int
  ) async throws(TransportError) -> any TransportLink {
    Link(inner: try await inner.open(url, frameBytesMax: frameBytesMax), pinged: pinged)
  }

  private struct Link: TransportLink {
    let inner: any TransportLink
    let pinged: AsyncStream<Void>.Continuation

    func receive() async throws(TransportError) -> InboundFrame { try await inner.receive() }

    func send(_ text: [UInt8]) async throws(TransportError) { try await inner.send(text) }

    func ping() async throws(TransportError) {
      pinged.yield()
      try await inner.ping()
    }

    func close(code: UInt16) { inner.close(code: code) }

    func abandon() { inner.abandon() }
  }
}

extension Ports {
  /// These ports with some of them replaced.
  func replacing(
    clock: (any SyncClock)? = nil, tasks: (any TaskSpawner)? = nil,
    transport: (any Transport)? = nil, queries: (any RelayQueries)? = nil
  ) -> Ports {
    Ports(
      clock: clock ?? self.clock, random: random, tasks: tasks ?? self.tasks,
      transport: transport ?? self.transport, relayInformation: relayInformation,
      queries: queries ?? self.queries, work: work)
  }
}
