package import Nostr
import NostrCrypto
import Platform

/// Whether events verify, remembered: a world checks the same event at several places, and the
/// answer depends on its bytes alone.
package final class VerdictMemo: Sendable {
  private let verifier = Verifier()
  private let verdicts = Lock<[Event: Bool]>([:])

  package init() {}

  package func isValid(_ event: Event) -> Bool {
    if let known = verdicts.withLock({ $0[event] }) { return known }
    // Both failures mean the same here: the event is not what it says.
    let isValid = (try? verifier.verify(event)) != nil
    verdicts.withLock { $0[event] = isValid }
    return isValid
  }
}
