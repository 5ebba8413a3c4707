import EventLog
import Nostr
import SyncCore

/// The `previous` tag of NIP-29: by naming events that a relay has shown, a message shows that it
/// belongs into the group's conversation there.
///
/// Only relays that were seen to refuse messages for it get the tag: one that checks it takes a
/// message without it, more often than one whose references have gone stale while it waited.
struct TimelineReferences: Sendable {
  static let tagName: Text = "previous"

  let desk: LogDesk
  let clock: any SyncClock
  let limits: Limits

  /// The setting that says that a relay wants references.
  static func key(_ relay: RelayURL) -> String { "outbox.references \(relay)" }

  /// The tags with fresh references, where the relay wants them; otherwise as they are.
  func tags(
    _ tags: Tags, for relay: RelayURL, author: PublicKey
  ) async throws(LogError) -> Tags {
    guard let group = tags.firstValue("h"), try await desk.setting(Self.key(relay)) != nil else {
      return tags
    }
    let seen = try await desk.references(
      in: group, at: relay, author: author, now: clock.now(), limits: limits)
    let others = tags.filter { $0.name != Self.tagName }.map { Array($0) }
    guard !seen.isEmpty else { return Tags(others) }
    return Tags(others + [[Self.tagName] + seen.map { Text(String($0.hex.prefix(8))) }])
  }
}
