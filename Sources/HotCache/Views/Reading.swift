import Nostr

/// Judgement over one snapshot: what the rows mean, with the time and the authors known.
///
/// The folds only collect; every rule that weighs one event against another stands in the
/// extensions of this type, and each looks at the whole set, so that no order of arrival matters.
struct Reading {
  let store: any StoreSnapshot
  /// Whose words are not shown; they stay in the log, and count where authority is weighed.
  let blocked: Set<PublicKey>
  let memo = Memo()

  init(store: any StoreSnapshot, blocked: Set<PublicKey> = []) {
    self.store = store
    self.blocked = blocked
  }

  /// What is looked up often and fits into little, kept for the length of one snapshot.
  final class Memo {
    var hidden: HiddenEvents?
    var selves: RelaySelves?
    var rosters: [Text: Roster] = [:]
    var pins: [Text: [EventID]] = [:]
    var roots: [ThreadStart: Bool] = [:]
    /// Whether anything was ever dated anew; mostly nothing was.
    var hasRedated: Bool?
  }

  /// The beginning of a thread as its replies name it, at a time: it may expire.
  struct ThreadStart: Hashable {
    let root: EventID
    let group: Text?
    let now: Timestamp
  }

  /// The event of an id, if the log has it.
  func row(_ id: EventID) throws(StoreError) -> BodyRow? {
    for sequence in try store.sequences(idPrefix: id.bytes.prefix) {
      if let row = try store.body(at: sequence), row.id == id { return row }
    }
    return nil
  }

  /// The event behind an index entry; an entry without one means that the store is damaged.
  func row(_ entry: IndexEntry) throws(StoreError) -> BodyRow {
    guard let row = try store.body(at: entry.sequence) else {
      throw .damaged("an index names entry \(entry.sequence), which has no body")
    }
    return row
  }
}

/// The events that local decisions hide: discarded messages, and ones replaced by a later date.
enum HiddenEvents {
  case few(Set<EventID>)
  /// Too many to hold; each is looked up.
  case many
}

/// The relays of the community, and the key that each says is its own.
struct RelaySelves {
  var keys: [RelayURL: PublicKey] = [:]

  var authorities: [PublicKey] { Array(Set(keys.values)).sorted() }
}

extension Reading {
  private static var hiddenCountMax: Int { 4096 }

  func isHidden(_ id: EventID) throws(StoreError) -> Bool {
    let hidden: HiddenEvents
    if let known = memo.hidden {
      hidden = known
    } else {
      hidden = try loadHidden()
      memo.hidden = hidden
    }
    switch hidden {
    case .few(let ids): return ids.contains(id)
    case .many:
      let newest = try store.small(prefix: SmallKey.hidden(id), after: nil, limit: 1)
      return newest.first?.value == [1]
    }
  }

  private func loadHidden() throws(StoreError) -> HiddenEvents {
    let rows = try store.small(
      prefix: SmallKey.hiddenEvents, after: nil, limit: Self.hiddenCountMax)
    guard rows.count < Self.hiddenCountMax else { return .many }
    var seen: Set<EventID> = []
    var ids: Set<EventID> = []
    for (key, value) in rows {
      guard let bytes = Bytes32(key.bytes.dropFirst().prefix(32)) else { continue }
      // The newest fact of an event comes first and decides.
      if seen.insert(EventID(bytes)).inserted, value == [1] { ids.insert(EventID(bytes)) }
    }
    return .few(ids)
  }

  func selves() throws(StoreError) -> RelaySelves {
    if let known = memo.selves { return known }
    var result = RelaySelves()
    var seen: Set<[UInt8]> = []
    let rows = try store.small(prefix: SmallKey.relaySelves, after: nil, limit: .max)
    for (key, value) in rows where seen.insert(Array(key.bytes.dropLast(8))).inserted {
      guard value.first == 1, value.count > 33, let bytes = Bytes32(value[1..<33]),
        let relay = RelayURL(String(decoding: value[33...], as: UTF8.self))
      else { continue }
      result.keys[relay] = PublicKey(bytes)
    }
    memo.selves = result
    return result
  }

  /// The relays that are known to have served an event.
  func relays(serving id: EventID) throws(StoreError) -> [RelayURL] {
    try store.small(prefix: SmallKey.served(id), after: nil, limit: 64).compactMap { row in
      RelayURL(String(decoding: row.value, as: UTF8.self))
    }
  }

  /// The message that `id` took the place of, and the one that took the place of `id`.
  func redated(from id: EventID) throws(StoreError) -> EventID? {
    if memo.hasRedated == nil {
      let first = try store.small(prefix: SmallKey.redatings, after: nil, limit: 1)
      memo.hasRedated = !first.isEmpty
    }
    guard memo.hasRedated == true else { return nil }
    return try other(in: SmallKey.redatedFrom(id))
  }

  func redated(to id: EventID) throws(StoreError) -> EventID? {
    try other(in: SmallKey.redated(id))
  }

  private func other(in prefix: [UInt8]) throws(StoreError) -> EventID? {
    let row = try store.small(prefix: prefix, after: nil, limit: 1).first
    return row.flatMap { Bytes32($0.key.bytes.dropFirst(33)) }.map(EventID.init)
  }
}
