import EventLog
import HotCache
import Nostr
import NostrCrypto
import RelayServer
import SyncCore
import SyncEngine
import Testing

@Suite(.timeLimit(.minutes(4))) struct ReconcilingTests {
  private func rules(_ way: ReadingRules.Reconciliation) -> RelayRules {
    var rules = RelayRules.withoutGroups
    rules.reading.reconciliation = way
    return rules
  }

  private func mirror(
    _ world: EngineWorld, _ store: CommunityStore, _ plan: SyncPlan = SyncPlan(.everything),
    probeMax: Duration = .seconds(60)
  ) async throws -> SyncSummary {
    let engine = world.engine(store) { options in
      options.isReadOnly = true
      // Only a relay that never answers may be given up soon: on a busy machine one that does is slow.
      options.limits.negotiationProbeMax = probeMax
    }
    let summary = try await engine.syncOnce(plan)
    await engine.stop()
    return summary
  }

  @Test func `where NIP-77 is served all comes by it, and the second run transfers nothing`()
    async throws
  {
    let world = try await EngineWorld(rules: rules(.served(itemsMax: 100_000)))
    let store = try await world.store()
    let summary = try await mirror(world, store)
    #expect(try store.ids() == (await world.held()))
    #expect(summary.isComplete && summary.gaps.isEmpty)
    #expect(summary.viaNegentropy == summary.stored && summary.viaPaging == 0)
    let proofs = try store.reader.coverage(asOf: nil).flatMap(\.intervals)
    #expect(!proofs.isEmpty && proofs.allSatisfy { $0.method == .negentropy && $0.from == 0 })
    let again = try await mirror(world, store)
    #expect(again.stored == 0 && again.duplicates == 0 && again.isComplete)
    await store.close()
  }

  @Test(arguments: [
    ReadingRules.Reconciliation.refusedByNotice, .refusedByClosed, .refusedByError, .ignored,
  ])
  func `where it is refused, in whatever way, pages bring the same set`(
    way: ReadingRules.Reconciliation
  ) async throws {
    let world = try await EngineWorld(rules: rules(way))
    let store = try await world.store()
    let probeMax = way == .ignored ? Duration.milliseconds(300) : .seconds(60)
    let summary = try await mirror(world, store, probeMax: probeMax)
    #expect(try store.ids() == (await world.held()))
    #expect(summary.isComplete)
    #expect(summary.viaPaging == summary.stored && summary.viaNegentropy == 0)
    await store.close()
  }

  @Test func `a set over the relay's cap comes in windows`() async throws {
    let world = try await EngineWorld(rules: rules(.served(itemsMax: 50)))
    let store = try await world.store()
    let summary = try await mirror(world, store)
    #expect(try store.ids() == (await world.held()))
    #expect(summary.isComplete && summary.viaNegentropy > 500)
    await store.close()
  }

  // F173.
  @Test func `superseded, deleted and refetched events make no second transfer`() async throws {
    let author = SecretKey.generate()
    let signer = LocalSigner(author)
    func event(_ kind: EventKind, _ tags: [[Text]], _ text: Text, at time: Timestamp) throws
      -> Event
    {
      try signer.signed(
        EventDraft(createdAt: time, kind: kind, tags: Tags(tags), content: text)
      ).event
    }
    let first = try event(30023, [["d", "a"]], "one", at: 1_700_000_000)
    let second = try event(30023, [["d", "a"]], "two", at: 1_700_000_100)
    let note = try event(1, [], "gone soon", at: 1_700_000_200)
    let deletion = try event(5, [["e", Text(note.id.hex)]], "", at: 1_700_000_300)
    let expired = try event(1, [["expiration", "1700000500"]], "short", at: 1_700_000_400)
    // The relay keeps all of them, as one does that knows no deletions.
    let world = try await EngineWorld(
      rules: rules(.served(itemsMax: 100_000)), extra: [second, deletion])
    let store = try await world.store()
    let verifier = Verifier()
    _ = try await store.ingest(
      IngestBatch(
        events: [first, second, note, deletion, expired].map { try verifier.verify($0) },
        receivedAt: 1_700_001_000))
    let summary = try await mirror(world, store)
    #expect(summary.isComplete && summary.stored > 500)
    let again = try await mirror(world, store)
    #expect(again.stored == 0 && again.duplicates == 0)
    #expect(try store.reader.event(id: first.id) != nil)
    await store.close()
  }

  // F179.
  @Test func `what is published while histories are compared is there afterwards`() async throws {
    var rules = RelayRules()
    rules.reading.reconciliation = .served(itemsMax: 100_000)
    let world = try await EngineWorld(rules: rules)
    let store = try await world.store()
    let engine = world.engine(store, key: world.member)
    let group = try #require(
      world.community.events.first { event in
        event.kind == .groupMembers
          && event.tags.contains { $0.bytes32(1) == world.member.publicKey.bytes }
      }?.identifier)
    // The group is known from before, so that its feed is wanted at once.
    _ = try await engine.syncOnce(SyncPlan())
    await engine.start()
    let author = LocalSigner(world.community.people[1])
    var posted: Set<EventID> = []
    for number in 0..<50 {
      let event = try author.signed(
        EventDraft(
          createdAt: world.ports.clock.now(), kind: .message, tags: Tags([["h", group]]),
          content: Text("during \(number)"))
      ).event
      posted.insert(event.id)
      await world.host.update { machine, _, _ in
        // A store in memory takes everything.
        try? machine.load([event])
        return []
      }
      await world.host.announce([event])
    }
    #expect(await engine.waitLive(for: .seconds(120)) == .reached)
    for await _ in engine.changes where posted.isSubset(of: try store.ids()) { break }
    await engine.stop()
    #expect(posted.isSubset(of: try store.ids()))
    await store.close()
  }

  // A 9005 from a file counts once the relay has shown it.
  @Test func `an imported moderation is shown again by the relay that holds it, once`() async throws
  {
    let signer = LocalSigner(SecretKey.generate())
    let removal = try signer.signed(
      EventDraft(
        createdAt: 1_700_000_300, kind: .groupDeleteEvent,
        tags: Tags([["h", "g"], ["e", Text(String(repeating: "a", count: 64))]]), content: ""))
    let world = try await EngineWorld(
      rules: rules(.served(itemsMax: 100_000)), extra: [removal.event])
    let store = try await world.store()
    _ = try await store.ingest(IngestBatch(events: [removal], receivedAt: 1_700_001_000))
    #expect(try store.reader.provenance(of: removal.event.id).isEmpty)
    let first = try await mirror(world, store)
    #expect(first.duplicates == 1)
    #expect(try store.reader.provenance(of: removal.event.id).map(\.relay) == [world.url])
    let again = try await mirror(world, store)
    #expect(again.duplicates == 0)
    await store.close()
  }

  @Test func `a plan with bounds brings what lies between them`() async throws {
    let world = try await EngineWorld(rules: rules(.served(itemsMax: 100_000)))
    let store = try await world.store()
    let dates = await world.host.ask { machine in
      (try? machine.store.page(PageRequest(filter: Filter(), eventsMax: 1_000_000)))?.events
        .map(\.createdAt).sorted() ?? []
    }
    var plan = SyncPlan(.everything)
    plan.since = dates[100]
    plan.until = dates[400]
    _ = try await mirror(world, store, plan)
    let wanted = await world.held(Filter(since: plan.since, until: plan.until))
    let ids = try store.ids()
    #expect(ids.isSuperset(of: wanted))
    // What is said of groups and people holds within any bounds.
    let kinds = SyncScopes.stateKinds + [.groupMetadata, .profile]
    #expect(ids.subtracting(wanted).isSubset(of: await world.held(Filter(kinds: kinds))))
    await store.close()
  }
}
