import EventLog
import HotCache
import Nostr
import NostrCrypto
import RelayServer
import RelaySocket
import SyncCore
import SyncEngine
import Testing

@Suite(.timeLimit(.minutes(4))) struct FollowingTests {
  /// An event by one of the community's people, dated now.
  private func event(
    _ world: EngineWorld, _ text: Text, by person: Int = 1, at time: Timestamp? = nil
  ) throws -> Event {
    let group = try #require(
      world.community.events.first { event in
        event.kind == .groupMembers
          && event.tags.contains { $0.bytes32(1) == world.member.publicKey.bytes }
      }?.identifier)
    return try LocalSigner(world.community.people[person]).signed(
      EventDraft(
        createdAt: time ?? world.ports.clock.now(), kind: .message, tags: Tags([["h", group]]),
        content: text)
    ).event
  }

  /// Puts events into the relay as another client would.
  private func post(_ events: [Event], to world: EngineWorld) async throws {
    try await put(events, into: world)
    await world.host.announce(events)
  }

  /// Puts events into the relay without a word to those who are connected.
  private func put(_ events: [Event], into world: EngineWorld) async throws {
    await world.host.update { machine, _, _ in
      // A store in memory takes everything.
      try? machine.load(events)
      return []
    }
  }

  private func waitFor(_ id: EventID, in store: CommunityStore, _ engine: Engine) async throws {
    if try store.reader.event(id: id) != nil { return }
    for await change in engine.changes {
      if case .log = change, try store.reader.event(id: id) != nil { return }
      if case .progress = change, try store.reader.event(id: id) != nil { return }
    }
  }

  @Test func `what is new arrives by the live feeds`() async throws {
    let world = try await EngineWorld()
    let store = try await world.store()
    let engine = world.engine(store, key: world.member)
    await engine.start()
    #expect(await engine.waitLive(for: .seconds(120)) == .reached)
    let fresh = try event(world, "hot off the press")
    try await post([fresh], to: world)
    try await waitFor(fresh.id, in: store, engine)
    let feeds = try #require(await engine.status().relays.first).subscriptions
    #expect(feeds.count > 5)
    await engine.stop()
    await store.close()
  }

  // F94: a sleep that is cancelled keeps its memory until it would have ended.
  @Test func `who waits for long begins no new sleep at each change`() async throws {
    let world = try await EngineWorld()
    let store = try await world.store()
    let tasks = CountedTasks()
    let engine = world.engine(
      store, key: world.member, ports: world.ports.replacing(tasks: tasks)
    ) { $0.limits.liveBatch = 1 }
    await engine.start()
    #expect(await engine.waitLive(for: .seconds(120)) == .reached)
    let before = tasks.count("engine wait")
    for number in 0..<100 { try await post([try event(world, Text("\(number)"))], to: world) }
    let last = try event(world, "the last")
    try await post([last], to: world)
    try await waitFor(last.id, in: store, engine)
    #expect(tasks.count("engine wait") - before <= 5)
    await engine.stop()
    await store.close()
  }

  @Test func `what happened during an outage is there after it`() async throws {
    let world = try await EngineWorld()
    let store = try await world.store()
    let engine = world.engine(store, key: world.member)
    await engine.start()
    #expect(await engine.waitLive(for: .seconds(120)) == .reached)
    world.network.setReachable(false)
    world.network.cutAll()
    var missed: [Event] = []
    for number in 0..<5 { missed.append(try event(world, Text("missed \(number)"))) }
    try await post(missed, to: world)
    world.network.setReachable(true)
    try await waitFor(try #require(missed.last).id, in: store, engine)
    #expect(await engine.waitLive(for: .seconds(120)) == .reached)
    #expect(Set(missed.map(\.id)).isSubset(of: try store.ids()))
    await engine.stop()
    await store.close()
  }

  @Test func `after an outage nothing is called live before what was missed is stored`()
    async throws
  {
    let world = try await EngineWorld()
    let store = try await world.store()
    // A feed brings one event of what was there before it.
    let engine = world.engine(store, key: world.member) { $0.limits.liveLimit = 1 }
    await engine.start()
    #expect(await engine.waitLive(for: .seconds(120)) == .reached)
    world.network.setReachable(false)
    world.network.cutAll()
    try await engine.reach { $0.relays.first?.state.name == "backing-off" }
    var missed: [Event] = []
    for number in 0..<3 { missed.append(try event(world, Text("missed \(number)"))) }
    // No live feed brings these: they were there before it was opened, and its limit is passed over.
    try await put(missed, into: world)
    world.network.setReachable(true)
    #expect(await engine.waitLive(for: .seconds(120)) == .reached)
    #expect(Set(missed.map(\.id)).isSubset(of: try store.ids()))
    await engine.stop()
    await store.close()
  }

  // F51
  @Test func `what a clock ten seconds behind has stamped is heard, live and after an outage`()
    async throws
  {
    let world = try await EngineWorld()
    let store = try await world.store()
    // The feed itself brings back only the newest.
    let engine = world.engine(store, key: world.member) { $0.limits.liveLimit = 1 }
    await engine.start()
    #expect(await engine.waitLive(for: .seconds(30)) == .reached)
    let behind = try event(world, "just now, I thought", at: world.ports.clock.now() - 10)
    try await post([behind], to: world)
    try await waitFor(behind.id, in: store, engine)
    await engine.goOffline()
    let missed = try event(world, "still behind", at: world.ports.clock.now() - 10)
    try await put([missed, try event(world, "on time")], into: world)
    await engine.goOnline()
    try await waitFor(missed.id, in: store, engine)
    await engine.stop()
    await store.close()
  }

  @Test func `an event accepted late with an old date is found while following`() async throws {
    let clock = LeapClock(SystemClock())
    let world = try await EngineWorld(clock: clock)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member)
    await engine.start()
    #expect(await engine.waitLive(for: .seconds(120)) == .reached)
    let late = try event(world, "written a day and a half ago", at: clock.now() - 36 * 3600)
    try await put([late], into: world)
    clock.leap(by: .seconds(6 * 3600 + 60))
    try await waitFor(late.id, in: store, engine)
    await engine.stop()
    await store.close()
  }

  @Test func `what is followed after a restart is read again when its proof has become old`()
    async throws
  {
    let clock = LeapClock(SystemClock())
    let world = try await EngineWorld(clock: clock)
    let store = try await world.store()
    let first = world.engine(store, key: world.member)
    await first.start()
    #expect(await first.waitLive(for: .seconds(120)) == .reached)
    await first.stop()
    let late = try event(world, "from last month", at: clock.now() - 30 * 86_400)
    try await put([late], into: world)
    clock.leap(by: .seconds(7 * 86_400 + 60))
    let second = world.engine(store, key: world.member)
    await second.start()
    try await waitFor(late.id, in: store, second)
    await second.stop()
    await store.close()
  }

  @Test func `offline nothing is connected, and online everything is again`() async throws {
    let world = try await EngineWorld()
    let store = try await world.store()
    let engine = world.engine(store, key: world.member)
    await engine.start()
    #expect(await engine.waitLive(for: .seconds(120)) == .reached)
    await engine.goOffline()
    #expect(await engine.status().relays.first?.state == .suspended)
    #expect(await engine.waitLive(for: .seconds(1)) == .impossible("offline"))
    await engine.goOnline()
    #expect(await engine.waitLive(for: .seconds(120)) == .reached)
    await engine.stop()
    await store.close()
  }

  @Test func `a key that the relay does not want is told, and nothing is tried for ever`()
    async throws
  {
    var rules = RelayRules.membersOnly
    rules.authentication.members = []
    let world = try await EngineWorld(rules: rules)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member)
    await engine.start()
    guard case .impossible = await engine.waitLive(for: .seconds(120)) else {
      Issue.record("\(await engine.status())")
      return
    }
    await engine.stop()
    await store.close()
  }

  @Test func `a Buzz relay's channels are live, each in a REQ of its own`() async throws {
    let world = try await EngineWorld(rules: .buzz)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member)
    await engine.start()
    #expect(await engine.waitLive(for: .seconds(120)) == .reached)
    let fresh = try event(world, "only to those who name the channel")
    try await post([fresh], to: world)
    try await waitFor(fresh.id, in: store, engine)
    await engine.stop()
    await store.close()
  }
}
