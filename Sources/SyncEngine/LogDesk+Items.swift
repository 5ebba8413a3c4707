import EventLog
import HotCache
import Nostr
import SyncCore

/// What NIP-77 compares.
extension LogDesk {
  /// Items copied in one read transaction; a copy is made of several, and whatever is written
  /// meanwhile is either in it or found missing and then found in the log.
  private static let pieceMax = 16_384

  func items(
    _ filter: Filter, for relay: RelayURL, limit: Int, now: Timestamp
  ) throws(ItemsError) -> ItemSelection {
    let withheld = try withheld(filter, for: relay, now: now)
    var items: [EventPosition] = []
    while true {
      let after = items.last
      let piece = try answer { () throws(CacheError) in
        try views.read { snapshot throws(CacheError) in
          try snapshot.items(filter, after: after, limit: Self.pieceMax, now: now)
        }
      }
      items += piece
      // The date in the middle of what was read; a part that is still too much is cut again.
      if items.count > limit { return .tooMany(middle: items[items.count / 2].createdAt) }
      guard piece.count == Self.pieceMax else { break }
    }
    return .all(NegentropySet(items.lazy.filter { !withheld.contains($0.id) }))
  }

  /// What the relay is not known to hold although it is here: what is on its way to it or was
  /// refused by it. And what it must have served before it counts (NIP-29's 9005): left out, it is
  /// listed by the relay and asked for.
  private func withheld(
    _ filter: Filter, for relay: RelayURL, now: Timestamp
  ) throws(ItemsError) -> Set<EventID> {
    var withheld = Set(
      try answer { () throws(LogError) in
        try reader.deliveries(includingSent: false).filter { $0.relay == relay }.map(\.eventID)
      })
    guard filter.kinds?.contains(.groupDeleteEvent) ?? true else { return withheld }
    var moderation = filter
    moderation.kinds = [.groupDeleteEvent]
    let items = try answer { () throws(CacheError) in
      try views.read { snapshot throws(CacheError) in
        try snapshot.items(moderation, now: now)
      }
    }
    for item in items where try !isServed(item.id, by: relay) { withheld.insert(item.id) }
    return withheld
  }

  private func isServed(_ id: EventID, by relay: RelayURL) throws(ItemsError) -> Bool {
    try answer { () throws(LogError) in
      try reader.provenance(of: id).contains { $0.relay == relay }
    }
  }

  func missing(_ ids: [EventID], for relay: RelayURL) throws(ItemsError) -> [EventID] {
    var missing: [EventID] = []
    var seen: Set<EventID> = []
    for id in ids where seen.insert(id).inserted {
      let logged = try answer { () throws(LogError) in try reader.kind(of: id) }
      switch logged {
      case nil: missing.append(id)
      case .groupDeleteEvent?: if try !isServed(id, by: relay) { missing.append(id) }
      // What was given up and is there after all comes back when it is served.
      case _?: if try isDiscarded(id) { missing.append(id) }
      }
    }
    return missing
  }

  private func isDiscarded(_ id: EventID) throws(ItemsError) -> Bool {
    try answer { () throws(LogError) in try reader.message(eventID: id)?.isDiscarded == true }
  }

  /// Whose profiles are wanted, as far as the local copy knows: people with one, members, and who
  /// wrote lately. A comparison that finds nothing new names nobody.
  func people(
    of groups: [Text], since: Timestamp, now: Timestamp, limit: Int
  ) throws(ItemsError) -> [PublicKey] {
    let (members, sequences) = try answer { () throws(CacheError) in
      try views.read { snapshot throws(CacheError) in
        var members: [PublicKey] = []
        for group in groups where members.count < limit {
          members += try snapshot.members(of: group, now: now).map(\.pubkey)
        }
        let filters = [Filter(kinds: [.profile], limit: limit), Filter(since: since, limit: limit)]
        return (members, try snapshot.query(filters, now: now))
      }
    }
    let events = try answer { () throws(LogError) in try reader.events(at: sequences) }
    return Set(members + events.compactMap { $0?.event.pubkey }).sorted()
  }

  private func answer<Result, Failure: Error & CustomStringConvertible>(
    _ body: () throws(Failure) -> Result
  ) throws(ItemsError) -> Result {
    do throws(Failure) {
      return try body()
    } catch {
      throw .unavailable(error.description)
    }
  }
}
