package import Nostr
package import SyncCore

/// What a person remembers of what they wrote: the only witness beside the relays.
package final class UserMemory: @unchecked Sendable {
  // Unchecked: as for the world it is in.
  package struct Written: Sendable {
    package let text: Text
    package let message: MessageID
    package let event: EventID
  }

  /// What the program said it had taken.
  package private(set) var written: [Written] = []
  /// What was given to the program, whether or not it could still say that it had taken it.
  package private(set) var attempted: Set<Text> = []

  /// What the program could not say that it had taken, as it was given.
  package private(set) var unanswered: [Text: EventDraft] = [:]

  func attempts(_ text: Text, _ draft: EventDraft) {
    attempted.insert(text)
    unanswered[text] = draft
  }

  func wrote(_ text: Text, _ message: MessageID, _ event: EventID) {
    unanswered[text] = nil
    written.append(Written(text: text, message: message, event: event))
  }
}
