import Nostr
import SyncCore

/// The local copy as one relay should hold it.
struct RelayItems: ReconciliationItems {
  let relay: RelayURL
  let store: CommunityStore
  let desk: LogDesk
  let clock: any SyncClock

  func items(_ filter: Filter, limit: Int) async throws(ItemsError) -> ItemSelection {
    // What was stored a moment ago is part of the copy.
    await store.caughtUp()
    return try await desk.items(filter, for: relay, limit: limit, now: clock.now())
  }

  func missing(_ ids: [EventID]) async throws(ItemsError) -> [EventID] {
    try await desk.missing(ids, for: relay)
  }
}
