public import Nostr

/// What a relay's words mean, read from the machine-readable prefix of OK, CLOSED and NOTICE.
///
/// Only the word before the first `:` counts: `blocked: duplicate content` is a block. The rest is
/// for people, but for a wait that the relay names and for refusals of an event's date.
public enum RefusalClass: Sendable, Hashable {
  case duplicate
  /// The wait that `retry in Ns` names.
  case rateLimited(retryAfter: Duration?)
  case authRequired
  /// `restricted: you are timed out until <unix>`.
  case timedOut(until: Timestamp)
  case restricted
  case blocked
  /// The event's date is outside the relay's window.
  case outsideTimeWindow
  /// The event names no events of its group that the relay holds, and the relay wants it to
  /// (NIP-29's `previous`).
  case references
  case invalid
  case pow
  case mute
  case unsupported
  case error
  /// A word that no rule names, or none at all.
  case unknown

  public init(_ text: Text) {
    let words = text.string.lowercased()
    let prefix = Self.prefix(of: words)
    if prefix != "duplicate", Self.isAboutReferences(words) {
      self = .references
      return
    }
    switch prefix {
    case "duplicate": self = .duplicate
    case "rate-limited": self = .rateLimited(retryAfter: Self.wait(in: words))
    case "auth-required": self = .authRequired
    case "restricted":
      if let until = Self.number(after: "timed out until ", in: words) {
        self = .timedOut(until: Timestamp(until))
      } else {
        self = .restricted
      }
    case "blocked": self = .blocked
    case "invalid": self = Self.isAboutTime(words) ? .outsideTimeWindow : .invalid
    case "pow": self = .pow
    case "mute": self = .mute
    case "unsupported": self = .unsupported
    case "error": self = .error
    default: self = .unknown
    }
  }

  /// What becomes of a subscription that was closed with these words.
  public enum SubscriptionVerdict: Sendable, Hashable {
    /// Everything waits, then it is asked again under a new id.
    case pause(Duration?)
    case authenticate
    /// Asked again after a while, a bounded number of times.
    case retry
    /// Over until something changes; its owner is told.
    case terminal
    /// Too many are open at once: this one waits for a free place.
    case crowded
  }

  /// - Parameter text: The words of a CLOSED.
  public static func subscriptionVerdict(_ text: Text) -> SubscriptionVerdict {
    let words = text.string.lowercased()
    if words.contains("too many subscriptions") || words.contains("too many concurrent req") {
      return .crowded
    }
    switch RefusalClass(text) {
    case .rateLimited(let wait): return .pause(wait)
    case .authRequired: return .authenticate
    case .restricted, .timedOut, .blocked, .invalid, .outsideTimeWindow, .references, .pow, .mute,
      .duplicate,
      .unsupported:
      return .terminal
    case .error: return words.contains("mixed search") ? .terminal : .retry
    case .unknown: return .retry
    }
  }

  /// Whether the words say that a date or a clock was the trouble, whatever their prefix.
  static func isAboutTime(_ text: Text) -> Bool {
    let words = text.string.lowercased()
    return isAboutTime(words) || words.contains("clock")
  }

  /// Whether the words say that an AUTH named the relay wrongly, whatever their prefix.
  static func isAboutAddress(_ text: Text) -> Bool {
    let words = text.string.lowercased()
    return words.contains("relay")
      && ["different", "wrong", "match", "url", "address"].contains { words.contains($0) }
  }

  private static func prefix(of words: String) -> String {
    let head = words.prefix { $0 != ":" }
    let trimmed = head.drop { $0 == " " }
    // A sentence is not a prefix, whether or not a colon follows somewhere.
    return trimmed.contains(" ") ? "" : String(trimmed)
  }

  private static func isAboutReferences(_ words: String) -> Bool {
    [
      "previous tag", "'previous'", "\"previous\"", "`previous`", "previous id", "previous event",
      "timeline reference",
    ]
    .contains { words.contains($0) }
  }

  private static func isAboutTime(_ words: String) -> Bool {
    [
      "timestamp", "created_at", "too old", "too far in the", "in the future", "too early",
      "too late",
    ]
    .contains { words.contains($0) }
  }

  private static func wait(in words: String) -> Duration? {
    guard let seconds = number(after: "retry in ", in: words) else { return nil }
    return .seconds(min(seconds, 86_400))
  }

  private static func number(after phrase: String, in words: String) -> Int64? {
    var rest = words[...]
    while !rest.isEmpty {
      if rest.hasPrefix(phrase) {
        return Int64(rest.dropFirst(phrase.count).prefix { $0.isASCII && $0.isNumber })
      }
      rest = rest.dropFirst()
    }
    return nil
  }
}
