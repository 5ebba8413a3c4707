import EventLog
import Nostr
import NostrCrypto
import SyncCore

/// The one way of verified events from a relay into the log.
struct Intake: Sendable {
  let store: CommunityStore
  let clock: any SyncClock
  let limits: Limits

  /// Stores a batch and returns once the cache is not too far behind.
  func store(_ batch: IngestBatch) async throws(LogError) -> IngestResult {
    let result = try await store.ingest(batch)
    await store.caughtUp(to: LogSequence(result.head.number - limits.cacheLag))
    return result
  }
}
