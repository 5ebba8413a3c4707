package import Nostr

/// A relay's events in memory, indexed by time, kind, author and tag.
///
/// Invariants: every held event stands in each index that its fields name, exactly once; a slot
/// that replaces its versions holds at most one event, and what it once held never comes back.
package struct MemoryStore: RelayStore {
  private struct TagKey: Hashable, Sendable {
    let letter: UInt8
    let value: Text
  }

  private var events: [EventID: Event] = [:]
  /// The group of an event that names none itself, taken from its target.
  private var scopes: [EventID: Text] = [:]
  private var all = PlaceIndex()
  private var byKind: [EventKind: PlaceIndex] = [:]
  private var byAuthor: [PublicKey: PlaceIndex] = [:]
  private var byTag: [TagKey: PlaceIndex] = [:]
  /// The newest version that each slot ever held, also where it has been deleted since.
  private var slots: [EventAddress: Place] = [:]
  /// What is served no more, where it may tell whose something is that refers to it.
  private var gone: [EventID: Event] = [:]
  private static let goneMax = 100_000
  private var graves: [EventID: Set<PublicKey?>] = [:]
  private var addressGraves: [EventAddress: Timestamp] = [:]

  package init() {}

  /// The number of events held.
  package var count: Int { events.count }

  /// Every held event, newest first.
  package var contents: [Event] {
    var merge = PlaceMerge([all], from: nil)
    var result: [Event] = []
    result.reserveCapacity(events.count)
    while let place = merge.next() {
      if let event = events[place.id] { result.append(event) }
    }
    return result
  }

  package func event(_ id: EventID) -> Event? { events[id] }

  package func record(of id: EventID) -> Event? { events[id] ?? gone[id] }

  package func record(of address: EventAddress) -> Event? {
    slots[address].flatMap { record(of: $0.id) }
  }

  // MARK: Writing

  package mutating func insert(
    _ event: Event, scope: Text?, replacesVersions: Bool = true
  ) -> Insertion {
    if events[event.id] != nil { return .duplicate }
    if let buriers = graves[event.id], buriers.contains(nil) || buriers.contains(event.pubkey) {
      return .buried
    }
    if let address = EventAddress(of: event) {
      if let time = addressGraves[address], event.createdAt <= time { return .buried }
      let place = Place(event)
      if replacesVersions, let held = slots[address] {
        if held < place { return .superseded }
        if let old = events[held.id] { remove(old) }
      }
      slots[address] = min(place, slots[address] ?? place)
    }
    add(event, scope: event.group == nil ? scope : nil)
    return .stored
  }

  package mutating func bury(_ id: EventID, by author: PublicKey?) {
    graves[id, default: []].insert(author)
    guard let event = events[id], author == nil || event.pubkey == author else { return }
    remove(event)
  }

  package mutating func bury(_ address: EventAddress, upTo time: Timestamp) {
    addressGraves[address] = max(addressGraves[address] ?? time, time)
    let versions = Filter(authors: [address.author], kinds: [address.kind], until: time)
    var doomed: [Event] = []
    scan(versions, sizeHint: .max) { event in
      if EventAddress(of: event) == address { doomed.append(event) }
      return true
    }
    for event in doomed { remove(event) }
  }

  package mutating func forget(except isKept: (Event) -> Bool) {
    let kept = contents.filter(isKept)
    let scopes = scopes
    self = MemoryStore()
    // Of each slot only what is to be held was held.
    for event in kept.reversed() {
      _ = insert(event, scope: scopes[event.id], replacesVersions: false)
    }
  }

  private mutating func add(_ event: Event, scope: Text?) {
    let place = Place(event)
    events[event.id] = event
    all.insert(place)
    byKind[event.kind, default: PlaceIndex()].insert(place)
    byAuthor[event.pubkey, default: PlaceIndex()].insert(place)
    if let scope { scopes[event.id] = scope }
    for key in tagKeys(of: event, scope: scope) {
      byTag[key, default: PlaceIndex()].insert(place)
    }
  }

  private mutating func remove(_ event: Event) {
    let place = Place(event)
    let scope = scopes.removeValue(forKey: event.id)
    events[event.id] = nil
    if ["h", "e", "E", "q", "a", "A"].contains(where: event.tags.contains(named:)) {
      // Without it, what refers to it is shown to fewer, never to more.
      if gone.count >= Self.goneMax { gone.removeAll() }
      gone[event.id] = event
    }
    all.remove(place)
    byKind[event.kind]?.remove(place)
    byAuthor[event.pubkey]?.remove(place)
    for key in tagKeys(of: event, scope: scope) {
      byTag[key]?.remove(place)
      if byTag[key]?.count == 0 { byTag[key] = nil }
    }
  }

  private func tagKeys(of event: Event, scope: Text?) -> [TagKey] {
    var keys: [TagKey] = []
    for tag in event.tags {
      guard let letter = tag.letter, let value = tag.value(1) else { continue }
      keys.append(TagKey(letter: letter, value: value))
    }
    if let scope { keys.append(TagKey(letter: UInt8(ascii: "h"), value: scope)) }
    return keys
  }

  // MARK: Reading

  package func scan(_ filter: Filter, sizeHint: Int, _ body: (Event) -> Bool) {
    if let ids = filter.ids {
      let matches = Set(ids).compactMap { events[$0] }.filter { isMatch($0, filter) }
      for event in matches.sorted(by: { Place($0) < Place($1) }) where !body(event) { return }
      return
    }
    var merge = PlaceMerge(narrowestIndexes(for: filter), from: filter.until.map(Place.start(of:)))
    while let place = merge.next() {
      if let since = filter.since, place.createdAt < since { return }
      guard let event = events[place.id], isMatch(event, filter) else { continue }
      if !body(event) { return }
    }
  }

  /// The indexes of the one field that leaves the fewest events to look at.
  private func narrowestIndexes(for filter: Filter) -> [PlaceIndex] {
    var choices: [[PlaceIndex]] = [[all]]
    if let kinds = filter.kinds { choices.append(Set(kinds).compactMap { byKind[$0] }) }
    if let authors = filter.authors { choices.append(Set(authors).compactMap { byAuthor[$0] }) }
    for (letter, values) in filter.tags {
      choices.append(
        Set(values).compactMap { byTag[TagKey(letter: letter, value: $0)] })
    }
    let sizes = choices.map { indexes in indexes.reduce(0) { $0 + $1.count } }
    let best = sizes.indices.min { sizes[$0] < sizes[$1] } ?? 0
    return choices[best]
  }

  private func isMatch(_ event: Event, _ filter: Filter) -> Bool {
    FilterScope.isMatch(event, filter, scope: scopes[event.id])
  }
}

/// Matching that lets an event without an `h` tag stand for the group of its target.
enum FilterScope {
  static func isMatch(_ event: Event, _ filter: Filter, scope: Text?) -> Bool {
    let letter = UInt8(ascii: "h")
    guard let scope, let groups = filter.tags[letter], event.group == nil else {
      return filter.matches(event)
    }
    guard groups.contains(scope) else { return false }
    var rest = filter
    rest.tags[letter] = nil
    return rest.matches(event)
  }
}
