import EventLog
import Foundation
import HotCache
import Nostr
import NostrCrypto
import Platform
import RelayServer
import SyncCore
import Testing

@Suite struct StoreTests {
  private struct StillClock: SyncClock {
    func now() -> Timestamp { Bench.start + 100_000 }
    func uptime() -> Duration { .zero }
    func sleep(until uptime: Duration) async throws {}
  }

  /// Every filter shape that picks another index.
  private func filters(of events: [Event]) -> [Filter] {
    let sample = events[events.count / 2]
    let h = UInt8(ascii: "h")
    let e = UInt8(ascii: "e")
    return [
      Filter(), Filter(kinds: [9, 7]), Filter(authors: [sample.pubkey]),
      Filter(authors: [sample.pubkey], kinds: [9]), Filter(ids: events.prefix(30).map(\.id)),
      Filter(tags: [h: ["general", "maps"]]), Filter(kinds: [7], tags: [h: ["garden"]]),
      Filter(tags: [e: events.prefix(200).map { Text($0.id.hex) }]),
      Filter(since: sample.createdAt, until: sample.createdAt),
      Filter(kinds: [9], since: sample.createdAt - 40_000, until: sample.createdAt),
      Filter(kinds: [40003], tags: [h: ["nowhere"]]), Filter(authors: []), Filter(kinds: []),
    ]
  }

  @Test func `memory answers as a plain search over the same events does`() async throws {
    let relay = try await DemoRelay.make(seed: 11, eventsCount: 1200, on: WorkPool())
    let store = try #require(relay.machine.store as? MemoryStore)
    let contents = store.contents
    #expect(contents.count == 1200)
    for filter in filters(of: contents) {
      let expected = contents.filter { filter.matches($0) }.map(\.id)
      let page = try store.page(PageRequest(filter: filter, eventsMax: .max))
      #expect(page.events.map(\.id) == expected)
      #expect(try store.count([filter]) == expected.count)
      let cut = try store.page(PageRequest(filter: filter, eventsMax: 7))
      #expect(cut.events.map(\.id) == Array(expected.prefix(7)))
      #expect(cut.isWhole == (expected.count <= 7))
    }
  }

  @Test func `any order of arrival ends in the same contents`() async throws {
    let community = try await DemoCommunity.make(seed: 4, eventsCount: 500, on: WorkPool())
    let plain = community.events.filter { $0.kind != 9005 }
    var random = SplitMix64(seed: 99)
    var first: [EventID]?
    for _ in 0..<4 {
      let order = plain.map { ($0, random.next()) }.sorted { $0.1 < $1.1 }.map(\.0)
      var machine = Bench(.withoutGroups).machine
      try machine.load(order)
      let ids = try machine.store.page(PageRequest(filter: Filter(), eventsMax: .max)).events.map(
        \.id)
      #expect(first == nil || first == ids)
      first = ids
    }
  }

  @Test func `the log and its cache answer as memory does, and are never written to`() async throws
  {
    let folder = FileManager.default.temporaryDirectory.appending(path: "replica-\(UUID())").path()
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let relay = try await DemoRelay.make(seed: 12, eventsCount: 600, on: WorkPool())
    let memory = try #require(relay.machine.store as? MemoryStore)
    let clock = StillClock()
    let log = try await EventLog.open(
      path: folder + "/log.sqlite", executor: ThreadExecutor(), clock: clock)
    let verifier = Verifier()
    let events = try memory.contents.map { try verifier.verify($0) }
    _ = try await log.ingest(IngestBatch(events: events, receivedAt: Bench.start))
    let cache = await HotCache.open(
      directory: folder + "/cache", log: log.reader, executor: ThreadExecutor())
    try await cache.catchUp()
    let store = LogStore(log: log.reader, views: cache.views, clock: clock)
    for filter in filters(of: memory.contents) {
      let request = PageRequest(filter: filter, eventsMax: 20)
      #expect(try store.page(request) == (try memory.page(request)))
      #expect(try store.count([filter]) == (try memory.count([filter])))
      var oldest = request
      oldest.order = .oldestFirst
      #expect(try store.page(oldest) == (try memory.page(oldest)))
    }
    let few = try store.page(PageRequest(filter: Filter(), eventsMax: 5)) { $0.kind == 39000 }
    #expect(few.events.count == 5 && !few.isWhole)
    #expect(throws: RelayStoreError.readOnly) {
      try store.insert(events[0].event, scope: nil, replacesVersions: true)
    }

