import Nostr
import NostrCrypto
import Platform
import RelayServer
import SyncCore
import Testing

/// The ports of a test whose clock stands still.
private struct TestPorts {
  struct Clock: SyncClock {
    func now() -> Timestamp { Bench.start }
    func uptime() -> Duration { .seconds(1) }
    func sleep(until uptime: Duration) async throws {
      // Nothing here may depend on time passing, so whoever sleeps waits for its cancellation.
      let stream = AsyncStream<Void> { _ in }
      for await _ in stream {}
      throw CancellationError()
    }
  }

  struct Tasks: TaskSpawner {
    struct Spawned: SpawnedTask {
      let task: Task<Void, Never>
      func cancel() { task.cancel() }
      func finished() async { await task.value }
    }

    func spawn(_ name: String, _ body: @escaping @Sendable () async -> Void) -> any SpawnedTask {
      Spawned(task: Task { await body() })
    }
  }

  static func make(_ network: MemoryNetwork) -> Ports {
    Ports(
      clock: Clock(), random: SeededRandom(seed: 7), tasks: Tasks(), transport: network,
      relayInformation: network, work: InlineWork())
  }
}

@Suite struct HostTests {
  private func machine(_ rules: RelayRules = .withoutGroups) -> RelayMachine {
    let verifier = Verifier()
    return RelayMachine(
      identity: RelayIdentity(name: "host", signer: RelaySigner(Bench.relayKey)), rules: rules
    ) { (try? verifier.verify($0)) != nil }
  }

  private func next(_ link: any TransportLink) async throws -> RelayMessage? {
    guard case .message(let bytes) = try await link.receive() else { return nil }
    return try RelayMessage.parse(bytes)
  }

  @Test func `a client talks to a hosted machine over a network in memory`() async throws {
    let network = MemoryNetwork()
    let host = RelayHost(machine(), ports: TestPorts.make(network), executor: ThreadExecutor())
    let port = try await host.start(on: network, host: "relay.test", port: 0)
    let url = try #require(RelayURL("ws://relay.test:\(port)"))
    let link = try await network.open(url, frameBytesMax: 1 << 20)
    let event = Bench.event(by: "ann", 1, [], "hello")
    try await link.send(ClientMessage.event(event).json())
    #expect(try await next(link) == .ok(event.id, accepted: true, ""))
    try await link.send(ClientMessage.req("s", [Filter(kinds: [1])]).json())
    #expect(try await next(link) == .event("s", event))
    #expect(try await next(link) == .eose("s", hints: ["finish"]))
    let document = try JSONValue.parse(try await network.document(of: url))
    #expect(document["self"]?.string == Text(Bench.relayKey.publicKey.hex))
    await host.stop()
    await #expect(throws: TransportError.self) { try await link.receive() }
    await #expect(throws: TransportError.self) {
      try await network.open(url, frameBytesMax: 1 << 20)
    }
  }

  @Test func `a relay that is cut off comes back with what it held`() async throws {
    let network = MemoryNetwork()
    let host = RelayHost(machine(), ports: TestPorts.make(network), executor: ThreadExecutor())
    let port = try await host.start(on: network, host: "relay.test", port: 0)
    let url = try #require(RelayURL("ws://relay.test:\(port)"))
    let first = try await network.open(url, frameBytesMax: 1 << 20)
    let event = Bench.event(by: "ann", 1)
    try await first.send(ClientMessage.event(event).json())
    _ = try await next(first)
    network.setReachable(false)
    network.cutAll()
    await #expect(throws: TransportError.self) { try await first.receive() }
    await #expect(throws: TransportError.self) {
      try await network.open(url, frameBytesMax: 1 << 20)
    }
    network.setReachable(true)
    let second = try await network.open(url, frameBytesMax: 1 << 20)
    try await second.send(ClientMessage.req("s", [Filter()]).json())
    #expect(try await next(second) == .event("s", event))
    await host.stop()
  }

  @Test func `a reader that takes nothing is dropped at the queue's bound`() async throws {
    let network = MemoryNetwork(framesMax: 1)
    var limits = RelayHost.Limits()
    limits.queueBytesMax = 20_000
    let host = RelayHost(
      machine(), ports: TestPorts.make(network), executor: ThreadExecutor(), limits: limits)
    let port = try await host.start(on: network, host: "relay.test", port: 0)
    let url = try #require(RelayURL("ws://relay.test:\(port)"))
    let slow = try await network.open(url, frameBytesMax: 1 << 20)
    try await slow.send(ClientMessage.req("s", [Filter(kinds: [1])]).json())
    let writer = try await network.open(url, frameBytesMax: 1 << 20)
    for number in 0..<60 {
      let event = Bench.event(by: "ann", 1, [], "\(number) " + String(repeating: "x", count: 1000))
      try await writer.send(ClientMessage.event(event).json())
      _ = try await next(writer)
    }
    var received = 0
    await #expect(throws: TransportError.closed(code: 1006, reason: "")) {
      while true {
        _ = try await slow.receive()
        received += 1
      }
    }
    #expect(received < 60)
    await host.stop()
  }
}
