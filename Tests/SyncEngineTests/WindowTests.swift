import EventLog
import Foundation
import Nostr
import NostrCrypto
import Platform
import RelayServer
import RelaySocket
import SyncCore
import SyncEngine
import Testing

/// Windows of channels by HTTP (NIP-CW), over real sockets: whatever comes of them, the local copy
/// ends the same as by pages alone.
@Suite(.timeLimit(.minutes(3))) struct WindowTests {
  /// What the engine asked by POST, and what came.
  private final class HeardQueries: RelayQueries {
    private let inner: any RelayQueries
    private let heard = Lock<[(body: String, status: Int?, authorization: String?)]>([])

    init(_ inner: any RelayQueries) { self.inner = inner }

    var all: [(body: String, status: Int?, authorization: String?)] { heard.withLock { $0 } }

    func post(_ question: RelayQuestion) async throws(TransportError) -> RelayReply {
      func note(_ status: Int?) {
        heard.withLock {
          $0.append(
            (
              body: String(decoding: question.body, as: UTF8.self), status: status,
              authorization: question.authorization
            ))
        }
      }
      do throws(TransportError) {
        let reply = try await inner.post(question)
        note(reply.status)
        return reply
      } catch {
        note(nil)
        throw error
      }
    }
  }

  /// A relay on a loopback port and what one client made of it.
  private struct Outcome {
    let summary: SyncSummary
    let ids: Set<EventID>
    let held: Set<EventID>
    let asked: [(body: String, status: Int?, authorization: String?)]
    let stored: Set<UInt16>
    let messages: [Timestamp]
    let again: SyncSummary
  }

  private func run(
    _ windows: ReadingRules.Windows, events count: Int = 900, dense: Int = 0, pageMax: Int = 500,
    isKeyed: Bool = false, since: Timestamp? = nil, _ change: (inout RelayRules) -> Void = { _ in }
  ) async throws -> Outcome {
    var rules = RelayRules()
    rules.reading.windows = windows
    rules.reading.pageMax = pageMax
    change(&rules)
    let tasks = SystemTasks()
    let community = try await DemoCommunity.make(seed: 3, eventsCount: count, on: InlineWork())
    let verifier = Verifier()
    var machine = RelayMachine(
      identity: RelayIdentity(name: "test", signer: RelaySigner(community.relayKey)), rules: rules
    ) { (try? verifier.verify($0)) != nil }
    try machine.load(community.events + crowd(dense, in: community))
    let service = SocketService()
    var limits = SocketLimits()
    limits.answerWaitMax = .milliseconds(1500)
    limits.answerBytesMax = 4 << 20
    let heard = HeardQueries(QuestionPoster(limits: limits))
    let ports = Ports(
      clock: SystemClock(), random: SystemRandom(), tasks: tasks,
      transport: SocketTransport(service: service), relayInformation: DocumentFetcher(),
      queries: heard, work: InlineWork())
    let host = RelayHost(machine, ports: ports, executor: ThreadExecutor())
    let port = try await host.start(
      on: SocketListener(service: service), host: "127.0.0.1", port: 0)
    let url = try #require(RelayURL("ws://127.0.0.1:\(port)"))
    let folder = FileManager.default.temporaryDirectory.path + "/skep-cw-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let store = try await CommunityStore.open(
      folder: folder, clock: ports.clock, tasks: ports.tasks)
    var options = EngineOptions()
    options.isReadOnly = true
    options.limits.negotiationProbeMax = .milliseconds(300)
    let engine = Engine(
      store: store, relays: [url], ports: ports,
      signer: isKeyed ? LocalSigner(community.people[0]) : nil, options: options)
    // The list of groups has dates of its own: with a bound the groups are named.
    let groups = community.events.filter { $0.kind == .groupMetadata }.map { $0.identifier.owned() }
    var plan = SyncPlan(since == nil ? .community : .groups(groups))
    plan.since = since
    let summary = try await engine.syncOnce(plan)
    let asked = heard.all
    let again = try await engine.syncOnce(plan)
    await engine.stop()
    let held = await host.ask { machine in
      let page = try? machine.store.page(
        PageRequest(filter: Filter(), eventsMax: 1_000_000), where: { _ in true })
      return Set((page?.events ?? []).map(\.id))
    }
    let ids = try store.ids()
    let events = try ids.compactMap { try store.reader.event(id: $0)?.event }
    await store.close()
    await host.stop()
    return Outcome(
      summary: summary, ids: ids, held: held, asked: asked,
      stored: Set(events.map(\.kind.number)),
      messages: events.filter { $0.kind == .message }.map(\.createdAt), again: again)
  }

  /// So many messages of one second in one channel.
  private func crowd(_ count: Int, in community: DemoCommunity) throws -> [Event] {
    guard count > 0 else { return [] }
    let group = try #require(community.events.first { $0.kind == .groupMetadata }?.identifier)
    let author = LocalSigner(community.people[1])
    return try (0..<count).map { number in
      try author.signed(
        EventDraft(
          createdAt: DemoCommunity.end - 5000, kind: .message, tags: Tags([["h", group]]),
          content: Text("crowd \(number)"))
      ).event
    }
  }

  /// By pages alone: what the others are compared with.
  private func expectWhole(_ outcome: Outcome) {
    #expect(outcome.ids == outcome.held)
    #expect(outcome.summary.isComplete && outcome.summary.gaps.isEmpty, "\(outcome.summary.gaps)")
    #expect(outcome.summary.rejected.isEmpty, "\(outcome.summary.rejected)")
    #expect(outcome.again.stored == 0 && outcome.again.isComplete)
    #expect(!outcome.stored.contains(39005) && !outcome.stored.contains(39006))
  }

  @Test func `without windows nothing is POSTed, and pages bring all`() async throws {
    let outcome = try await run(.unserved)
    expectWhole(outcome)
    #expect(outcome.asked.isEmpty)
  }

  @Test(arguments: [200, 25])
  func `windows that show replies bring the same set as pages, also where they are capped`(
    rowsMax: Int
  ) async throws {
    let outcome = try await run(.served(rowsMax: rowsMax, projectsReplies: true))
    expectWhole(outcome)
    #expect(outcome.asked.count > 5 && outcome.asked.allSatisfy { $0.status == 200 })
    // Two hundred rows are more than any channel here has.
    #expect(outcome.asked.contains { $0.body.contains("before_id") } == (rowsMax < 200))
  }

  @Test func `windows without replies bring the first rows at once, and the walk all of it`()
    async throws
  {
    let outcome = try await run(.served(rowsMax: 200, projectsReplies: false))
    expectWhole(outcome)
    #expect(!outcome.asked.isEmpty && !outcome.asked.contains { $0.body.contains("before_id") })
  }

  @Test(arguments: [
    ReadingRules.Windows.refused(status: 404), .refused(status: 401), .refused(status: 500),
    .garbled, .ignored, .oversized(bytes: 8 << 20), .unread,
  ])
  func `refused in whatever way, windows are asked for no more and pages bring the same set`(
    windows: ReadingRules.Windows
  ) async throws {
    let outcome = try await run(windows)
    expectWhole(outcome)
    // Those that were under way when the first one failed.
    #expect((1...3).contains(outcome.asked.count), "\(outcome.asked.count)")
  }

  @Test(arguments: [true, false])
  func `a second denser than a page is proved by windows, and a gap without them`(
    isServed: Bool
  ) async throws {
    let outcome = try await run(
      isServed ? .served(rowsMax: 200, projectsReplies: true) : .unserved, dense: 700)
    if isServed {
      expectWhole(outcome)
    } else {
      #expect(!outcome.summary.isComplete && outcome.ids != outcome.held)
    }
  }

  @Test func `nothing older than what is wanted is kept of a window`() async throws {
    let whole = try await run(.served(rowsMax: 25, projectsReplies: true))
    let dates = whole.messages.sorted()
    let since = dates[dates.count / 2]
    let outcome = try await run(.served(rowsMax: 25, projectsReplies: true), since: since)
    #expect(outcome.summary.isComplete && !outcome.asked.isEmpty)
    #expect(outcome.messages.sorted() == dates.filter { $0 >= since })
  }

  @Test func `where the relay knows us the question is signed, and else nobody is named`()
    async throws
  {
    let signed = try await run(.served(rowsMax: 200, projectsReplies: true), isKeyed: true) {
      $0.authentication.isNeededToRead = true
    }
    #expect(signed.summary.isComplete)
    #expect(!signed.asked.isEmpty)
    #expect(signed.asked.allSatisfy { $0.status == 200 && $0.authorization != nil })
    let stranger = try await run(.served(rowsMax: 200, projectsReplies: true))
    #expect(stranger.asked.allSatisfy { $0.authorization == nil } && !stranger.asked.isEmpty)
  }
}