    // What was written here and not sent yet is nobody else's.
    let own = try await LocalSigner(Bench.key("me")).sign(
      EventDraft(createdAt: Bench.start, kind: 9, tags: Tags([["h", "general"]]), content: "own"))
    let home = try #require(RelayURL("ws://home.test"))
    let message = try await log.enqueue(own, to: [home], waitsFor: nil, token: nil)
    try await cache.catchUp()
    #expect(
      try store.page(PageRequest(filter: Filter(ids: [own.event.id]), eventsMax: 1)).events == [])
    try await log.record(
      DeliveryChange(message: message.id, relay: home, state: .sent, attempts: 1))
    #expect(
      try store.page(PageRequest(filter: Filter(ids: [own.event.id]), eventsMax: 1)).events == [
        own.event
      ])
    await cache.close()
    await log.close()
  }

  @Test func `a reconciliation finds both differences, and is refused in the form of the rule`()
    async throws
  {
    let relay = try await DemoRelay.make(seed: 13, eventsCount: 400, on: WorkPool())
    let memory = try #require(relay.machine.store as? MemoryStore)
    var rules = RelayRules.withoutGroups
    rules.reading.reconciliation = .served(itemsMax: 400)
    var bench = Bench(rules, store: memory)
    let id = bench.connect()
    let mine = memory.contents.dropFirst(10).map(\.position)
    let extra = Bench.event(by: "ann", 1)
    let client = NegentropyMachine(
      set: NegentropySet(mine + [extra.position]), isClient: true, frameBytesMax: nil)
    var need: Set<EventID> = []
    var have: Set<EventID> = []
    var message: [UInt8]? = client.opening()
    var isFirst = true
    while let bytes = message {
      bench.say(isFirst ? .negOpen("n", Filter(), bytes) : .negMessage("n", bytes), on: id)
      isFirst = false
      guard case .negMessage("n", let answer)? = bench.take(id).last else { break }
      let step = try client.receive(answer)
      need.formUnion(step.need)
      have.formUnion(step.have)
      message = step.answer
    }
    #expect(need == Set(memory.contents.prefix(10).map(\.id)))
    #expect(have == [extra.id])
    bench.machine.rules.reading.reconciliation = .served(itemsMax: 399)
    bench.say(.negOpen("m", Filter(), client.opening()), on: id)
    #expect(
      bench.take(id) == [.negError("m", "blocked: this query is too big", recordsMax: 399)])
  }

  @Test(
    arguments: [
      (ReadingRules.Reconciliation.refusedByNotice, #"["NOTICE","ERROR: bad msg"#),
      (.refusedByClosed, #"["CLOSED","k","unsupported:"#),
      (.refusedByError, #"["NEG-ERR","k","unsupported:"#), (.garbled, #"["NEG-MSG","k""#),
      (.refusedByClosing, ""), (.ignored, ""), (.served(itemsMax: 9), #"["NEG-MSG","k","61"#),
    ])
  func `a reconciliation that is not served is refused in the form of the rule`(
    form: ReadingRules.Reconciliation, start: String
  ) throws {
    var rules = RelayRules.withoutGroups
    rules.reading.reconciliation = form
    var bench = Bench(rules)
    let id = bench.connect()
    let client = NegentropyMachine(set: NegentropySet([]), isClient: true, frameBytesMax: nil)
    bench.say(.negOpen("k", Filter(), client.opening()), on: id)
    let answers = bench.take(id)
    #expect(answers.count == (start.isEmpty ? 0 : 1))
    let frame = answers.first.map { String(decoding: $0.json(), as: UTF8.self) } ?? ""
    #expect(frame.hasPrefix(start), "\(frame)")
    #expect((bench.closed[id] == 1008) == (form == .refusedByClosing))
    guard case .negMessage(_, let message)? = answers.first else { return }
    let isUnderstood = (try? client.receive(message)) != nil
    #expect(isUnderstood == (form != .garbled))
  }
}
