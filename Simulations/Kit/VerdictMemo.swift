package import Nostr
package import NostrCrypto

/// Whether events verify, remembered: a world checks the same event at several places, and the
/// answer depends on its bytes alone.
package final class VerdictMemo: Sendable {
  package let verifier = Verifier(verdictsMax: 200_000)

  package init() {}

  package func isValid(_ event: Event) -> Bool {
    // Both failures mean the same here: the event is not what it says.
    (try? verifier.verify(event)) != nil
  }
}
