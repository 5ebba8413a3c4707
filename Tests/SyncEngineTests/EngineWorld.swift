import EventLog
import Foundation
import HotCache
import Nostr
import NostrCrypto
import Platform
import RelayServer
import RelaySocket
import SyncCore
import SyncEngine
import Testing

/// A relay on a network in memory, and communities in scratch folders that know it.
final class EngineWorld: Sendable {
  let network = MemoryNetwork()
  let ports: Ports
  let url: RelayURL
  let host: RelayHost
  let community: DemoCommunity
  private let folder: String

  init(
    rules: RelayRules = RelayRules(), events: Int = 600, seed: UInt64 = 1, extra: [Event] = [],
    extraGroups: Int = 0,
    clock: any SyncClock = SystemClock()
  ) async throws {
    ports = Ports(
      clock: clock, random: SystemRandom(), tasks: SystemTasks(), transport: network,
      relayInformation: network, queries: network, work: InlineWork())
    url = try #require(RelayURL("ws://relay.test:7777"))
    community = try await DemoCommunity.make(seed: seed, eventsCount: events, on: ports.work)
    let verifier = Verifier()
    var machine = RelayMachine(
      identity: RelayIdentity(
        name: "test", urls: [url], signer: RelaySigner(community.relayKey)), rules: rules
    ) { (try? verifier.verify($0)) != nil }
    let relayKey = community.relayKey
    let groups = try (0..<extraGroups).map { number in
      try RelaySigner(relayKey).sign(
        EventDraft(
          createdAt: DemoCommunity.end, kind: .groupMetadata,
          tags: Tags([["d", Self.extraGroup(number)], ["name", "extra"], ["public"], ["open"]]),
          content: .empty)
      ).event
    }
    try machine.load(community.events + groups + extra)
    host = RelayHost(machine, ports: ports, executor: ThreadExecutor())
    try await host.start(on: network, host: "relay.test", port: 7777)
    folder = FileManager.default.temporaryDirectory.path + "/skep-engine-\(UUID().uuidString)"
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  func store(_ name: String = "one") async throws -> CommunityStore {
    try await CommunityStore.open(
      folder: "\(folder)/\(name)", clock: ports.clock, tasks: ports.tasks)
  }

  /// An engine over a store; `key` names one of the community's people.
  func engine(
    _ store: CommunityStore, key: SecretKey? = nil, ports: Ports? = nil,
    _ change: (inout EngineOptions) -> Void = { _ in }
  ) -> Engine {
    var options = EngineOptions()
    change(&options)
    return Engine(
      store: store, relays: [url], ports: ports ?? self.ports, signer: key.map { LocalSigner($0) },
      options: options)
  }

  /// The ports of this world under a wall clock that is off by some seconds.
  func ports(clockOffset: Int64) -> Ports {
    Ports(
      clock: SystemClock(offset: clockOffset), random: ports.random, tasks: ports.tasks,
      transport: network, relayInformation: network, queries: network, work: ports.work)
  }

  var member: SecretKey { community.people[0] }

  static func extraGroup(_ number: Int) -> Text { Text("extra-\(number)") }

  /// A group that the world's member belongs to.
  var memberGroup: Text {
    get throws {
      try #require(
        community.events.first { event in
          event.kind == .groupMembers
            && event.tags.contains { $0.bytes32(1) == member.publicKey.bytes }
        }?.identifier)
    }
  }

  /// A message by another of the community's people.
  func message(
    _ text: Text, in group: Text? = nil, at time: Timestamp? = nil
  ) throws -> Event {
    try LocalSigner(community.people[1]).signed(
      EventDraft(
        createdAt: time ?? ports.clock.now(), kind: .message,
        tags: Tags([["h", try group ?? memberGroup]]), content: text)
    ).event
  }

  /// Puts events into the relay as another client would.
  func post(_ events: [Event]) async throws {
    await host.update { machine, _, _ in
      // A store in memory takes everything.
      try? machine.load(events)
      return []
    }
    await host.announce(events)
  }

  /// The events that the relay itself holds and that match.
  func events(_ filter: Filter = Filter()) async -> [Event] {
    await host.ask { machine in
      // A store in memory does not fail.
      let page = try? machine.store.page(
        PageRequest(filter: filter, eventsMax: 1_000_000), where: { _ in true })
      return page?.events ?? []
    }
  }

  /// The ids of those.
  func held(_ filter: Filter = Filter()) async -> Set<EventID> {
    Set(await events(filter).map(\.id))
  }
}

extension CommunityStore {
  /// Every id in the log.
  func ids() throws -> Set<EventID> {
    var ids: Set<EventID> = []
    var after = LogSequence.start
    while true {
      let entries = try reader.entries(after: after, limit: 1000)
      guard let last = entries.last else { return ids }
      for entry in entries {
        if case .event(let logged) = entry.body { ids.insert(logged.event.id) }
      }
      after = last.sequence
    }
  }
}

extension Engine {
  /// Returns once `isTrue`, looked at after every change; what never becomes true is ended by the
  /// time limit of the suite.
  func reach(_ isTrue: () async throws -> Bool) async throws {
    if try await isTrue() { return }
    for await _ in changes where try await isTrue() { return }
    Issue.record("the engine ended before it came to that")
  }

  func reach(_ isTrue: (EngineStatus) throws -> Bool) async throws {
    try await reach { try isTrue(await status()) }
  }
}
