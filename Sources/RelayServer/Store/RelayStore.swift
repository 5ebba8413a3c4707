package import Nostr

/// The events that a relay holds and serves, as its machine needs them: synchronous, and free of
/// any rule about who may see or write what.
///
/// Memory stands behind it in tests, in the demo relay and in simulations; the log and the cache
/// stand behind it in the read-only replica.
package protocol RelayStore: Sendable {
  /// The held event with that id.
  func event(_ id: EventID) throws(RelayStoreError) -> Event?

  /// What is known of the event with that id, also where it is not served any more: deleted, expired
  /// or replaced.
  func record(of id: EventID) throws(RelayStoreError) -> Event?

  /// The newest version that an address ever held, as far as it is known.
  func record(of address: EventAddress) throws(RelayStoreError) -> Event?

  /// Calls `body` with every event that matches, newest first, a tie by the lowest id, until it
  /// returns false.
  ///
  /// - Parameter sizeHint: How many events will be looked at before that, as far as is known.
  func scan(_ filter: Filter, sizeHint: Int, _ body: (Event) -> Bool) throws(RelayStoreError)

  /// Offers an event; a slot of replaceable or addressable events keeps its newest, a tie its
  /// lowest id.
  ///
  /// - Parameters:
  ///   - scope: The group that an event without an `h` tag belongs to by its target; it is then
  ///     found by that group's `#h` too.
  ///   - replacesVersions: Off, a slot keeps every version that it is offered.
  mutating func insert(
    _ event: Event, scope: Text?, replacesVersions: Bool
  ) throws(RelayStoreError) -> Insertion

  /// Removes an event and keeps it from coming back.
  ///
  /// - Parameter author: Only an event of that author is meant; nil means whoever wrote it. The
  ///   event may come later than its burial.
  mutating func bury(_ id: EventID, by author: PublicKey?) throws(RelayStoreError)

  /// Removes the versions of an address up to and at a time, and keeps them from coming back.
  mutating func bury(_ address: EventAddress, upTo time: Timestamp) throws(RelayStoreError)

  /// Takes everything away that `isKept` does not hold on to, burials and slots included, as a
  /// relay does that was restored from an old backup.
  mutating func forget(except isKept: (Event) -> Bool) throws(RelayStoreError)
}

extension RelayStore {
  package mutating func insert(
    _ event: Event, scope: Text?
  ) throws(RelayStoreError) -> Insertion {
    try insert(event, scope: scope, replacesVersions: true)
  }

  func contains(_ id: EventID) throws(RelayStoreError) -> Bool { try event(id) != nil }

  /// The events that match, in the order asked for and no more than asked for.
  ///
  /// - Parameter isVisible: Judges each match; what is not visible is neither returned nor counted.
  package func page(_ request: PageRequest, where isVisible: (Event) -> Bool = { _ in true })
    throws(RelayStoreError) -> Page
  {
    let eventsMax = max(0, request.eventsMax)
    let isFromTheEnd = request.order == .oldestFirst
    let sizeHint = isFromTheEnd || eventsMax == .max ? Int.max : eventsMax + 1
    var page = Page(events: [], isWhole: true)
    try scan(request.filter, sizeHint: sizeHint) { event in
      guard isVisible(event) else { return true }
      if page.events.count >= eventsMax && !isFromTheEnd {
        page.isWhole = false
        return false
      }
      page.events.append(event)
      return true
    }
    if isFromTheEnd && page.events.count > eventsMax {
      page.isWhole = false
      page.events.removeFirst(page.events.count - eventsMax)
    }
    if request.order != .newestFirst { page.events.reverse() }
    return page
  }

  /// How many different events match at least one of the filters.
  package func count(
    _ filters: [Filter], where isVisible: (Event) -> Bool = { _ in true }
  ) throws(RelayStoreError) -> Int {
    var found: Set<EventID> = []
    for filter in filters {
      try scan(filter, sizeHint: .max) { event in
        if isVisible(event) { found.insert(event.id) }
        return true
      }
    }
    return found.count
  }

  /// The positions of all matches; nil where there are more than `itemsMax`.
  func positions(
    _ filter: Filter, itemsMax: Int, where isVisible: (Event) -> Bool
  ) throws(RelayStoreError) -> [EventPosition]? {
    var items: [EventPosition]? = []
    try scan(filter, sizeHint: .max) { event in
      guard isVisible(event) else { return true }
      items?.append(event.position)
      if items?.count ?? 0 > itemsMax { items = nil }
      return items != nil
    }
    return items
  }
}

/// What a store that cannot answer says.
package enum RelayStoreError: Error, Hashable, Sendable {
  /// It was asked to write and cannot.
  case readOnly
  /// The database behind it failed; the text is for the operator.
  case failed(String)
}

/// One filter's share of a REQ.
package struct PageRequest: Hashable, Sendable {
  package var filter: Filter
  /// The most events to return; the filter's own limit has been counted in.
  package var eventsMax: Int
  package var order: PageOrder

  package init(filter: Filter, eventsMax: Int, order: PageOrder = .newestFirst) {
    self.filter = filter
    self.eventsMax = eventsMax
    self.order = order
  }
}

/// In which order a relay picks and sends stored events.
package enum PageOrder: Hashable, Sendable {
  /// As NIP-01 demands: the newest are picked and sent first, a tie by the lowest id.
  case newestFirst
  /// The newest are picked and sent oldest first.
  case newestSentAscending
  /// The oldest are picked and sent first.
  case oldestFirst
}

package struct Page: Hashable, Sendable {
  package var events: [Event]
  /// Whether nothing more matches than is returned here.
  package var isWhole: Bool

  package init(events: [Event], isWhole: Bool) {
    self.events = events
    self.isWhole = isWhole
  }
}

/// What became of an event offered to a store.
package enum Insertion: Hashable, Sendable {
  case stored
  case duplicate
  /// A newer version is, or was, in its slot.
  case superseded
  /// Its author or a moderator has deleted it.
  case buried
}
