package import EventLog
package import HotCache
package import Nostr
package import SyncCore

/// The read-only replica of a community: its log and cache served as a relay.
package enum ReplicaRelay {
  /// - Parameters:
  ///   - origin: The relay that was copied; its key is told as `self`, because what it signed is
  ///     what is served.
  ///   - asksForAuthentication: See `RelayRules.replica(asksForAuthentication:)`.
  package static func make(
    of origin: RelayURL?, selfKey: PublicKey?, log: LogReader, views: CacheViews,
    clock: any SyncClock, asksForAuthentication: Bool, urls: [RelayURL] = [], version: Text = "0",
    isValid: @escaping @Sendable (Event) -> Bool
  ) throws(RelayStoreError) -> RelayMachine {
    let name = origin.map { "Replica of \($0.hostAndPort)" } ?? "Replica"
    let about = origin.map { "It serves a copy of \($0)." } ?? "It serves an archive."
    let identity = RelayIdentity(
      name: Text(name), about: Text(about), urls: urls, selfKey: selfKey, version: version)
    var machine = RelayMachine(
      identity: identity, rules: .replica(asksForAuthentication: asksForAuthentication),
      store: LogStore(log: log, views: views, clock: clock), isValid: isValid)
    try machine.reloadGroups()
    return machine
  }
}

extension RelayMachine {
  /// Serves another state of the copy from now on, as when another process has written to it.
  package mutating func use(_ store: any RelayStore) throws(RelayStoreError) {
    self.store = store
    try reloadGroups()
  }
}
