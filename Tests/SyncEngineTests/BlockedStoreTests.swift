import Dispatch
import EventLog
import Nostr
import NostrCrypto
import Platform
import RelayServer
import SyncCore
import Testing

@testable import SyncEngine

/// A store that takes its time holds up the socket, and nothing else.
@Suite(.timeLimit(.minutes(1))) struct BlockedStoreTests {
  /// Takes nothing that live feeds bring until it is let go.
  private actor Sink: RelayReportSink {
    private var isOpen = false
    private var isHolding = false
    private var isLive = false
    private var held: [CheckedContinuation<Void, Never>] = []
    private var watchers: [CheckedContinuation<Void, Never>] = []

    func take(_ report: RelayReport, from relay: RelayURL) async {
      switch report {
      case .subscription(_, .live): isLive = true
      case .live where !isOpen:
        isHolding = true
        tell()
        return await withCheckedContinuation { held.append($0) }
      default: return
      }
      tell()
    }

    func becomesLive() async { while !isLive { await change() } }

    func holds() async { while !isHolding { await change() } }

    func letGo() {
      isOpen = true
      for one in held { one.resume() }
      held = []
    }

    private func change() async { await withCheckedContinuation { watchers.append($0) } }

    private func tell() {
      for one in watchers { one.resume() }
      watchers = []
    }
  }

  @Test func `deadlines fire at their time, and the silence is not taken for the relay's`()
    async throws
  {
    let world = try await EngineWorld()
    var limits = Limits()
    limits.liveBatch = 1
    limits.answerIdleMax = .seconds(3)
    limits.quietMax = .milliseconds(500)
    limits.pongMax = .milliseconds(500)
    let sink = Sink()
    let connection = RelayConnection(
      world.url, ports: world.ports, signer: LocalSigner(world.member), verifier: Verifier(),
      sink: sink, limits: limits)
    await connection.start()
    await connection.want([SyncScopes.liveGroup(try world.memberGroup, limit: 0)])
    await sink.becomesLive()
    try await world.post([try world.message("hold on")])
    await sink.holds()
    let request = HistoryWalk.Request(filter: Filter(kinds: [9], limit: 1))
    #expect(await connection.fetch(request).end == .timedOut)
    #expect(await connection.machine.state == .ready)
    await sink.letGo()
    guard case .complete = await connection.fetch(request).end else {
      Issue.record("it did not go on")
      return
    }
    await connection.stop()
  }

  /// Takes a thread for as long as a disk that hangs would.
  private actor HungDisk {
    private nonisolated let executor: ThreadExecutor
    private let started: AsyncStream<Void>.Continuation

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(_ executor: ThreadExecutor, _ started: AsyncStream<Void>.Continuation) {
      self.executor = executor
      self.started = started
    }

    func hang(until gate: DispatchSemaphore) {
      started.yield()
      gate.wait()
    }
  }

  /// What becomes of a mirror of the same relay into another store.
  private func mirrored(_ world: EngineWorld) async -> SyncSummary? {
    guard let store = try? await world.store("other") else { return nil }
    let engine = world.engine(store) { $0.isReadOnly = true }
    // Without a summary the test fails.
    let summary = try? await engine.syncOnce(SyncPlan(.everything))
    await engine.stop()
    await store.close()
    return summary
  }

  // F98
  @Test func `reads that wait for a disk hold up no other actor, however many they are`()
    async throws
  {
    let world = try await EngineWorld()
    let store = try await world.store()
    let executor = ThreadExecutor()
    let engine = Engine(
      store: store, relays: [world.url], ports: world.ports, signer: LocalSigner(world.member),
      executor: executor)
    let gate = DispatchSemaphore(value: 0)
    let (hangs, started) = AsyncStream<Void>.makeStream()
    let disk = HungDisk(executor, started)
    async let hung: Void = disk.hang(until: gate)
    for await _ in hangs { break }
    let written = Lock(0)
    await withTaskGroup(of: Void.self) { tasks in
      // More than a machine has cores.
      for number in 0..<64 {
        tasks.addTask {
          let draft = EventDraft(
            createdAt: world.ports.clock.now(), kind: .message, tags: Tags([["h", "g"]]),
            content: Text("\(number)"))
          // What comes of it is no matter: it is asked for while the disk hangs.
          _ = try? await engine.publish(draft, token: Text("\(number)"))
          written.withLock { $0 += 1 }
        }
      }
      let summary = await mirrored(world)
      #expect(summary?.isComplete == true)
      #expect(written.withLock { $0 } == 0)
      gate.signal()
    }
    await hung
    #expect(written.withLock { $0 } == 64)
    await engine.stop()
    await store.close()
  }
}
