import EventLog
import Nostr
import NostrCrypto
import SyncCore

/// The one way of verified events from a relay into the log.
struct Intake: Sendable {
  let store: CommunityStore
  let clock: any SyncClock
  let limits: Limits
  /// Hears of events that were new.
  var onNew: (@Sendable ([Event]) async -> Void)?

  /// Stores a batch and returns once the cache is not too far behind.
  func store(_ batch: IngestBatch) async throws(LogError) -> IngestResult {
    let result = try await store.ingest(batch)
    if let onNew, result.appended > 0 {
      await onNew(
        zip(batch.events, result.admissions).compactMap { verified, admission in
          if case .appended = admission { verified.event } else { nil }
        })
    }
    await store.caughtUp(to: LogSequence(result.head.number - limits.cacheLag))
    if let damage = await store.logDamage() { throw damage }
    return result
  }
}
