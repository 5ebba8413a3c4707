public import Nostr

/// What a history walk or a live subscription is about, apart from its time bounds: a filter
/// without `since`, `until` and `limit`, in canonical form, so that equal scopes are equal bytes.
public struct Scope: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The canonical JSON of the filter.
  public let key: Text
  public let filter: Filter

  public init(_ filter: Filter) {
    var bare = filter
    bare.since = nil
    bare.until = nil
    bare.limit = nil
    self.filter = bare.canonical
    key = Text(utf8: self.filter.json())
  }

  /// The one group that the filter names with `#h`, if it names exactly one.
  public var group: Text? {
    guard let groups = filter.tags[UInt8(ascii: "h")], groups.count == 1 else { return nil }
    return groups[0]
  }

  /// Whether every event of `other` is an event of this scope.
  public func contains(_ other: Scope) -> Bool {
    FilterRelation.contains(filter, other.filter)
  }

  public var description: String { key.string }

  public static func == (left: Scope, right: Scope) -> Bool { left.key == right.key }

  public static func < (left: Scope, right: Scope) -> Bool { left.key < right.key }

  public func hash(into hasher: inout Hasher) { hasher.combine(key) }
}

/// How a span of time was proved to be complete.
public enum ProofMethod: String, Sendable, Hashable, CaseIterable {
  case paging
  case negentropy
  /// A live subscription held without interruption, from its own EOSE on.
  case live
}

/// A closed span of `created_at` that one relay was proved to have been read completely.
public struct CoverageInterval: Hashable, Sendable {
  public let from: Timestamp
  public let to: Timestamp
  /// When the relay was asked what proves the span; where several proofs became one interval, the
  /// earliest of them.
  public let provedAt: Timestamp
  public let method: ProofMethod

  public init(from: Timestamp, to: Timestamp, provedAt: Timestamp, method: ProofMethod) {
    precondition(from <= to, "an interval ends before it begins")
    self.from = from
    self.to = to
    self.provedAt = provedAt
    self.method = method
  }

  /// Whether it was asked for without an end, and so up to the moment of asking. Only then does it
  /// answer for what has no end; one that ends earlier was asked for up to a chosen end, or below
  /// what was proved before.
  public var isUpToItsProof: Bool { to >= provedAt }

  /// How far a clock may be set back before proofs from the time ahead are given up, in seconds.
  public static let clockSlack: Int64 = 900

  /// Whether the proof can have been made by `now`. One from a time to come was made while the
  /// clock was ahead: it would speak for a time of which nobody has asked yet.
  public func isBelievable(at now: Timestamp) -> Bool { provedAt - Self.clockSlack <= now }
}

/// A proof to be written in the transaction of the events that it speaks of.
public struct CoverageProof: Hashable, Sendable {
  public let relay: RelayURL
  public let scope: Scope
  public let interval: CoverageInterval

  public init(relay: RelayURL, scope: Scope, interval: CoverageInterval) {
    self.relay = relay
    self.scope = scope
    self.interval = interval
  }
}

/// A span that could not be proved, and why; kept until a later proof covers it.
public struct CoverageGap: Hashable, Sendable {
  public let relay: RelayURL
  public let scope: Scope
  public let from: Timestamp
  public let to: Timestamp
  /// A sentence for people, such as `restricted: not a channel member`.
  public let why: Text

  public init(relay: RelayURL, scope: Scope, from: Timestamp, to: Timestamp, why: Text) {
    self.relay = relay
    self.scope = scope
    self.from = from
    self.to = to
    self.why = why
  }
}
