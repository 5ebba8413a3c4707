public import Nostr

/// How a NIP-77 session ended before its work was done.
public enum NegotiationEnd: Sendable, Hashable {
  case refused(NegotiationRefusal)
  case disconnected
  /// The engine itself gave up, as at a stop.
  case cancelled
}

/// What a relay's refusal of a NIP-77 session means.
public enum NegotiationRefusal: Sendable, Hashable {
  /// The set is too large for one session; the relay may say how many records it can do.
  case tooMany(recordsMax: Int?)
  /// It does not do this, or not for us.
  case unsupported(Text)
  /// It said nothing at all.
  case silent
  /// This session failed; another may not.
  case failed(Text)

  /// Reads a NEG-ERR, CLOSED or NOTICE. A prefix tells little here: `blocked:` stands before
  /// "disabled" as well as before "too many query results".
  public init(_ text: Text, recordsMax: Int? = nil) {
    let words = text.string.lowercased()
    if recordsMax != nil || Self.isAboutSize(words) {
      self = .tooMany(recordsMax: recordsMax)
      return
    }
    switch RefusalClass(text) {
    case .error: self = .failed(text)
    case .unknown where words.hasPrefix("closed:"): self = .failed(text)
    default: self = words.contains("too many") ? .failed(text) : .unsupported(text)
    }
  }

  private static func isAboutSize(_ words: String) -> Bool {
    if words.contains("too big") || words.contains("too large") { return true }
    guard words.contains("too many") else { return false }
    return ["result", "record", "event", "item", "element", "match"].contains {
      words.contains($0)
    }
  }

  /// For people.
  public var why: Text {
    switch self {
    case .tooMany: "too many events for one comparison"
    case .unsupported(let text), .failed(let text): text
    case .silent: "the relay does not answer NIP-77"
    }
  }
}
