import Nostr

/// Ids: the SHA-256 of an event's canonical form (NIP-01).
enum EventHash {
  /// The form in which the event has the id it claims, or nil where no form gives it.
  ///
  /// Implementations differ on control characters: one writes them raw, one escapes U+007F. Such an
  /// event is as genuine as any other, so the other forms are tried, but only where they differ.
  static func form(of event: Event) -> IdForm? {
    Scratch.withCurrent { scratch in
      scratch.withBuffer { buffer in
        CanonicalForm.writePreimage(of: event, form: .standard, into: &buffer)
        if scratch.hash(buffer) == event.id.bytes { return .standard }
        let forms = otherForms(of: buffer)
        return forms.first { form in
          CanonicalForm.writePreimage(of: event, form: form, into: &buffer)
          return scratch.hash(buffer) == event.id.bytes
        }
      }
    }
  }

  static func id(of draft: EventDraft, author: PublicKey) -> EventID {
    Scratch.withCurrent { scratch in
      scratch.withBuffer { buffer in
        CanonicalForm.writePreimage(of: draft, author: author, into: &buffer)
        return EventID(scratch.hash(buffer))
      }
    }
  }

  /// The forms that may give other bytes than `standard`, the preimage in standard form.
  private static func otherForms(of standard: [UInt8]) -> [IdForm] {
    var forms: [IdForm] = []
    // A backslash before a `u` may also be the second half of an escaped backslash; then the raw
    // form is hashed once for nothing.
    let hasEscape = zip(standard, standard.dropFirst()).contains { $0 == 0x5c && $1 == 0x75 }
    if hasEscape { forms.append(.rawControl) }
    if standard.contains(0x7f) { forms.append(.escapedDelete) }
    return forms
  }
}

extension Scratch {
  fileprivate func hash(_ buffer: [UInt8]) -> Bytes32 { buffer.withUnsafeBytes { digest.hash($0) } }
}
