import EventLog
import Nostr
import NostrCrypto
import Platform
import RelayServer
import RelaySocket
import SyncCore
import SyncEngine
import Testing

/// Relays that answer in ways of their own, against a clock that runs twenty times too fast.
@Suite(.timeLimit(.minutes(1))) struct AwkwardRelayTests {
  private struct Setting {
    let world: EngineWorld
    let relay: ScriptedRelay
    let url: RelayURL
    let clock: FastClock

    init(isCut: Bool = false, rule: @escaping ScriptedRelay.Rule) async throws {
      clock = FastClock(SystemClock(), factor: 20)
      world = try await EngineWorld(events: 40, clock: clock)
      relay = try await ScriptedRelay(
        on: world.network, host: "awkward.test", port: 80, tasks: world.ports.tasks, isCut: isCut,
        rule: rule)
      url = try #require(RelayURL("ws://awkward.test"))
    }

    func engine(_ store: CommunityStore, relays: [RelayURL]? = nil) -> Engine {
      var options = EngineOptions()
      options.isReadOnly = true
      return Engine(
        store: store, relays: relays ?? [url], ports: world.ports, signer: nil, options: options)
    }
  }

  /// As long as these relays take by a clock that runs too fast: not the time of reaching them is tested.
  private static func plan(_ extent: SyncPlan.Extent) -> SyncPlan {
    var plan = SyncPlan(extent)
    plan.failAfter = .seconds(1200)
    return plan
  }

  /// Mirrors everything and tells how many requests that took.
  private func mirror(_ setting: Setting) async throws -> (SyncSummary, Int) {
    let store = try await setting.world.store()
    let engine = setting.engine(store)
    let summary = try await engine.syncOnce(Self.plan(.everything))
    await engine.stop()
    #expect(try store.reader.coverage(asOf: nil).isEmpty)
    await store.close()
    await setting.relay.stop()
    let requests = setting.relay.requests.count { if case .req = $0 { true } else { false } }
    return (summary, requests)
  }

  @Test func `a relay that refuses by NOTICE alone ends a mirror soon and with its own words`()
    async throws
  {
    let setting = try await Setting { message in
      if case .req = message { [.notice("restricted: not here")] } else { [] }
    }
    let (summary, requests) = try await mirror(setting)
    // One after the other, each until the grace after its NOTICE is over, the first once more under
    // a short id.
    #expect(requests <= 4)
    #expect(!summary.isComplete)
    #expect(Set(summary.gaps.map(\.why)) == ["restricted: not here"])
    // Everything that a mirror wants is named, though not all of it was asked for.
    let named = Set(summary.gaps.map(\.scope))
    #expect(named.isSuperset(of: SyncScopes.everyKind(me: nil) + [SyncScopes.groupList]))
  }

  @Test(arguments: [false, true])
  func `a relay that opens a socket and says nothing was not reached`(isTalking: Bool) async throws
  {
    let setting = try await Setting { message in
      guard isTalking, case .req(let id, _) = message else { return [] }
      return [.closed(id, "restricted: not here")]
    }
    let store = try await setting.world.store()
    let engine = setting.engine(store)
    let result: Result<SyncSummary, EngineError>
    do throws(EngineError) {
      let plan = isTalking ? Self.plan(.everything) : SyncPlan(.everything)
      result = .success(try await engine.syncOnce(plan))
    } catch {
      result = .failure(error)
    }
    switch result {
    case .success(let summary): #expect(isTalking && !summary.isComplete)
    case .failure(.noRelayReached(let relays)):
      #expect(!isTalking && relays.map(\.why) == ["connected, but answered nothing"])
    case .failure(let error): throw error
    }
    await engine.stop()
    await store.close()
    await setting.relay.stop()
  }

  @Test func `a relay that drops every page midway ends a mirror, which keeps what came`()
    async throws
  {
    let world = try await EngineWorld(events: 40)
    let event = try world.message("before the line broke", in: "a", at: 1_700_000_000)
    let setting = try await Setting(isCut: true) { message in
      if case .req(let id, _) = message { [.event(id, event)] } else { [] }
    }
    let store = try await setting.world.store()
    let engine = setting.engine(store)
    let summary = try await engine.syncOnce(Self.plan(.everything))
    #expect(!summary.isComplete)
    #expect(summary.gaps.contains { $0.why == "the connection was lost" })
    #expect(try store.ids() == [event.id])
    await engine.stop()
    await store.close()
    await setting.relay.stop()
  }

  /// The twin: one unanswered filter does not end the others.
  @Test func `a relay that leaves out one filter is asked for all the others`() async throws {
    let setting = try await Setting { message in
      guard case .req(let id, let filters) = message else { return [] }
      if filters[0].kinds == nil { return [.closed(id, "invalid: kinds are needed")] }
      return filters[0].kinds == [.profile] ? [] : [.eose(id, hints: [])]
    }
    let store = try await setting.world.store()
    let engine = setting.engine(store)
    let summary = try await engine.syncOnce(Self.plan(.everything))
    #expect(Set(summary.gaps.map(\.scope)) == [Scope(Filter(kinds: [.profile]))])
    #expect(try store.reader.coverage(asOf: nil).count == SyncScopes.everyKind(me: nil).count)
    await engine.stop()
    await store.close()
    await setting.relay.stop()
  }

  private static func group(of filter: Filter) -> Text? {
    filter.tags[UInt8(ascii: "h")]?.first ?? filter.tags[UInt8(ascii: "d")]?.first
  }

  /// - Parameter isServed: Whether the relay answers such a filter for another group.
  @Test(arguments: [false, true])
  func `a group whose filter without kinds stays unanswered is asked for by classes at once`(
    isServed: Bool
  ) async throws {
    let world = try await EngineWorld(events: 40)
    let event = try world.message("of one class", in: "b", at: 1_700_000_000)
    let other = try world.message("of the other group", in: "a", at: 1_700_000_000)
    let setting = try await Setting { message in
      guard case .req(let id, let filters) = message else { return [] }
      let group = Self.group(of: filters[0])
      if filters[0].kinds == nil, group == "b" || !isServed { return [] }
      let found = [event, other].filter { FilterMatcher(filters).matches($0) }
      return found.map { .event(id, $0) } + [.eose(id, hints: [])]
    }
    let store = try await setting.world.store()
    let engine = setting.engine(store)
    let summary = try await engine.syncOnce(Self.plan(.groups(["a", "b"])))
    #expect(try store.ids() == [event.id, other.id])
    let asked = setting.relay.requests.count { message in
      guard case .req(_, let filters) = message else { return false }
      return filters[0].kinds == nil && Self.group(of: filters[0]) == "b"
    }
    #expect(asked == 1)
    // Where the same filter is served elsewhere, what was asked in its place is not all of it.
    #expect(summary.isComplete == !isServed)
    #expect(summary.gaps.map(\.scope) == (isServed ? [SyncScopes.wholeGroup("b")] : []))
    await engine.stop()
    await store.close()
    await setting.relay.stop()
  }

  @Test func `a group that the relay refuses by NOTICE is the only gap of its round`() async throws
  {
    let groups: [Text] = ["a", "b", "c", "d", "e"]
    let setting = try await Setting { message in
      guard case .req(let id, let filters) = message else { return [] }
      if Self.group(of: filters[0]) == "c" { return [.notice("restricted: not a member")] }
      return [.eose(id, hints: [])]
    }
    let store = try await setting.world.store()
    let engine = setting.engine(store)
    let summary = try await engine.syncOnce(Self.plan(.groups(groups)))
    #expect(Set(summary.gaps.compactMap { Self.group(of: $0.scope.filter) }) == ["c"])
    #expect(summary.gaps.allSatisfy { $0.why == "restricted: not a member" }, "\(summary.gaps)")
    let named = Set(summary.gaps.map(\.scope))
    #expect(named == Set(SyncScopes.groupClasses("c") + [SyncScopes.groupState("c")]))
    await engine.stop()
    await store.close()
    await setting.relay.stop()
  }

  @Test func `a group that is found in a round is live before its history is asked for`()
    async throws
  {
    let world = try await EngineWorld(events: 40)
    let listed = try RelaySigner(world.community.relayKey).sign(
      EventDraft(
        createdAt: 1_700_000_000, kind: .groupMetadata, tags: Tags([["d", "found"]]),
        content: .empty)
    ).event
    let setting = try await Setting { message in
      guard case .req(let id, let filters) = message else { return [] }
      // The feeds tell nothing of it: only the list that a round asks for does.
      if filters[0] == SyncScopes.groupList.filter || filters[0].limit == Limits().pageLimit,
        FilterMatcher(filters).matches(listed)
      {
        return [.event(id, listed), .eose(id, hints: [])]
      }
      return [.eose(id, hints: [])]
    }
    let store = try await setting.world.store()
    let engine = setting.engine(store)
    await engine.start()
    #expect(await engine.waitLive(for: .seconds(600)) == .reached)
    let asked = setting.relay.requests.compactMap { message -> Int? in
      guard case .req(_, let filters) = message, Self.group(of: filters[0]) == "found" else {
        return nil
      }
      return filters[0].limit
    }
    #expect(asked.first == Limits().liveLimit)
    #expect(asked.contains(Limits().pageLimit))
    await engine.stop()
    await store.close()
    await setting.relay.stop()
  }

  // F32
  @Test func `a relay that says at once that it has nothing cuts off no slower one`() async throws {
    var rules = RelayRules()
    rules.answers.endOfStored = .late(.milliseconds(200))
    let world = try await EngineWorld(rules: rules, events: 300)
    let hasty = try await ScriptedRelay(
      on: world.network, host: "hasty.test", port: 80, tasks: world.ports.tasks
    ) { message in
      if case .req(let id, _) = message { [.eose(id, hints: [])] } else { [] }
    }
    let home = try #require(RelayURL("ws://hasty.test"))
    let store = try await world.store()
    var options = EngineOptions()
    options.isReadOnly = true
    options.limits.negotiationProbeMax = .milliseconds(100)
    let engine = Engine(
      store: store, relays: [home, world.url], ports: world.ports,
      signer: LocalSigner(world.member), options: options)
    let group = try world.memberGroup
    let summary = try await engine.syncOnce(Self.plan(.groups([group])))
    let held = await world.held(Filter.group(group))
    #expect(!held.isEmpty)
    #expect(held.isSubset(of: try store.ids()))
    #expect(summary.isComplete, "\(summary.gaps)")
    await engine.stop()
    await store.close()
    await hasty.stop()
  }

  @Test(arguments: [false, true])
  func `a relay is live only once history has been answered`(isAnswering: Bool) async throws {
    let setting = try await Setting { message in
      guard case .req(let id, let filters) = message else { return [] }
      let isLive = filters[0].limit == Limits().liveLimit
      return isLive || isAnswering ? [.eose(id, hints: [])] : []
    }
    let store = try await setting.world.store()
    let engine = setting.engine(store)
    await engine.start()
    let outcome = await engine.waitLive(for: .seconds(isAnswering ? 600 : 100))
    #expect(outcome == (isAnswering ? .reached : .timedOut))
    let status = try #require(await engine.status().relays.first)
    #expect(status.isCaughtUp == isAnswering)
    #expect(isAnswering || status.unsettled == "the relay did not answer in time")
    await engine.stop()
    await store.close()
    await setting.relay.stop()
  }

  @Test func `a page without EOSE stores its events and proves nothing`() async throws {
    let people = try await DemoCommunity.make(seed: 9, eventsCount: 0, on: InlineWork()).people
    let draft = EventDraft(
      createdAt: 1_700_000_000, kind: .message, tags: Tags([["t", "cut"]]), content: "cut")
    let event = try LocalSigner(try #require(people.first)).signed(draft).event
    let setting = try await Setting { message in
      guard case .req(let id, _) = message else { return [] }
      return [.event(id, event)]
    }
    let store = try await setting.world.store()
    let engine = setting.engine(store)
    let summary = try await engine.syncOnce(Self.plan(.everything))
    #expect(!summary.isComplete && summary.stored == 1)
    #expect(try store.ids() == [event.id])
    #expect(try store.reader.coverage(asOf: nil).isEmpty)
    await engine.stop()
    await store.close()
    await setting.relay.stop()
  }

  @Test func `what one relay was read for narrows nothing at another`() async throws {
    let setting = try await Setting { message in
      if case .req(let id, _) = message { [.eose(id, hints: [])] } else { [] }
    }
    let store = try await setting.world.store()
    let first = setting.world.engine(store) { $0.isReadOnly = true }
    #expect(try await first.syncOnce(Self.plan(.everything)).isComplete)
    await first.stop()
    let both = setting.engine(store, relays: [setting.world.url, setting.url])
    _ = try await both.syncOnce(Self.plan(.everything))
    let asked = setting.relay.requests.compactMap { message -> Filter? in
      if case .req(_, let filters) = message { filters[0] } else { nil }
    }
    #expect(asked.first { $0.kinds == nil }?.since == nil)
    #expect(asked.count > 0)
    await both.stop()
    await store.close()
    await setting.relay.stop()
  }

  @Test func `a group joined later is read to its beginning, however new the others are`()
    async throws
  {
    let world = try await EngineWorld()
    let store = try await world.store()
    let engine = world.engine(store, key: world.member) { $0.isReadOnly = true }
    let groups = world.community.events.filter { $0.kind == .groupMetadata }.compactMap(
      \.identifier)
    let (one, other) = (try #require(groups.first), try #require(groups.last))
    _ = try await engine.syncOnce(Self.plan(.groups([one])))
    _ = try await engine.syncOnce(Self.plan(.groups([one, other])))
    let filter = Filter(tags: [UInt8(ascii: "h"): [other]])
    #expect((await world.held(filter)).isSubset(of: try store.ids()))
    await engine.stop()
    await store.close()
  }
}
