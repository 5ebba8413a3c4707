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

  func attempts(_ text: Text) { attempted.insert(text) }

  func wrote(_ text: Text, _ message: MessageID, _ event: EventID) {
    written.append(Written(text: text, message: message, event: event))
  }
}
