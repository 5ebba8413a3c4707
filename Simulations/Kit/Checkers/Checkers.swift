package import Nostr
package import SyncCore

/// The rules that no fault may break. Each looks at the whole world, which no client can.
enum Checkers {
  /// Nothing is held that the relay never accepted or that is not what it says.
  static func origin(
    of event: Event, at relay: SimulatedRelay, in world: World, for name: String
  ) {
    world.check(
      relay.acceptedAt[event.id] != nil && world.verdicts.isValid(event),
      "\(name) holds \(event.id.hex.prefix(8)), which \(relay.name) never accepted")
  }

  /// A proof speaks the truth: whatever the relay had accepted before it was asked, and still
  /// serves, is held.
  ///
  /// - Parameter askedAt: The world's step at which the page of the proof was asked for.
  static func proof(
    _ span: HistoryWalk.Span, of scope: Scope, askedAt: Int, by client: SimulatedClient
  ) {
    var filter = scope.filter
    filter.since = span.from
    filter.until = span.to
    for event in client.relay.served(filter) {
      guard let step = client.relay.acceptedAt[event.id], step < askedAt else { continue }
      client.world.check(
        client.disk.held[event.id] != nil,
        """
        \(client.name) calls \(span.from)…\(span.to) of \(scope) complete and lacks \
        \(event.id.hex.prefix(8)) at \(event.createdAt)
        """)
    }
  }

  /// A message is called sent only when the relay has it.
  static func sent(_ delivery: Delivery, by client: SimulatedClient) {
    client.world.check(
      client.relay.acceptedAt[delivery.eventID] != nil,
      "\(client.name) calls message \(delivery.message) sent, and \(client.relay.name) never got it"
    )
  }
}

extension SimulatedClient {
  /// Whether everything that the relay serves of a scope is held, apart from seconds that are named
  /// as gaps.
  package func lacks(_ scope: Scope) -> [Event] {
    let gaps = disk.gaps[scope]?.entries ?? []
    return relay.served(scope.filter).filter { event in
      disk.held[event.id] == nil
        && !gaps.contains { $0.from <= event.createdAt && event.createdAt <= $0.to }
    }
  }
}
