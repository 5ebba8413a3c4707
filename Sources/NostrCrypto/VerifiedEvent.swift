public import Nostr

/// An event whose id and signature this process has checked.
public struct VerifiedEvent: Hashable, Sendable {
  public let event: Event
  /// The bytes over which the id was computed.
  public let idForm: IdForm

  // Internal on purpose: only `Verifier` can vouch for an event.
  init(vouchedFor event: Event, idForm: IdForm) {
    self.event = event
    self.idForm = idForm
  }
}
