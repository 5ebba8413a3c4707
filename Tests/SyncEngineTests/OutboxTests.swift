import EventLog
import HotCache
import Nostr
import NostrCrypto
import Platform
import RelayServer
import RelaySocket
import SyncCore
import SyncEngine
import Testing

/// What must be true of messages on their way, whole engines and a relay in memory.
@Suite(.timeLimit(.minutes(4))) struct OutboxTests {
  private func draft(
    _ world: EngineWorld, _ text: Text, in group: Text, kind: EventKind = .message,
    tags: [[Text]] = [], age: Int64 = 0
  ) -> EventDraft {
    EventDraft(
      createdAt: world.ports.clock.now() - age, kind: kind, tags: Tags([["h", group]] + tags),
      content: text)
  }

  private func group(_ world: EngineWorld) throws -> Text {
    let lists = world.community.events.filter { event in
      event.kind == .groupMembers
        && event.tags.contains { $0.bytes32(1) == world.member.publicKey.bytes }
    }
    return try #require(lists.first?.identifier)
  }

  private func state(_ store: CommunityStore, _ message: Message) throws -> DeliveryState? {
    try store.reader.message(id: message.id)?.deliveries.first?.state
  }

  private func event(_ store: CommunityStore, _ message: Message) throws -> Event {
    let now = try #require(try store.reader.message(id: message.id))
    return try #require(try store.reader.event(id: now.eventID)?.event)
  }

  // MARK: Handing over

  // F72
  @Test func `no frame leaves before the log says that it was handed over`() async throws {
    let world = try await EngineWorld()
    let group = try group(world)
    let store = try await world.store()
    let seen = Lock<[Delivery]>([])
    let ports = Ports(
      clock: world.ports.clock, random: world.ports.random, tasks: world.ports.tasks,
      transport: TappedTransport(inner: world.network) { bytes in
        guard bytes.starts(with: Array(#"["EVENT""#.utf8)) else { return }
        // A log that cannot be read shows as a delivery that is missing.
        let rows = (try? store.reader.deliveries(includingSent: true)) ?? []
        seen.withLock { $0 += rows.suffix(1) }
      }, relayInformation: world.network, work: world.ports.work)
    let engine = Engine(
      store: store, relays: [world.url], ports: ports, signer: LocalSigner(world.member))
    _ = try await engine.publish(draft(world, "first on the disk", in: group))
    #expect(await engine.waitOutbox(for: .seconds(120)) == .reached)
    let atSending = seen.withLock { $0 }
    #expect(!atSending.isEmpty)
    #expect(atSending.allSatisfy { $0.state == .sending && $0.handedAt != nil })
    await engine.stop()
    await store.close()
  }

  // F70
  @Test func `an OK after its deadline still counts, and nothing is sent twice`() async throws {
    var rules = RelayRules()
    rules.answers.toEvent = .late(.milliseconds(500))
    let world = try await EngineWorld(rules: rules)
    let group = try group(world)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member) {
      $0.limits.publishMax = .milliseconds(200)
    }
    let before = await world.held().count
    let message = try await engine.publish(draft(world, "late", in: group))
    #expect(await engine.waitOutbox(for: .seconds(120)) == .reached)
    #expect(try state(store, message) == .sent)
    #expect(await world.held().count == before + 1)
    await engine.stop()
    await store.close()
  }

  // F81
  @Test(arguments: [true, false])
  func `an echo and an OK, or the echo alone, give one sent row`(hasOK: Bool) async throws {
    var rules = RelayRules()
    if !hasOK { rules.answers.toEvent = .never }
    let world = try await EngineWorld(rules: rules)
    let group = try group(world)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member)
    await engine.start()
    _ = await engine.waitLive(for: .seconds(30))
    let message = try await engine.publish(draft(world, "one bubble", in: group))
    #expect(await engine.waitOutbox(for: .seconds(120)) == .reached)
    #expect(try state(store, message) == .sent)
    await store.caughtUp()
    let now = world.ports.clock.now()
    let rows = try store.views.read { snapshot throws(CacheError) in
      try snapshot.timeline(group, now: now)
    }
    #expect(rows.filter { $0.id == message.eventID }.count == 1)
    await engine.stop()
    await store.close()
  }

  // F85
  @Test func `one token used twice at once writes one message`() async throws {
    let world = try await EngineWorld()
    let group = try group(world)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member) { $0.isOffline = true }
    async let first = engine.publish(draft(world, "enter", in: group), token: "t")
    async let second = engine.publish(draft(world, "enter", in: group, age: 1), token: "t")
    let (one, two) = (try await first, try await second)
    #expect(one.id == two.id)
    #expect(try store.reader.deliveries(includingSent: true).count == 1)
    await engine.stop()
    await store.close()
  }

  // F73
  @Test func `joining a group that one is in already is a success`() async throws {
    let world = try await EngineWorld()
    let group = try group(world)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member)
    let join = try await engine.publish(draft(world, "", in: group, kind: 9021))
    #expect(await engine.waitOutbox(for: .seconds(120)) == .reached)
    #expect(try state(store, join) == .sent)
    await engine.stop()
    await store.close()
  }

  // MARK: Where to

  // F77
  @Test func `while the home is away nothing goes to another relay`() async throws {
    let world = try await EngineWorld()
    let group = try group(world)
    let store = try await world.store()
    let away = try #require(RelayURL("ws://away.test:7777"))
    let engine = Engine(
      store: store, relays: [away, world.url], ports: world.ports,
      signer: LocalSigner(world.member))
    await engine.start()
    let message = try await engine.publish(draft(world, "for the home alone", in: group))
    try await engine.reach {
      let status = await engine.status()
      guard case .backingOff = status.relays.first?.state else { return false }
      return status.relays.last?.state == .ready
    }
    #expect(await engine.waitOutbox(for: .seconds(1)) != .reached)
    #expect(await world.held().contains(message.eventID) == false)
    #expect(try store.reader.message(id: message.id)?.deliveries.map(\.relay) == [away])
    await engine.stop()
    await store.close()
  }

  // F78, F84
  @Test
  func `what one of two relays took goes to the other later, with another's signature as it is`()
    async throws
  {
    let world = try await EngineWorld()
    let store = try await world.store()
    let away = try #require(RelayURL("ws://away.test:7777"))
    // Neither written here nor signed by this key.
    let foreign = try LocalSigner(world.community.people[1]).signed(
      EventDraft(
        createdAt: world.ports.clock.now(), kind: .profile, tags: Tags([[Text]]()), content: "{}"))
    let message = try await store.enqueue(foreign, to: [world.url, away])
    let engine = Engine(
      store: store, relays: [world.url, away], ports: world.ports,
      signer: LocalSigner(world.member))
    await engine.start()
    func states() throws -> [RelayURL: DeliveryState] {
      let rows = try store.reader.message(id: message.id)?.deliveries ?? []
      return Dictionary(uniqueKeysWithValues: rows.map { ($0.relay, $0.state) })
    }
    try await engine.reach { try states() == [world.url: .sent, away: .queued] }
    #expect(await world.held().contains(foreign.event.id))
    await engine.stop()
    let machine = RelayMachine(
      identity: RelayIdentity(
        name: "back", urls: [away], signer: RelaySigner(world.community.relayKey)),
      rules: .withoutGroups
    ) { _ in true }
    let host = RelayHost(machine, ports: world.ports, executor: ThreadExecutor())
    try await host.start(on: world.network, host: "away.test", port: 7777)
    let again = Engine(
      store: store, relays: [world.url, away], ports: world.ports,
      signer: LocalSigner(world.member))
    await again.start()
    #expect(await again.waitOutbox(for: .seconds(120)) == .reached)
    #expect(try states() == [world.url: .sent, away: .sent])
    #expect(try store.reader.message(id: message.id)?.eventID == foreign.event.id)
    await again.stop()
    await store.close()
  }

  // F84
  @Test func `another's event outside the window is not signed anew`() async throws {
    var rules = RelayRules()
    rules.writing.ageMax = 900
    let world = try await EngineWorld(rules: rules)
    let store = try await world.store()
    let foreign = try LocalSigner(world.community.people[1]).signed(
      EventDraft(
        createdAt: world.ports.clock.now() - 90_000, kind: .profile, tags: Tags([[Text]]()),
        content: "{}"))
    let message = try await store.enqueue(foreign, to: [world.url])
    let engine = world.engine(store, key: world.member)
    await engine.start()
    #expect(await engine.waitOutbox(for: .seconds(120)) == .reached)
    let kept = try #require(try store.reader.message(id: message.id))
    #expect(kept.eventID == foreign.event.id && kept.deliveries.first?.state == .expired)
    #expect(kept.deliveries.first?.reason?.string.contains("another key") == true)
    await engine.stop()
    await store.close()
  }

  // MARK: New dates

  // F79
  @Test func `what answers a re-dated message follows it, and all keep their order`() async throws {
    var rules = RelayRules()
    rules.writing.ageMax = 900
    let world = try await EngineWorld(rules: rules)
    let group = try group(world)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member) { $0.isOffline = true }
    let old = try await engine.publish(draft(world, "yesterday", in: group, age: 90_000))
    let target = Text(old.eventID.hex)
    var followers: [Message] = []
    for (kind, tags) in [
      (EventKind.message, [["e", target, "", "reply"]]), (.reaction, [["e", target]]),
      (40003, [["e", target]]),
    ] as [(EventKind, [[Text]])] {
      followers.append(
        try await engine.publish(
          draft(world, "+", in: group, kind: kind, tags: tags, age: 89_000)))
    }
    await engine.goOnline()
    #expect(await engine.waitOutbox(for: .seconds(120)) == .reached)
    let first = try event(store, old)
    #expect(first.id != old.eventID)
    var dates = [first.createdAt]
    for follower in followers {
      #expect(try state(store, follower) == .sent)
      let event = try event(store, follower)
      #expect(event.tags.contains { $0.name == "e" && $0.bytes32(1) == first.id.bytes })
      dates.append(event.createdAt)
    }
    #expect(dates == Array(Set(dates)).sorted())
    let now = world.ports.clock.now()
    #expect(dates.allSatisfy { now - 60 <= $0 && $0 <= now + 10 })
    await engine.stop()
    await store.close()
  }

  @Test func `a reply that was refused follows its parent's new id when it is tried again`()
    async throws
  {
    var rules = RelayRules()
    rules.writing.ageMax = 900
    rules.writing.checksParent = true
    let world = try await EngineWorld(rules: rules)
    let group = try group(world)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member) { $0.isRedating = false }
    let old = try await engine.publish(draft(world, "yesterday", in: group, age: 90_000))
    let reply = try await engine.publish(
      draft(world, "and now", in: group, tags: [["e", Text(old.eventID.hex), "", "reply"]]))
    #expect(await engine.waitOutbox(for: .seconds(30)) == .reached)
    #expect(try state(store, old) == .expired && state(store, reply) == .held)
    try await engine.retry(reply.id)
    #expect(await engine.waitOutbox(for: .seconds(30)) == .reached)
    #expect(try state(store, reply) == .refused)
    try await engine.retry(old.id)
    #expect(await engine.waitOutbox(for: .seconds(30)) == .reached)
    #expect(try state(store, old) == .sent)
    try await engine.retry(reply.id)
    #expect(await engine.waitOutbox(for: .seconds(30)) == .reached)
    #expect(try state(store, reply) == .sent)
    let parent = try event(store, old)
    let answer = try event(store, reply)
    #expect(parent.id != old.eventID && answer.id != reply.eventID)
    #expect(answer.tags.contains { $0.name == "e" && $0.bytes32(1) == parent.id.bytes })
    #expect(await world.held().isDisjoint(with: [old.eventID, reply.eventID]))
    await engine.stop()
    await store.close()
  }

  @Test func `a run ends at once where all that waits waits for a time far off`() async throws {
    let world = try await EngineWorld()
    let url = try #require(RelayURL("ws://mute.test"))
    let relay = try await ScriptedRelay(
      on: world.network, host: "mute.test", port: 80, tasks: world.ports.tasks
    ) { message in
      switch message {
      case .req(let id, _): [.eose(id, hints: [])]
      case .event(let event):
        [.ok(event.id, accepted: false, "restricted: you are timed out until 4102444800")]
      default: []
      }
    }
    let store = try await world.store()
    var options = EngineOptions()
    // A run that waited for the outbox would outlast the suite.
    options.limits.publishMax = .seconds(3600)
    options.limits.negotiationProbeMax = .milliseconds(100)
    let engine = Engine(
      store: store, relays: [url], ports: world.ports, signer: LocalSigner(world.member),
      options: options)
    let first = try await engine.publish(draft(world, "first", in: "g"))
    let second = try await engine.publish(draft(world, "second", in: "g"))
    let summary = try await engine.syncOnce(SyncPlan(.groups(["g"])))
    #expect(summary.queued == 2 && summary.sent == 0)
    #expect(try state(store, first) == .held && state(store, second) == .queued)
    let why = try store.reader.message(id: second.id)?.deliveries.first?.reason
    #expect(why?.string == "stands behind message \(first.id) of its group, which is held")
    await engine.stop()
    await store.close()
    await relay.stop()
  }

  @Test func `an answer to a message discarded in an earlier run is not sent`() async throws {
    let world = try await EngineWorld()
    let group = try group(world)
    let store = try await world.store()
    let offline = world.engine(store, key: world.member) { $0.isOffline = true }
    let parent = try await offline.publish(draft(world, "never mind", in: group))
    let reply = try await offline.publish(
      draft(world, "why", in: group, tags: [["e", Text(parent.eventID.hex), "", "reply"]]))
    await offline.stop()
    try await store.discard(parent.id)
    let engine = world.engine(store, key: world.member)
    await engine.start()
    #expect(await engine.waitOutbox(for: .seconds(120)) == .reached)
    #expect(try state(store, reply) == .refused)
    #expect(await world.held().isDisjoint(with: [parent.eventID, reply.eventID]))
    await engine.stop()
    await store.close()
  }
}
