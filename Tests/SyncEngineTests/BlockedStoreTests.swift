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
}
