import EventLog
import HotCache
import Nostr
import NostrCrypto
import Platform
import RelayServer
import SyncCore
import SyncEngine
import Testing

/// A community with a home and a replica of it.
@Suite(.timeLimit(.minutes(4))) struct ReplicaTests {
  /// A second relay on the world's network.
  private struct Replica {
    let url: RelayURL
    let host: RelayHost

    init(
      of world: EngineWorld, events: [Event], namesSelf: PublicKey? = nil,
      rules: RelayRules = .replica(asksForAuthentication: false)
    ) async throws {
      url = try #require(RelayURL("ws://copy.test:7778"))
      let verifier = Verifier()
      var machine = RelayMachine(
        identity: RelayIdentity(
          name: "copy", urls: [url], selfKey: namesSelf ?? world.community.relayKey.publicKey),
        rules: rules
      ) { (try? verifier.verify($0)) != nil }
      try machine.load(events)
      host = RelayHost(machine, ports: world.ports, executor: ThreadExecutor())
      try await host.start(on: world.network, host: "copy.test", port: 7778)
    }
  }

  private func engine(
    _ world: EngineWorld, _ store: CommunityStore, _ relays: [RelayURL], key: SecretKey? = nil
  ) -> Engine {
    Engine(
      store: store, relays: relays, ports: world.ports, signer: key.map { LocalSigner($0) })
  }

  private func group(_ world: EngineWorld) throws -> Text {
    let lists = world.community.events.filter { event in
      event.kind == .groupMembers
        && event.tags.contains { $0.bytes32(1) == world.member.publicKey.bytes }
    }
    return try #require(lists.first?.identifier)
  }

  private func message(_ world: EngineWorld, _ text: Text) throws -> Event {
    try LocalSigner(world.community.people[1]).signed(
      EventDraft(
        createdAt: world.ports.clock.now(), kind: .message,
        tags: Tags([["h", try group(world)]]), content: text)
    ).event
  }

  private func add(_ events: [Event], to host: RelayHost) async {
    await host.update { machine, _, _ in
      // A store in memory takes everything.
      try? machine.load(events)
      return []
    }
    await host.announce(events)
  }

  @Test func `while the home is down the replica is read, and writing waits for the home alone`()
    async throws
  {
    let world = try await EngineWorld()
    let replica = try await Replica(of: world, events: world.community.events)
    let store = try await world.store()
    let engine = engine(world, store, [world.url, replica.url], key: world.member)
    #expect(try await engine.syncOnce(SyncPlan(.everything)).isComplete)
    await world.host.stop()
    let news = try message(world, "news at the replica")
    await add([news], to: replica.host)
    let written = try await engine.publish(
      EventDraft(
        createdAt: world.ports.clock.now(), kind: .message,
        tags: Tags([["h", try group(world)]]), content: "for the home"))
    let summary = try await engine.syncOnce(SyncPlan(.everything))
    #expect(try store.reader.event(id: news.id) != nil)
    #expect(summary.relays[replica.url] == .some(nil))
    #expect(summary.relays[world.url]??.isEmpty == false)
    #expect(!summary.isComplete, "what the home has taken in since only the home can tell")
    #expect(summary.queued == 1 && summary.sent == 0)
    let deliveries = try store.reader.deliveries(includingSent: true)
    #expect(deliveries.map(\.relay) == [world.url])
    let offered = await replica.host.ask { machine in
      // A store in memory does not fail.
      (try? machine.store.event(written.eventID)) ?? nil
    }
    #expect(offered == nil)
    let back = try await restarted(world)
    #expect(await engine.waitOutbox(for: .seconds(120)) == .reached)
    #expect(try store.reader.deliveries(includingSent: true).map(\.state) == [.sent])
    await engine.stop()
    await store.close()
    await back.stop()
  }

  /// The world's relay again, after it was stopped.
  private func restarted(_ world: EngineWorld) async throws -> RelayHost {
    let verifier = Verifier()
    var machine = RelayMachine(
      identity: RelayIdentity(
        name: "test", urls: [world.url], signer: RelaySigner(world.community.relayKey)),
      rules: RelayRules()
    ) { (try? verifier.verify($0)) != nil }
    try machine.load(world.community.events)
    let host = RelayHost(machine, ports: world.ports, executor: ThreadExecutor())
    try await host.start(on: world.network, host: "relay.test", port: 7777)
    return host
  }

  @Test func `while the replica is down the home is enough`() async throws {
    let world = try await EngineWorld()
    let replica = try await Replica(of: world, events: world.community.events)
    await replica.host.stop()
    let store = try await world.store()
    let engine = engine(world, store, [world.url, replica.url], key: world.member)
    let summary = try await engine.syncOnce(SyncPlan(.everything))
    #expect(summary.isComplete)
    #expect(summary.relays[replica.url]??.isEmpty == false)
    await engine.start()
    #expect(await engine.waitLive(for: .seconds(120)) == .reached)
    await engine.stop()
    await store.close()
  }

  @Test func `what one relay has alone is read from it, by a cursor of its own`() async throws {
    let world = try await EngineWorld()
    let old = try LocalSigner(world.community.people[1]).signed(
      EventDraft(
        createdAt: 1_500_000_000, kind: .message, tags: Tags([["h", try group(world)]]),
        content: "only the replica still has this")
    ).event
    let store = try await world.store()
    let first = engine(world, store, [world.url], key: world.member)
    #expect(try await first.syncOnce(SyncPlan(.everything)).isComplete)
    await first.stop()
    let replica = try await Replica(of: world, events: [old])
    let both = engine(world, store, [world.url, replica.url], key: world.member)
    let summary = try await both.syncOnce(SyncPlan(.everything))
    #expect(summary.isComplete)
    #expect(try store.reader.event(id: old.id) != nil)
    // A replica that lacks nearly everything takes nothing from what the home was proved for.
    for relay in [world.url, replica.url] {
      let rows = try store.reader.coverage(asOf: nil).filter { $0.relay == relay }
      let isWhole = rows.contains { row in
        CoverageMap(row.intervals).contains(from: 0, to: world.ports.clock.now() - 60)
      }
      #expect(isWhole, "\(relay)")
    }
    #expect(try store.reader.provenance(of: old.id).map(\.relay) == [replica.url])
    await both.stop()
    await store.close()
  }

  @Test func `a relay that refuses keeps its gap and takes nothing from the other`() async throws {
    for refusesHome in [false, true] {
      var closed = RelayRules()
      closed.authentication.isNeededToRead = true
      let world = try await EngineWorld(rules: refusesHome ? closed : RelayRules())
      let replica = try await Replica(
        of: world, events: world.community.events, rules: refusesHome ? RelayRules() : closed)
      let store = try await world.store()
      let engine = engine(world, store, [world.url, replica.url])
      let summary = try await engine.syncOnce(SyncPlan())
      let refusing = refusesHome ? world.url : replica.url
      #expect(summary.isComplete)
      #expect(!summary.gaps.isEmpty)
      #expect(summary.gaps.allSatisfy { $0.relay == refusing && $0.why.hasPrefix("auth-required") })
      #expect(try store.reader.gaps().allSatisfy { $0.relay == refusing })
      await engine.stop()
      await store.close()
    }
  }

  @Test func `where both relays refuse there is no way on without a key`() async throws {
    var closed = RelayRules()
    closed.authentication.isNeededToRead = true
    let world = try await EngineWorld(rules: closed)
    let replica = try await Replica(of: world, events: world.community.events, rules: closed)
    let store = try await world.store()
    let engine = engine(world, store, [world.url, replica.url])
    await #expect {
      _ = try await engine.syncOnce(SyncPlan())
    } throws: {
      if case .keyNeeded = $0 as? EngineError { true } else { false }
    }
    await engine.stop()
    await store.close()
  }

  // MARK: Whose word counts

  private func authority(_ store: CommunityStore, _ group: Text) async throws -> PublicKey? {
    await store.caughtUp()
    return try store.views.read { view throws(CacheError) in
      try view.groups(now: 2_000_000_000).first { $0.id == group && $0.state == .relay }?.authority
    }
  }

  private func rename(
    _ world: EngineWorld, _ group: Text, by key: SecretKey
  ) throws -> Event {
    try RelaySigner(key).sign(
      EventDraft(
        createdAt: world.ports.clock.now(), kind: .groupMetadata,
        tags: Tags([["d", group], ["name", "taken over"]]), content: "")
    ).event
  }

  @Test func `a replica that names another key brings none in`() async throws {
    let world = try await EngineWorld()
    let group = try group(world)
    let stranger = SecretKey.generate()
    let replica = try await Replica(
      of: world, events: world.community.events + [try rename(world, group, by: stranger)],
      namesSelf: stranger.publicKey)
    let store = try await world.store()
    let engine = engine(world, store, [world.url, replica.url], key: world.member)
    _ = try await engine.syncOnce(SyncPlan())
    let settings = try CommunitySettings(store.reader)
    #expect(settings.relaySelf == world.community.relayKey.publicKey)
    #expect(settings.offeredSelves == [replica.url: stranger.publicKey])
    #expect(try await authority(store, group) == world.community.relayKey.publicKey)
    let offered = await engine.status().relays.map(\.offeredSelf)
    #expect(offered == [nil, stranger.publicKey])
    await engine.stop()
    await store.close()
  }

  @Test func `another key of the home counts only once the user has accepted it`() async throws {
    let world = try await EngineWorld()
    let group = try group(world)
    let store = try await world.store()
    let first = engine(world, store, [world.url], key: world.member)
    _ = try await first.syncOnce(SyncPlan())
    await first.stop()
    let old = world.community.relayKey.publicKey
    #expect(try await authority(store, group) == old)

    let next = SecretKey.generate()
    let renamed = try rename(world, group, by: next)
    await world.host.update { machine, _, _ in
      machine.identity.selfKey = next.publicKey
      // A store in memory takes everything.
      try? machine.load([renamed])
      return []
    }
    let second = engine(world, store, [world.url], key: world.member)
    _ = try await second.syncOnce(SyncPlan())
    await second.stop()
    #expect(try await authority(store, group) == old)
    var settings = try CommunitySettings(store.reader)
    #expect(settings.offeredSelves == [world.url: next.publicKey])

    settings.accept(next.publicKey)
    try await settings.save(to: store.log)
    try await store.note(.relaySelf(world.url, next.publicKey))
    #expect(try await authority(store, group) == next.publicKey)
    let third = engine(world, store, [world.url], key: world.member)
    _ = try await third.syncOnce(SyncPlan())
    await third.stop()
    #expect(try CommunitySettings(store.reader).offeredSelves == [:])
    await store.close()
  }
}
