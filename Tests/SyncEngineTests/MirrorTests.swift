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

@Suite(.timeLimit(.minutes(1))) struct MirrorTests {
  @Test func `a mirror of everything holds what the relay serves, and a second run stores nothing`()
    async throws
  {
    var rules = RelayRules.withoutGroups
    rules.reading.pageMax = 100
    rules.answers.hints = false
    let world = try await EngineWorld(rules: rules)
    let store = try await world.store()
    let engine = world.engine(store) { $0.isReadOnly = true }
    let summary = try await engine.syncOnce(SyncPlan(.everything))
    #expect(try store.ids() == (await world.held()))
    #expect(summary.isComplete && summary.gaps.isEmpty)
    #expect(summary.stored == summary.viaPaging && summary.stored > 500)
    let again = try await engine.syncOnce(SyncPlan(.everything))
    #expect(again.stored == 0 && again.isComplete)
    await engine.stop()
    await store.close()
  }

  @Test func `a relay that asks for AUTH is mirrored with a key`() async throws {
    let world = try await EngineWorld(rules: .membersOnly)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member) { $0.isReadOnly = true }
    let summary = try await engine.syncOnce(SyncPlan(.everything))
    #expect(summary.isComplete)
    #expect(summary.stored > 500)
    #expect(await engine.status().relays.first?.isAuthenticated == true)
    await engine.stop()
    await store.close()
  }

  @Test func `without a key such a relay is an error that names the way out`() async throws {
    let world = try await EngineWorld(rules: .membersOnly)
    let store = try await world.store()
    let engine = world.engine(store) { $0.isReadOnly = true }
    do throws(EngineError) {
      _ = try await engine.syncOnce(SyncPlan(.everything))
      Issue.record("it was served")
    } catch {
      guard case .keyNeeded(world.url, _) = error else {
        Issue.record("\(error)")
        return
      }
    }
    await engine.stop()
    await store.close()
  }

  @Test func `the community is its groups, their events and their people`() async throws {
    let world = try await EngineWorld()
    let store = try await world.store()
    let engine = world.engine(store, key: world.member)
    let summary = try await engine.syncOnce(SyncPlan())
    #expect(summary.isComplete, "\(summary.gaps)")
    let groups = try store.views.read { view throws(CacheError) in
      try view.groups(now: world.ports.clock.now()).count
    }
    #expect(groups >= 5)
    let again = try await engine.syncOnce(SyncPlan())
    #expect(again.stored == 0)
    await engine.stop()
    await store.close()
  }

  /// Bounds that leave out all of the demo community.
  enum Bound: CaseIterable {
    case since, until
  }

  @Test(arguments: Bound.allCases, [SyncPlan.Extent.community, .everything])
  func `a bound on dates leaves out no group, and nothing of what is said of one`(
    bound: Bound, extent: SyncPlan.Extent
  ) async throws {
    let world = try await EngineWorld(rules: .withoutGroups)
    let kinds = SyncScopes.stateKinds + [.groupMetadata]
    let dates = await world.events().map(\.createdAt)
    var plan = SyncPlan(extent)
    let inside: Timestamp
    switch bound {
    case .since:
      plan.since = try #require(dates.max()) + 10
      inside = try #require(dates.max()) + 20
    case .until:
      plan.until = try #require(dates.min()) - 10
      inside = try #require(dates.min()) - 20
    }
    let message = try world.message("inside", at: inside)
    try await world.post([message])
    let store = try await world.store()
    let engine = world.engine(store, key: world.member) { $0.isReadOnly = true }
    let summary = try await engine.syncOnce(plan)
    #expect(summary.isComplete, "\(summary.gaps)")
    let ids = try store.ids()
    #expect(await world.held(Filter(kinds: kinds)).isSubset(of: ids))
    #expect(ids.contains(message.id))
    // The bound holds for what people wrote.
    let outside = await world.events(Filter(kinds: [.message])).filter { event in
      plan.since.map { event.createdAt < $0 } ?? plan.until.map { event.createdAt > $0 } ?? false
    }
    #expect(!outside.isEmpty && outside.allSatisfy { !ids.contains($0.id) })
    await engine.stop()
    await store.close()
  }

  @Test(arguments: [false, true])
  func `a group is mirrored with every kind that is in it, where the relay lets`(isLetting: Bool)
    async throws
  {
    let twin = try await DemoCommunity.make(seed: 1, eventsCount: 60, on: InlineWork())
    let group = try #require(twin.events.first { $0.kind == .groupMetadata }?.identifier)
    let odd = try LocalSigner(twin.people[0]).signed(
      EventDraft(
        createdAt: 1_750_000_000, kind: 31_999, tags: Tags([["h", group], ["d", "x"]]),
        content: "of a kind that nobody here knows")
    ).event
    var rules = RelayRules()
    rules.reading.ignoresKindlessFilters = !isLetting
    let world = try await EngineWorld(rules: rules, events: 60, extra: [odd])
    let store = try await world.store()
    let engine = world.engine(store, key: world.member)
    let summary = try await engine.syncOnce(SyncPlan(.groups([group])))
    #expect(summary.isComplete, "\(summary.gaps)")
    #expect(try store.ids().contains(odd.id) == isLetting)
    await engine.stop()
    await store.close()
  }

  // F27
  @Test(arguments: [false, true])
  func `a busy kind keeps no message out, whatever share of the pages it takes`(isLetting: Bool)
    async throws
  {
    let twin = try await DemoCommunity.make(seed: 1, eventsCount: 60, on: InlineWork())
    let group = try #require(twin.events.first { $0.kind == .groupMetadata }?.identifier)
    let signer = LocalSigner(twin.people[0])
    let busy = try (0..<600).map { number in
      let target = Text(String(repeating: "0", count: 60) + String(1000 + number))
      return try signer.signed(
        EventDraft(
          createdAt: 1_750_000_000 + Int64(number), kind: .deletion,
          tags: Tags([["e", target], ["h", group]]), content: .empty)
      ).event
    }
    let messages = try (0..<20).map { number in
      try signer.signed(
        EventDraft(
          createdAt: 1_749_000_000 + Int64(number), kind: .message, tags: Tags([["h", group]]),
          content: Text("\(number)"))
      ).event
    }
    var rules = RelayRules()
    rules.reading.pageMax = 500
    rules.reading.ignoresKindlessFilters = !isLetting
    let world = try await EngineWorld(rules: rules, events: 60, extra: busy + messages)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member)
    _ = try await engine.syncOnce(SyncPlan(.groups([group])))
    let ids = try store.ids()
    #expect(ids.isSuperset(of: messages.map(\.id)))
    #expect(ids.isSuperset(of: busy.map(\.id)))
    await engine.stop()
    await store.close()
  }

  @Test func `duplicates are events that were held before, and no second look of ours`()
    async throws
  {
    var rules = RelayRules()
    rules.reading.pageMax = 100
    let world = try await EngineWorld(rules: rules)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member) { $0.isReadOnly = true }
    var plan = SyncPlan(.everything)
    plan.isFull = true
    let first = try await engine.syncOnce(plan)
    #expect(first.stored > 500 && first.duplicates == 0)
    let again = try await engine.syncOnce(plan)
    #expect(again.stored == 0 && again.duplicates == first.stored)
    await engine.stop()
    await store.close()
  }

  @Test func `a refused group is a gap in the relay's own words and the rest is read`() async throws
  {
    var rules = RelayRules()
    rules.reading.refusedKinds = [7]
    // A filter without kinds would bring them along.
    rules.reading.ignoresKindlessFilters = true
    let world = try await EngineWorld(rules: rules)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member)
    let summary = try await engine.syncOnce(SyncPlan())
    #expect(!summary.isComplete)
    #expect(summary.gaps.contains { $0.why.string.contains("does not serve") }, "\(summary.gaps)")
    let held = await world.held(Filter(kinds: [9]))
    #expect(held.isSubset(of: try store.ids()))
    await engine.stop()
    await store.close()
  }

  @Test func `where a filter without kinds is refused, every class and every group is asked for`()
    async throws
  {
    var rules = RelayRules()
    rules.reading.kindsGatedByRecipient = [1059]
    let world = try await EngineWorld(rules: rules)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member) { $0.isReadOnly = true }
    let summary = try await engine.syncOnce(SyncPlan(.everything))
    #expect(summary.stored > 500)
    await engine.stop()
    await store.close()
  }

  @Test func `a relay that answers a filter without kinds with nothing is asked by classes`()
    async throws
  {
    var rules = RelayRules()
    rules.reading.ignoresKindlessFilters = true
    let world = try await EngineWorld(rules: rules)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member) { $0.isReadOnly = true }
    let summary = try await engine.syncOnce(SyncPlan(.everything))
    #expect(summary.stored > 500)
    #expect(
      try store.reader.coverage(asOf: nil).allSatisfy { $0.scope != SyncScopes.everything.key })
    await engine.stop()
    await store.close()
  }

  @Test func `a relay that challenges and serves strangers is mirrored without a key, twice`()
    async throws
  {
    let world = try await EngineWorld()
    let store = try await world.store()
    let engine = world.engine(store) { $0.isReadOnly = true }
    #expect(try await engine.syncOnce(SyncPlan(.everything)).stored > 0)
    let again = try await engine.syncOnce(SyncPlan(.everything))
    #expect(again.stored == 0 && again.isComplete)
    await engine.stop()
    await store.close()
  }

  @Test func `a relay that challenges and shows a stranger nothing wants a key`() async throws {
    var rules = RelayRules()
    rules.reading.ignoresKindlessFilters = true
    rules.reading.truncatedTo = 0
    let world = try await EngineWorld(rules: rules)
    let store = try await world.store()
    let engine = world.engine(store) { $0.isReadOnly = true }
    do throws(EngineError) {
      _ = try await engine.syncOnce(SyncPlan(.everything))
      Issue.record("it was believed")
    } catch {
      guard case .keyNeeded = error else {
        Issue.record("\(error)")
        return
      }
    }
    #expect(try store.reader.coverage(asOf: nil).isEmpty)
    await engine.stop()
    await store.close()
  }

  @Test
  func `a stranger who asks an open relay for a group that is not there hears that it is empty`()
    async throws
  {
    let world = try await EngineWorld()
    for round in 0..<5 {
      let store = try await world.store("round \(round)")
      let engine = world.engine(store) { $0.isReadOnly = true }
      let summary = try await engine.syncOnce(SyncPlan(.groups(["no-such-group"])))
      #expect(summary.isComplete && summary.stored == 0)
      await engine.stop()
      await store.close()
    }
  }

  @Test func `what was proved under a clock that was ahead is read again`() async throws {
    var rules = RelayRules.withoutGroups
    rules.reading.pageMax = 100
    let world = try await EngineWorld(rules: rules)
    let store = try await world.store()
    let year: Int64 = 365 * 86_400
    let ahead = world.engine(store, ports: world.ports(clockOffset: year)) { $0.isReadOnly = true }
    #expect(try await ahead.syncOnce(SyncPlan(.everything)).isComplete)
    await ahead.stop()

    let signer = LocalSigner(world.member)
    let old = world.ports.clock.now() - 20 * 86_400
    let late = try (0..<50 as Range<Int64>).map { step in
      try signer.signed(
        EventDraft(createdAt: old + step, kind: .note, tags: Tags([[Text]]()), content: "late")
      ).event
    }
    await world.host.update { machine, _, _ in
      // A store in memory does not fail.
      try? machine.load(late)
      return []
    }
    let engine = world.engine(store) { $0.isReadOnly = true }
    #expect(try await engine.syncOnce(SyncPlan(.everything)).stored == late.count)
    #expect(try store.ids() == (await world.held()))
    let now = world.ports.clock.now()
    #expect(
      try store.reader.coverage(asOf: nil).flatMap(\.intervals).allSatisfy { $0.to <= now })
    await engine.stop()
    await store.close()
  }

  @Test func `another key proves everything anew`() async throws {
    let world = try await EngineWorld()
    let store = try await world.store()
    let stranger = world.engine(store) { $0.isReadOnly = true }
    let first = try await stranger.syncOnce(SyncPlan(.everything))
    #expect(first.stored > 0)
    await stranger.stop()
    let member = world.engine(store, key: world.member) { $0.isReadOnly = true }
    let second = try await member.syncOnce(SyncPlan(.everything))
    #expect(second.duplicates >= first.stored)
    await member.stop()
    let again = world.engine(store, key: world.member) { $0.isReadOnly = true }
    let third = try await again.syncOnce(SyncPlan(.everything))
    #expect(third.stored == 0 && third.duplicates < second.duplicates)
    await again.stop()
    await store.close()
  }

  @Test func `a relay that has answered stays one that was reached when it goes`() async throws {
    let world = try await EngineWorld()
    let store = try await world.store()
    let away = try #require(RelayURL("ws://away.test:7777"))
    let engine = Engine(
      store: store, relays: [world.url, away], ports: world.ports, signer: nil,
      options: EngineOptions())
    await engine.start()
    try await engine.reach { await engine.status().relays.first?.state == .ready }
    await world.host.stop()
    try await engine.reach {
      await engine.status().relays.allSatisfy { relay in
        if case .backingOff = relay.state { true } else { false }
      }
    }
    #expect(await engine.status().relays.map(\.wasReached) == [true, false])
    await engine.stop()
    await store.close()
  }

  @Test func `a relay that is not there ends the run in the time that was given`() async throws {
    let world = try await EngineWorld()
    await world.host.stop()
    let store = try await world.store()
    let engine = world.engine(store)
    var plan = SyncPlan()
    plan.failAfter = .milliseconds(200)
    do throws(EngineError) {
      _ = try await engine.syncOnce(plan)
      Issue.record("it was reached")
    } catch {
      guard case .noRelayReached(let relays) = error else {
        Issue.record("\(error)")
        return
      }
      #expect(relays.count == 1)
    }
    await engine.stop()
    await store.close()
  }

  @Test(arguments: [AnswerRules.Lie.foreignSubscription, .unasked, .swappedContent])
  func `a lie is counted under its relay and never stored`(lie: AnswerRules.Lie) async throws {
    var rules = RelayRules.withoutGroups
    rules.answers.lies = [lie]
    let world = try await EngineWorld(rules: rules)
    let store = try await world.store()
    let engine = world.engine(store) { $0.isReadOnly = true }
    // A filter of everything cannot be lied to about what was asked.
    let summary = try await engine.syncOnce(SyncPlan(lie == .unasked ? .community : .everything))
    #expect(try store.ids().isSubset(of: await world.held()))
    let faults = try #require(await engine.status().relays.first).faults
    #expect(
      faults[.unknownSubscription] + faults[.foreignEvent] + (summary.rejected["id"] ?? 0) > 0)
    await engine.stop()
    let counts = try store.reader.counts()
    #expect(counts.faults.reduce(0) { $0 + $1.count } == faults.total)
    #expect(counts.faults.isEmpty == (lie == .swappedContent))
    await store.close()
  }
}
