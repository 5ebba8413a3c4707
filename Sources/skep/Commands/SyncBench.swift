import EventLog
import Foundation
import Nostr
import Platform
import RelayServer
import RelaySocket
import SyncCore
import SyncEngine

/// `skep bench sync`: from an empty home to everything that the demo relay has, over a socket of
/// the loopback, verified, durable and folded; against the import of the same events.
struct SyncBench {
  private let context: Context
  private let eventsCount: Int
  private let servesNegentropy: Bool

  init(_ context: Context) throws {
    self.context = context
    eventsCount = try context.number("events", in: 100...1_000_000) ?? 20_000
    servesNegentropy = context.invocation.has("negentropy")
  }

  func run() async throws -> BenchCommand.Figure {
    let scratch = try BenchScratch(context, "sync")
    context.talk.say("making \(Progress.grouped(eventsCount)) events")
    var rules = RelayRules()
    // Whoever asks is shown everything, so that both sides of the measure handle the same events.
    rules.groups.scopesReading = false
    if servesNegentropy { rules.reading.reconciliation = .served(itemsMax: 1_000_000) }
    let demo = try await DemoRelay.make(
      eventsCount: eventsCount, rules: rules, version: Shell.versionText, on: WorkPool())
    let file = scratch.path + "/events.jsonl"
    let count = try write(demo.machine, to: file)
    let before = try await ImportBench(context).rate(of: file, in: scratch.path + "/before")
    let synced = try await sync(demo.machine, into: scratch.path + "/synced")
    let after = try await ImportBench(context).rate(of: file, in: scratch.path + "/after")
    return BenchCommand.Figure(
      name: "sync", value: Double(synced.summary.stored) / max(synced.seconds, 1e-9),
      unit: "events/s", limit: (before + after) / 2,
      extra: [
        ("events", JSON(count)), ("stored", JSON(synced.summary.stored)),
        ("complete", .bool(synced.summary.isComplete)), ("seconds", .double(synced.seconds)),
        ("via_negentropy", JSON(synced.summary.viaNegentropy)),
      ])
  }

  /// What the relay serves, as lines.
  private func write(_ machine: RelayMachine, to path: String) throws -> Int {
    let page = try machine.store.page(PageRequest(filter: Filter(), eventsMax: .max))
    let file = try AtomicFile(path)
    for event in page.events.reversed() { try file.write(event.json() + [UInt8(ascii: "\n")]) }
    try file.finish()
    return page.events.count
  }

  private func sync(
    _ machine: RelayMachine, into folder: String
  ) async throws -> (summary: SyncSummary, seconds: Double) {
    let relay = RelayHost(machine, ports: context.ports, executor: ThreadExecutor())
    let port = try await relay.start(
      on: SocketListener(service: SocketService()), host: "127.0.0.1", port: 0)
    guard let url = RelayURL("ws://127.0.0.1:\(port)") else {
      throw Failure(.io, "127.0.0.1:\(port) is no address")
    }
    let clock = ContinuousClock()
    let start = clock.now
    let store = try await CommunityStore.open(
      folder: folder, clock: context.clock, tasks: SystemTasks())
    var options = EngineOptions()
    options.isReadOnly = true
    let engine = Engine(
      store: store, relays: [url], ports: context.ports, signer: nil, options: options)
    let summary: SyncSummary
    do throws(EngineError) {
      summary = try await engine.syncOnce(SyncPlan(.everything))
    } catch {
      throw Failure(error)
    }
    await store.caughtUp()
    try await store.log.checkpoint()
    let seconds = Progress.seconds(start.duration(to: clock.now))
    await engine.stop()
    await store.close()
    await relay.stop()
    return (summary, seconds)
  }
}
