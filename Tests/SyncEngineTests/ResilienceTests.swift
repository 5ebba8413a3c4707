import EventLog
import Nostr
import NostrCrypto
import Platform
import RelayServer
import RelaySocket
import SyncCore
import SyncEngine
import Testing

/// What may go wrong with a connection beside the connection itself.
@Suite(.timeLimit(.minutes(4))) struct ResilienceTests {
  @Test(arguments: ["relay reader", "relay alarm", "follow "])
  func `a task that is lost is missed and made good`(name: String) async throws {
    let world = try await EngineWorld()
    let store = try await world.store()
    let tasks = FragileTasks()
    let engine = world.engine(
      store, key: world.member, ports: world.ports.replacing(tasks: tasks))
    await engine.start()
    #expect(await engine.waitLive(for: .seconds(120)) == .reached)
    world.network.setReachable(false)
    if name == "relay reader" { tasks.kill(name) } else { world.network.cutAll() }
    try await engine.reach { $0.relays.first?.state.name == "backing-off" }
    if name != "relay reader" { tasks.kill(name) }
    world.network.setReachable(true)
    #expect(await engine.waitLive(for: .seconds(120)) == .reached)
    await engine.stop()
    await store.close()
  }

  @Test func `a machine that slept looks after its connection at once`() async throws {
    let world = try await EngineWorld()
    let store = try await world.store()
    let clock = MovingClock()
    let transport = PingedTransport(world.network)
    let engine = world.engine(
      store, key: world.member, ports: world.ports.replacing(clock: clock, transport: transport))
    await engine.start()
    #expect(await engine.waitLive(for: .seconds(120)) == .reached)
    clock.move(by: 3600)
    var pings = 0
    for await _ in transport.pings {
      pings += 1
      break
    }
    #expect(pings == 1)
    await engine.stop()
    await store.close()
  }

  @Test func `a clock that is off is measured and told, and the AUTH is dated by the relay's`()
    async throws
  {
    var rules = RelayRules()
    rules.authentication.isNeededToRead = true
    rules.authentication.ageMax = 60
    let world = try await EngineWorld(rules: rules)
    world.network.setClock(world.ports.clock)
    let store = try await world.store()
    let engine = world.engine(
      store, key: world.member, ports: world.ports.replacing(clock: MovingClock(offset: -109)))
    await engine.start()
    #expect(await engine.waitLive(for: .seconds(120)) == .reached)
    let relay = try #require(await engine.status().relays.first)
    #expect(relay.isAuthenticated && relay.isSkewed)
    #expect((100...109).contains(relay.clockSkew ?? 0))
    await engine.stop()
    await store.close()
  }

  @Test func `a feed that brings nothing is found deaf by asking, and told`() async throws {
    var rules = RelayRules()
    rules.reading.fanOut = .none
    let world = try await EngineWorld(rules: rules)
    let store = try await world.store()
    let clock = MovingClock()
    let engine = world.engine(
      store, key: world.member, ports: world.ports.replacing(clock: clock)
    ) {
      $0.limits.reconcileInterval = .milliseconds(300)
    }
    await engine.start()
    #expect(await engine.waitLive(for: .seconds(120)) == .reached)
    clock.move(by: 300)
    let event = try world.message("who hears me?", at: clock.now() - 100)
    try await world.post([event])
    try await engine.reach { ($0.relays.first?.faults[.deafFeed] ?? 0) > 0 }
    #expect(try store.ids().contains(event.id))
    await engine.stop()
    #expect(try store.reader.counts().faults.map(\.reason) == ["deaf-feed"])
    await store.close()
  }

  @Test func `sixty channels on ten frames a second: what the user writes is accepted at once`()
    async throws
  {
    var rules = RelayRules()
    rules.limits.budget = RateBudget(framesMax: 10, window: .seconds(1))
    let world = try await EngineWorld(rules: rules, extraGroups: 60)
    let store = try await world.store()
    // The channels are known from before, by another way: the relay's second is this engine's alone.
    let held = await world.events()
    let verified = try held.map { try Verifier().verify($0) }
    _ = try await store.ingest(
      IngestBatch(events: verified, source: world.url, receivedAt: world.ports.clock.now()))
    await store.caughtUp()
    let engine = world.engine(store, key: world.member) { $0.isOffline = true }
    let message = try await engine.publish(
      EventDraft(
        createdAt: world.ports.clock.now(), kind: .message,
        tags: Tags([["h", try world.memberGroup]]), content: "through the crowd"))
    await engine.goOnline()
    await engine.start()
    #expect(await engine.waitOutbox(for: .seconds(120)) == .reached)
    let delivery = try #require(try store.reader.message(id: message.id)?.deliveries.first)
    #expect(delivery.state == .sent && delivery.attempts == 1)
    let feeds = try #require(await engine.status().relays.first).subscriptions
    #expect(feeds.count > 60)
    // Before all the channels were open, which takes seconds at this pace.
    #expect(feeds.contains { $0.state != .live })
    await engine.stop()
    await store.close()
  }

  // F91
  @Test func `over real sockets ten minutes of accept and drop make at most thirty attempts`()
    async throws
  {
    let clock = FastClock(SystemClock(), factor: 100)
    let world = try await EngineWorld(events: 0)
    let bound = try await SocketListener().listen(
      host: "127.0.0.1", port: 0, frameBytesMax: 1 << 16)
    let accepted = Lock(0)
    let dropper = Task {
      // The listener throws when it is closed, which is the end.
      while let link = try? await bound.accept() {
        accepted.withLock { $0 += 1 }
        link.abandon()
      }
    }
    let store = try await world.store()
    let engine = Engine(
      store: store, relays: [try #require(RelayURL("ws://127.0.0.1:\(bound.port)"))],
      ports: world.ports.replacing(
        clock: clock, transport: SocketTransport(service: SocketService())),
      signer: LocalSigner(world.member))
    let start = clock.uptime()
    await engine.start()
    // Every attempt is a change, and the longest wait between two of them is half a minute.
    for await _ in engine.changes where clock.uptime() - start >= .seconds(600) { break }
    #expect((5...30).contains(accepted.withLock { $0 }))
    await engine.stop()
    bound.close()
    await dropper.value
    await store.close()
  }

  @Test func `a restarted engine keeps to the rate that an earlier one was taught`() async throws {
    var rules = RelayRules.membersOnly
    rules.limits.budget = RateBudget(framesMax: 10, window: .seconds(2))
    let world = try await EngineWorld(rules: rules, events: 2000)
    let store = try await world.store()
    let first = world.engine(store, key: world.member) { $0.limits.pageLimit = 20 }
    await first.start()
    try await first.reach { _ in
      try store.reader.setting("relay.lessons \(world.url)") != nil
    }
    await first.stop()
    let kept = try #require(try store.reader.setting("relay.lessons \(world.url)"))
    let rate = try #require(RelayLessons(text: String(decoding: kept, as: UTF8.self)).rate)
    #expect(rate < FrameBudget.rateAtFirst)
    // Offline, so that nothing new is learned.
    let second = world.engine(store, key: world.member) { $0.isOffline = true }
    await second.start()
    #expect(await second.status().relays.first?.frameRate == rate)
    await second.stop()
    await store.close()
    let other = try await world.store("other")
    let stranger = world.engine(other, key: world.member) { $0.isOffline = true }
    await stranger.start()
    #expect(await stranger.status().relays.first?.frameRate == FrameBudget.rateAtFirst)
    await stranger.stop()
    await other.close()
  }

  @Test func `more channels than the relay keeps open: every one of them is heard`() async throws {
    var rules = RelayRules()
    rules.limits.subscriptionsMax = 12
    let world = try await EngineWorld(rules: rules, extraGroups: 30)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member) {
      $0.limits.rotationInterval = .milliseconds(200)
    }
    await engine.start()
    #expect(await engine.waitLive(for: .seconds(120)) == .reached)
    let events = try (0..<30).map { number in
      try world.message(Text("to \(number)"), in: EngineWorld.extraGroup(number))
    }
    try await world.post(events)
    let wanted = Set(events.map(\.id))
    for await _ in engine.changes where try wanted.isSubset(of: store.ids()) { break }
    let status = try #require(await engine.status().relays.first)
    #expect(status.count { $0 == .parked } > 0)
    #expect(status.faults.total == 0)
    await engine.stop()
    await store.close()
  }

  @Test func `a channel appears when one is added, is lost when removed, and comes back`()
    async throws
  {
    let world = try await EngineWorld(rules: .buzz)
    let admin = world.engine(try await world.store("admin"), key: world.member)
    let store = try await world.store()
    let user = world.community.people[1]
    let engine = world.engine(store, key: user)
    await engine.start()
    #expect(await engine.waitLive(for: .seconds(120)) == .reached)
    func tell(_ kind: EventKind, _ tags: [[Text]]) async throws {
      _ = try await admin.publish(
        EventDraft(
          createdAt: world.ports.clock.now(), kind: kind, tags: Tags([["h", "secret"]] + tags),
          content: .empty))
      #expect(await admin.waitOutbox(for: .seconds(120)) == .reached)
    }
    func feed(_ status: EngineStatus) -> SubscriptionState? {
      status.relays.first?.subscriptions.first { $0.name == "group:secret" }?.state
    }
    try await tell(.groupCreate, [["name", "secret"], ["visibility", "private"], ["private"]])
    try await tell(.groupEditMetadata, [["name", "secret"], ["private"], ["closed"]])
    try await tell(.groupPutUser, [["p", Text(user.publicKey.hex)]])
    try await engine.reach { feed($0) == .live }
    try await tell(.groupRemoveUser, [["p", Text(user.publicKey.hex)]])
    try await engine.reach { if case .refused = feed($0) { true } else { false } }
    try await tell(.groupPutUser, [["p", Text(user.publicKey.hex)]])
    try await engine.reach { feed($0) == .live }
    await engine.stop()
    await admin.stop()
    await admin.store.close()
    await store.close()
  }
}
