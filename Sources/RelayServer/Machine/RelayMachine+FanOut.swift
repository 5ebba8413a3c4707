package import Nostr

/// Live events, and what ends a subscription from the relay's side.
extension RelayMachine {
  /// Sends a new event to every subscription that the rules let have it.
  mutating func fanOut(_ event: Event) {
    if rules.reading.fanOut == .none { return }
    if rules.reading.withholdsGroupState && [39000, 39001, 39002].contains(event.kind) { return }
    let channel = channel(of: event)
    for index in connections.indices {
      let connection = connections[index]
      guard isVisible(event, to: connection.keys) else { continue }
      for subscription in connection.subscriptions
      where isWanted(event, in: channel, by: subscription) {
        send(.event(subscription.id, event), to: connection.id)
        guard subscription.isGhost else { continue }
        connections[index].subscriptions.removeAll { $0.id == subscription.id }
      }
    }
  }

  private func isWanted(_ event: Event, in channel: Text?, by subscription: Subscription) -> Bool {
    let filters = subscription.filters
    if rules.reading.isDeafToSince && filters.contains(where: { $0.since != nil }) { return false }
    if rules.reading.fanOut == .singleChannel && subscription.channel != channel { return false }
    guard rules.reading.evaluatesFilters else { return true }
    let scope = rules.groups.resolvesScopeByTarget ? channel : nil
    return filters.contains { FilterScope.isMatch(event, $0, scope: scope) }
  }

  /// The channel that an event was stored under, group state included.
  private func channel(of event: Event) -> Text? {
    switch event.kind {
    case 39000, 39001, 39002, 39003: event.identifier
    case 44100, 44101: nil
    default: scope(of: event)
    }
  }

  // MARK: Ending

  /// Ends the subscriptions that name a group, for readers who lost it.
  mutating func revoke(_ group: Text, from isConcerned: ([PublicKey]) -> Bool) {
    let reason: Text? =
      rules.groups.announcesRevokedAccess ? "restricted: channel access revoked" : nil
    endSubscriptions(reason) { connection, subscription in
      isConcerned(connection.keys) && subscription.names(group)
    }
  }

  /// Ends subscriptions at the relay's will, as it may do at any moment (NIP-01).
  package mutating func closeSubscriptions(
    because reason: Text, now: Timestamp, uptime: Duration
  ) -> [Effect] {
    begin(now: now, uptime: uptime)
    endSubscriptions(reason) { _, _ in true }
    return finish()
  }

  /// - Parameter reason: What CLOSED says; nil sends none.
  private mutating func endSubscriptions(
    _ reason: Text?, where isEnded: (Connection, Subscription) -> Bool
  ) {
    for index in connections.indices {
      let connection = connections[index]
      let ended = connection.subscriptions.filter { isEnded(connection, $0) }
      for subscription in ended {
        if let reason { send(.closed(subscription.id, reason), to: connection.id) }
      }
      let ids = Set(ended.map(\.id))
      connections[index].subscriptions.removeAll { ids.contains($0.id) }
    }
  }
}

extension Subscription {
  private var groups: Set<Text> {
    Set(filters.flatMap { $0.tags[UInt8(ascii: "h")] ?? [] })
  }

  /// The one channel that all filters together name; nil where they name none or several.
  var channel: Text? {
    let groups = groups
    return groups.count == 1 ? groups.first : nil
  }

  func names(_ group: Text) -> Bool { groups.contains(group) }
}
