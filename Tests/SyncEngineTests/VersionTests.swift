import EventLog
import HotCache
import Nostr
import NostrCrypto
import RelayServer
import SyncCore
import SyncEngine
import Testing

/// New versions of one's own replaceable events, and NIP-29's references.
@Suite(.timeLimit(.minutes(4))) struct VersionTests {
  private func profile(_ world: EngineWorld, _ text: Text, age: Int64 = 0) -> EventDraft {
    EventDraft(
      createdAt: world.ports.clock.now() - age, kind: .profile, tags: Tags([[Text]]()),
      content: text)
  }

  private func group(_ world: EngineWorld) throws -> Text {
    let lists = world.community.events.filter { event in
      event.kind == .groupMembers
        && event.tags.contains { $0.bytes32(1) == world.member.publicKey.bytes }
    }
    return try #require(lists.first?.identifier)
  }

  private func current(_ world: EngineWorld) async -> Event? {
    let author = world.member.publicKey
    return await world.host.ask { machine in
      let filter = Filter(authors: [author], kinds: [.profile])
      // A store in memory does not fail.
      return try? machine.store.page(
        PageRequest(filter: filter, eventsMax: 10), where: { _ in true }
      )
      .events.first
    }
  }

  // F82
  @Test func `six versions in one second: the last one wins, and none runs ahead of the clock`()
    async throws
  {
    let world = try await EngineWorld()
    let store = try await world.store()
    let engine = world.engine(store, key: world.member)
    let start = profile(world, "")
    for number in 0..<6 {
      var version = start
      version.content = Text("{\"name\":\"v\(number)\"}")
      _ = try await engine.publish(version)
    }
    #expect(await engine.waitOutbox(for: .seconds(120)) == .reached)
    let last = try #require(await current(world))
    #expect(last.content == "{\"name\":\"v5\"}")
    #expect(last.createdAt <= start.createdAt + 6)
    await engine.stop()
    await store.close()
  }

  @Test func `two versions written at once get two dates`() async throws {
    let world = try await EngineWorld()
    let store = try await world.store()
    let engine = world.engine(store, key: world.member) { $0.isOffline = true }
    let draft = profile(world, "{}")
    var other = draft
    other.content = "{\"name\":\"other\"}"
    let second = other
    async let one = engine.publish(draft)
    async let two = engine.publish(second)
    let ids = [try await one.eventID, try await two.eventID]
    let dates = try ids.map { try store.reader.event(id: $0)?.event.createdAt }
    #expect(Set(dates).count == 2)
    await engine.stop()
    await store.close()
  }

  // F83
  @Test(arguments: [10 * 365 * 86_400, 100] as [Int64])
  func `a version dated far ahead is an error that says so, and one a little ahead is followed`(
    lead: Int64
  ) async throws {
    let world = try await EngineWorld()
    let store = try await world.store()
    let ahead = try LocalSigner(world.member).signed(profile(world, "{}", age: -lead))
    _ = try await store.ingest(
      IngestBatch(events: [ahead], source: world.url, receivedAt: world.ports.clock.now()))
    let engine = world.engine(store, key: world.member) { $0.isOffline = true }
    do throws(EngineError) {
      let message = try await engine.publish(profile(world, "{\"name\":\"new\"}"))
      #expect(lead == 100)
      let event = try? store.reader.event(id: message.eventID)?.event
      #expect(event?.createdAt == ahead.event.createdAt + 1)
    } catch .versionAhead(let date) {
      #expect(lead > 100 && date == ahead.event.createdAt)
      #expect(try store.reader.deliveries(includingSent: true).isEmpty)
    }
    await engine.stop()
    await store.close()
  }

  // F82
  @Test func `an older version is not given a date after a newer one`() async throws {
    var rules = RelayRules()
    rules.writing.ageMax = 900
    let world = try await EngineWorld(rules: rules)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member) { $0.isOffline = true }
    let first = try await engine.publish(profile(world, "{\"name\":\"old\"}", age: 90_000))
    let second = try await engine.publish(profile(world, "{\"name\":\"new\"}", age: 80_000))
    await engine.goOnline()
    #expect(await engine.waitOutbox(for: .seconds(120)) == .reached)
    #expect(try store.reader.message(id: first.id)?.deliveries.first?.state == .expired)
    #expect(try store.reader.message(id: second.id)?.deliveries.first?.state == .sent)
    #expect(await current(world)?.content == "{\"name\":\"new\"}")
    await engine.stop()
    await store.close()
  }

  // MARK: References

  private func message(_ world: EngineWorld, _ text: Text, _ group: Text) -> EventDraft {
    EventDraft(
      createdAt: world.ports.clock.now(), kind: .message, tags: Tags([["h", group]]),
      content: text)
  }

  // F80
  @Test func `a relay that wants references gets them, at once from the second message on`()
    async throws
  {
    var rules = RelayRules()
    rules.writing.needsReferences = true
    let world = try await EngineWorld(rules: rules)
    let group = try group(world)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member)
    _ = try await engine.syncOnce(SyncPlan(.groups([group])))
    let first = try await engine.publish(message(world, "first", group))
    #expect(await engine.waitOutbox(for: .seconds(120)) == .reached)
    let second = try await engine.publish(message(world, "second", group))
    #expect(await engine.waitOutbox(for: .seconds(120)) == .reached)
    let (one, two) = (
      try #require(try store.reader.message(id: first.id)),
      try #require(try store.reader.message(id: second.id))
    )
    #expect(one.deliveries.first?.state == .sent && one.redatedFrom == first.eventID)
    #expect(two.deliveries.first?.state == .sent && two.redatedFrom == nil)
    #expect(two.deliveries.first?.attempts == 1)
    let event = try #require(try store.reader.event(id: two.eventID)?.event)
    let references = try #require(event.tags.first { $0.name == "previous" })
    #expect(references.count == 4)
    #expect(await world.held().isSuperset(of: [one.eventID, two.eventID]))
    #expect(await world.held().contains(first.eventID) == false)
    await engine.stop()
    await store.close()
  }

  // F80
  @Test(arguments: [true, false])
  func `what another relay showed is no reference here, and the refusal is kept for the user`(
    isNeeded: Bool
  ) async throws {
    var rules = RelayRules()
    rules.writing.needsReferences = isNeeded
    let world = try await EngineWorld(rules: rules)
    let group = try group(world)
    let store = try await world.store()
    let verifier = Verifier()
    let events = world.community.events.filter { $0.group == group }
      .compactMap { try? verifier.verify($0) }
    _ = try await store.ingest(
      IngestBatch(
        events: events, source: RelayURL("ws://fork.test"), receivedAt: world.ports.clock.now()))
    let engine = world.engine(store, key: world.member)
    let written = try await engine.publish(message(world, "out of context", group))
    #expect(await engine.waitOutbox(for: .seconds(120)) == .reached)
    let delivery = try #require(try store.reader.message(id: written.id)?.deliveries.first)
    #expect(delivery.state == (isNeeded ? .expired : .sent))
    if isNeeded { #expect(delivery.reason == "invalid: missing previous tag") }
    await engine.stop()
    await store.close()
  }
}
