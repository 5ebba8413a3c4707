/// A Nostr event as its fields say (NIP-01). Nothing here has been checked against the id or the
/// signature: that is what `NostrCrypto.VerifiedEvent` stands for.
public struct Event: Hashable, Sendable {
  public let id: EventID
  public let pubkey: PublicKey
  public let createdAt: Timestamp
  public let kind: EventKind
  public let tags: Tags
  public let content: Text
  public let sig: Signature

  public init(
    id: EventID, pubkey: PublicKey, createdAt: Timestamp, kind: EventKind, tags: Tags,
    content: Text, sig: Signature
  ) {
    self.id = id
    self.pubkey = pubkey
    self.createdAt = createdAt
    self.kind = kind
    self.tags = tags
    self.content = content
    self.sig = sig
  }
}

/// What an author decides about an event before it has an id and a signature.
public struct EventDraft: Hashable, Sendable {
  public var createdAt: Timestamp
  public var kind: EventKind
  public var tags: Tags
  public var content: Text

  public init(createdAt: Timestamp, kind: EventKind, tags: Tags, content: Text) {
    self.createdAt = createdAt
    self.kind = kind
    self.tags = tags
    self.content = content
  }
}

/// The order of timelines, pages and exports: by time, then by id.
public struct EventPosition: Hashable, Comparable, Sendable {
  public let createdAt: Timestamp
  public let id: EventID

  public init(createdAt: Timestamp, id: EventID) {
    self.createdAt = createdAt
    self.id = id
  }

  public static func < (left: EventPosition, right: EventPosition) -> Bool {
    left.createdAt != right.createdAt
      ? left.createdAt < right.createdAt : left.id < right.id
  }
}

extension Event {
  public var position: EventPosition { EventPosition(createdAt: createdAt, id: id) }

  /// The group a channel event belongs to: its first `h` value (NIP-29).
  public var group: Text? { tags.firstValue("h") }

  /// The identifier of an addressable event: the value of the first tag named `d`; a bare one, or
  /// none, means the empty string.
  public var identifier: Text { tags.first(named: "d")?.value(1) ?? .empty }
}

/// The bytes over which an event's id was computed (`IdForm.standard` is what NIP-01 intends).
public enum IdForm: UInt8, Sendable, Hashable, CaseIterable {
  /// Control characters without a short escape as `\u00xx`, everything else literal.
  case standard = 0
  /// Those control characters written raw.
  case rawControl = 1
  /// As standard, with U+007F written as `\u007f`.
  case escapedDelete = 2

  /// The name that `verify` prints.
  public var name: String {
    switch self {
    case .standard: "standard"
    case .rawControl: "raw-control"
    case .escapedDelete: "escaped-del"
    }
  }
}
