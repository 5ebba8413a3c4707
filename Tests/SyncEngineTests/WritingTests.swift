import EventLog
import HotCache
import Nostr
import NostrCrypto
import RelayServer
import SyncCore
import SyncEngine
import Testing

@Suite(.timeLimit(.minutes(4))) struct WritingTests {
  private func draft(
    _ world: EngineWorld, _ text: Text, in group: Text, tags: [[Text]] = [], age: Int64 = 0
  ) -> EventDraft {
    EventDraft(
      createdAt: world.ports.clock.now() - age, kind: .message, tags: Tags([["h", group]] + tags),
      content: text)
  }

  /// A group that the world's member may write to.
  private func group(_ world: EngineWorld) async throws -> Text {
    let lists = world.community.events.filter { event in
      event.kind == .groupMembers
        && event.tags.contains { $0.bytes32(1) == world.member.publicKey.bytes }
    }
    return try #require(lists.first?.identifier)
  }

  @Test func `messages written offline arrive once and in order when the relay is back`()
    async throws
  {
    let world = try await EngineWorld()
    let group = try await group(world)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member) { $0.isOffline = true }
    var ids: [EventID] = []
    for number in 0..<3 {
      let message = try await engine.publish(draft(world, Text("message \(number)"), in: group))
      ids.append(message.eventID)
    }
    let reply = try await engine.publish(
      draft(
        world, "a reply", in: group,
        tags: [["e", Text(ids[0].hex), "", "root"], ["e", Text(ids[2].hex), "", "reply"]]))
    #expect(reply.waitsFor != nil)
    ids.append(reply.eventID)
    #expect(await engine.status().outbox == [.queued: 4])
    #expect(await world.held().isDisjoint(with: ids))
    await engine.goOnline()
    #expect(await engine.waitOutbox(for: .seconds(120)) == .reached)
    #expect(Set(ids).isSubset(of: await world.held()))
    #expect(await engine.status().outbox == [:])
    let deliveries = try store.reader.deliveries(includingSent: true)
    #expect(deliveries.allSatisfy { $0.state == .sent && $0.attempts == 1 })
    await engine.stop()
    await store.close()
  }

  @Test func `the same token writes once`() async throws {
    let world = try await EngineWorld()
    let group = try await group(world)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member) { $0.isOffline = true }
    let first = try await engine.publish(draft(world, "once", in: group), token: "t1")
    let second = try await engine.publish(draft(world, "once", in: group, age: 5), token: "t1")
    let third = try await engine.publish(draft(world, "once", in: group, age: 5), token: "t2")
    #expect(first.id == second.id && first.eventID == second.eventID && third.id != first.id)
    await engine.stop()
    await store.close()
  }

  @Test func `an OK that never comes is cleared up by asking for the event`() async throws {
    var rules = RelayRules()
    rules.answers.toEvent = .never
    let world = try await EngineWorld(rules: rules)
    let group = try await group(world)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member) {
      $0.limits.publishMax = .milliseconds(300)
    }
    let message = try await engine.publish(draft(world, "is it there?", in: group))
    #expect(await engine.waitOutbox(for: .seconds(120)) == .reached)
    #expect(try store.reader.message(id: message.id)?.deliveries.first?.state == .sent)
    await engine.stop()
    await store.close()
  }

  @Test func `a lost connection between sending and OK makes no double`() async throws {
    var rules = RelayRules()
    rules.answers.toEvent = .late(.milliseconds(400))
    let world = try await EngineWorld(rules: rules)
    let group = try await group(world)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member)
    await engine.start()
    let before = await world.held().count
    let message = try await engine.publish(draft(world, "cut", in: group))
    while await !world.held().contains(message.eventID) { await Task.yield() }
    world.network.cutAll()
    #expect(await engine.waitOutbox(for: .seconds(120)) == .reached)
    #expect(await world.held().count == before + 1)
    #expect(try store.reader.message(id: message.id)?.deliveries.first?.state == .sent)
    await engine.stop()
    await store.close()
  }

  @Test func `a one-shot run goes on while messages are taken, however long all of them take`()
    async throws
  {
    var rules = RelayRules()
    rules.answers.toEvent = .late(.milliseconds(800))
    let world = try await EngineWorld(rules: rules)
    let group = try await group(world)
    let store = try await world.store()
    let offline = world.engine(store, key: world.member) { $0.isOffline = true }
    for number in 0..<8 {
      _ = try await offline.publish(draft(world, Text("message \(number)"), in: group))
    }
    await offline.stop()
    let engine = world.engine(store, key: world.member) {
      $0.limits.settlePatience = .seconds(4)
    }
    let summary = try await engine.syncOnce(SyncPlan(.groups([group])))
    #expect(summary.sent == 8 && summary.queued == 0)
    await engine.stop()
    await store.close()
  }

  @Test func `a one-shot run leaves what a relay never answers, and counts it`() async throws {
    var rules = RelayRules()
    rules.answers.toEvent = .never
    let world = try await EngineWorld(rules: rules)
    let group = try await group(world)
    let store = try await world.store()
    let offline = world.engine(store, key: world.member) { $0.isOffline = true }
    _ = try await offline.publish(draft(world, "unheard", in: group))
    await offline.stop()
    let engine = world.engine(store, key: world.member) {
      $0.limits.settlePatience = .seconds(1)
    }
    let summary = try await engine.syncOnce(SyncPlan(.groups([group])))
    #expect(summary.sent == 0 && summary.queued == 1)
    await engine.stop()
    await store.close()
  }

  @Test
  func `what never left is taken back with what was said about it, and the relay sees neither`()
    async throws
  {
    let world = try await EngineWorld()
    let group = try await group(world)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member) { $0.isOffline = true }
    let secret = try await engine.publish(draft(world, "a slip", in: group))
    let edit = try await engine.publish(
      EventDraft(
        createdAt: world.ports.clock.now(), kind: .edit,
        tags: Tags([["h", group], ["e", Text(secret.eventID.hex)]]), content: "a smaller slip"))
    let other = try await engine.publish(draft(world, "meant", in: group))
    #expect(try await engine.takeBack(secret.id))
    await engine.goOnline()
    #expect(await engine.waitOutbox(for: .seconds(120)) == .reached)
    let held = await world.held()
    #expect(held.isDisjoint(with: [secret.eventID, edit.eventID]))
    #expect(held.contains(other.eventID))
    #expect(await engine.status().outbox == [:])
    // What a relay has takes a deletion.
    #expect(try await engine.takeBack(other.id) == false)
    await #expect(throws: EngineError.self) { try await engine.discard(other.id) }
    #expect(try store.reader.message(id: other.id)?.isDiscarded == false)
    await engine.stop()
    await store.close()
  }

  @Test func `a refused message is kept with the relay's words, and the next one is sent`()
    async throws
  {
    let world = try await EngineWorld()
    let group = try await group(world)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member)
    let poison = try await engine.publish(draft(world, "to nowhere", in: "no-such-group"))
    let good = try await engine.publish(draft(world, "to somewhere", in: group))
    #expect(await engine.waitOutbox(for: .seconds(120)) == .reached)
    let refused = try #require(try store.reader.message(id: poison.id)?.deliveries.first)
    #expect(refused.state == .refused && refused.reason?.isEmpty == false)
    #expect(try store.reader.message(id: good.id)?.deliveries.first?.state == .sent)
    try await engine.discard(poison.id)
    #expect(await engine.status().outbox == [:])
    await engine.stop()
    await store.close()
  }

  @Test func `an old message gets a new date where the relay takes no old ones, with its reply`()
    async throws
  {
    var rules = RelayRules()
    rules.writing.ageMax = 900
    let world = try await EngineWorld(rules: rules)
    let group = try await group(world)
    let store = try await world.store()
    let offline = world.engine(store, key: world.member) { $0.isOffline = true }
    let old = try await offline.publish(draft(world, "yesterday", in: group, age: 90_000))
    let reply = try await offline.publish(
      draft(
        world, "and after", in: group, tags: [["e", Text(old.eventID.hex), "", "reply"]],
        age: 80_000))
    await offline.stop()
    let engine = world.engine(store, key: world.member)
    _ = try await engine.syncOnce(SyncPlan(.groups([group])))
    #expect(await engine.waitOutbox(for: .seconds(120)) == .reached)
    let moved = try #require(try store.reader.message(id: old.id))
    #expect(moved.eventID != old.eventID && moved.redatedFrom == old.eventID)
    #expect(moved.deliveries.first?.state == .sent)
    let answer = try #require(try store.reader.message(id: reply.id))
    #expect(answer.deliveries.first?.state == .sent)
    let event = try #require(try store.reader.event(id: answer.eventID)?.event)
    #expect(event.tags.contains { $0.bytes32(1) == moved.eventID.bytes })
    let held = await world.held()
    #expect(held.contains(moved.eventID) && !held.contains(old.eventID))
    await engine.stop()
    await store.close()
  }

  @Test func `without re-dating such a message expires and stays as it was`() async throws {
    var rules = RelayRules()
    rules.writing.ageMax = 900
    let world = try await EngineWorld(rules: rules)
    let group = try await group(world)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member) { $0.isRedating = false }
    let old = try await engine.publish(draft(world, "yesterday", in: group, age: 90_000))
    #expect(await engine.waitOutbox(for: .seconds(120)) == .reached)
    let kept = try #require(try store.reader.message(id: old.id))
    #expect(kept.eventID == old.eventID && kept.deliveries.first?.state == .expired)
    await engine.stop()
    await store.close()
  }
}
