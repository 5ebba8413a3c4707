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

    init(rule: @escaping ScriptedRelay.Rule) async throws {
      clock = FastClock(SystemClock(), factor: 20)
      world = try await EngineWorld(events: 40, clock: clock)
      relay = try await ScriptedRelay(
        on: world.network, host: "awkward.test", port: 80, tasks: world.ports.tasks, rule: rule)
      url = try #require(RelayURL("ws://awkward.test"))
    }

    func engine(_ store: CommunityStore, relays: [RelayURL]? = nil) -> Engine {
      var options = EngineOptions()
      options.isReadOnly = true
      return Engine(
        store: store, relays: relays ?? [url], ports: world.ports, signer: nil, options: options)
    }
  }

  /// Mirrors everything and tells how many requests that took.
  private func mirror(_ setting: Setting) async throws -> (SyncSummary, Int) {
    let store = try await setting.world.store()
    let engine = setting.engine(store)
    let summary = try await engine.syncOnce(SyncPlan(.everything))
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
    // One after the other, each until the grace after its NOTICE is over.
    #expect(requests <= 3)
    #expect(!summary.isComplete)
    #expect(Set(summary.gaps.map(\.why)) == ["restricted: not here"])
    // Everything that a mirror wants is named, though not all of it was asked for.
    let named = Set(summary.gaps.map(\.scope))
    #expect(named.isSuperset(of: SyncScopes.everyKind(me: nil) + [SyncScopes.groupList]))
  }

  @Test func `a relay that never answers ends a mirror soon`() async throws {
    let setting = try await Setting { _ in [] }
    let (summary, requests) = try await mirror(setting)
    // Each takes as long as a request may: half a minute together.
    #expect(requests <= 2)
    #expect(!summary.isComplete)
    #expect(summary.gaps.allSatisfy { $0.why == "the relay did not answer in time" })
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
    let summary = try await engine.syncOnce(SyncPlan(.everything))
    #expect(Set(summary.gaps.map(\.scope)) == [Scope(Filter(kinds: [.profile]))])
    #expect(try store.reader.coverage(asOf: nil).count == SyncScopes.everyKind(me: nil).count)
    await engine.stop()
    await store.close()
    await setting.relay.stop()
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
    let summary = try await engine.syncOnce(SyncPlan(.everything))
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
    #expect(try await first.syncOnce(SyncPlan(.everything)).isComplete)
    await first.stop()
    let both = setting.engine(store, relays: [setting.world.url, setting.url])
    _ = try await both.syncOnce(SyncPlan(.everything))
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
    _ = try await engine.syncOnce(SyncPlan(.groups([one])))
    _ = try await engine.syncOnce(SyncPlan(.groups([one, other])))
    let filter = Filter(tags: [UInt8(ascii: "h"): [other]])
    #expect((await world.held(filter)).isSubset(of: try store.ids()))
    await engine.stop()
    await store.close()
  }
}
