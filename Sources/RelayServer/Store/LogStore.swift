package import EventLog
package import HotCache
package import Nostr
package import SyncCore

/// The local copy of a community as a relay's store: found through the cache, read from the log,
/// never written to.
///
/// What the user wrote and no relay has taken yet is left out: serving a copy must not publish it.
/// Its calls block, so the host over it runs on a thread of its own.
package struct LogStore: RelayStore {
  private let log: LogReader
  private let views: CacheViews
  private let clock: any SyncClock

  package init(log: LogReader, views: CacheViews, clock: any SyncClock) {
    self.log = log
    self.views = views
    self.clock = clock
  }

  package func event(_ id: EventID) throws(RelayStoreError) -> Event? {
    try page(PageRequest(filter: Filter(ids: [id]), eventsMax: 1)).events.first
  }

  package func record(of id: EventID) throws(RelayStoreError) -> Event? {
    do throws(LogError) {
      return try log.event(id: id)?.event
    } catch {
      throw .failed(error.description)
    }
  }

  package func record(of address: EventAddress) throws(RelayStoreError) -> Event? {
    let place: LogSequence?
    do throws(CacheError) {
      place = try views.read { view throws(CacheError) in try view.holder(of: address) }
    } catch {
      throw .failed(error.description)
    }
    guard let place else { return nil }
    return try events(at: [place]).first
  }

  package func scan(
    _ filter: Filter, sizeHint: Int, _ body: (Event) -> Bool
  ) throws(RelayStoreError) {
    let unsent = try unsentEvents()
    var asked = filter
    var read = 0
    // Places are looked up in growing steps: most pages are filled by the first, and a reader to
    // whom little is visible does not make every question look up everything.
    var step = sizeHint
    while true {
      asked.limit = step == .max ? nil : step
      let places = try places(asked)
      while read < places.count {
        let slice = places[read..<min(read + LogStore.sliceCount, places.count)]
        for event in try events(at: slice) where !unsent.contains(event.id) {
          if !body(event) { return }
        }
        read += slice.count
      }
      if places.count < step { return }
      let (grown, overflow) = step.multipliedReportingOverflow(by: 4)
      step = overflow ? .max : grown
    }
  }

  package func insert(
    _ event: Event, scope: Text?, replacesVersions: Bool
  ) throws(RelayStoreError) -> Insertion { throw .readOnly }

  package func bury(_ id: EventID, by author: PublicKey?) throws(RelayStoreError) {
    throw .readOnly
  }

  package func bury(_ address: EventAddress, upTo time: Timestamp) throws(RelayStoreError) {
    throw .readOnly
  }

  package func forget(except isKept: (Event) -> Bool) throws(RelayStoreError) { throw .readOnly }

  // MARK: Reading

  /// How many events are read at once, so that a long scan holds few of them.
  private static let sliceCount = 512

  private func places(_ filter: Filter) throws(RelayStoreError) -> [LogSequence] {
    let now = clock.now()
    do throws(CacheError) {
      return try views.read { view throws(CacheError) in try view.query([filter], now: now) }
    } catch {
      throw .failed(error.description)
    }
  }

  private func events(at places: ArraySlice<LogSequence>) throws(RelayStoreError) -> [Event] {
    do throws(LogError) {
      return try log.events(at: Array(places)).compactMap { $0?.event }
    } catch {
      throw .failed(error.description)
    }
  }

  private func unsentEvents() throws(RelayStoreError) -> Set<EventID> {
    do throws(LogError) {
      return Set(try log.deliveries(includingSent: false).map(\.eventID))
    } catch {
      throw .failed(error.description)
    }
  }
}
