import Nostr
import Platform

/// Events that were found to be what they say, by all of their bytes.
final class KnownEvents: Sendable {
  private let eventsMax: Int
  private let events = Lock<[EventID: VerifiedEvent]>([:])

  init(max: Int) { eventsMax = max }

  func verified(_ event: Event) -> VerifiedEvent? {
    events.withLock { known in
      // The id alone proves nothing: the content may have been swapped under it.
      guard let vouched = known[event.id], vouched.event == event else { return nil }
      return vouched
    }
  }

  func remember(_ event: VerifiedEvent) {
    events.withLock { known in
      if known.count >= eventsMax { known.removeAll(keepingCapacity: true) }
      known[event.event.id] = event
    }
  }
}
