/// The slot of a replaceable or addressable event: what an `a` tag names.
public struct EventAddress: Hashable, Comparable, Sendable {
  public let kind: EventKind
  public let author: PublicKey
  /// Empty for a replaceable kind.
  public let identifier: Text

  public init(kind: EventKind, author: PublicKey, identifier: Text) {
    self.kind = kind
    self.author = author
    self.identifier = identifier
  }

  /// The slot of `event`; nil where its kind has none.
  public init?(of event: Event) {
    self.init(kind: event.kind, author: event.pubkey, tags: event.tags)
  }

  /// The slot of what `author` is about to say; nil where its kind has none.
  public init?(of draft: EventDraft, author: PublicKey) {
    self.init(kind: draft.kind, author: author, tags: draft.tags)
  }

  private init?(kind: EventKind, author: PublicKey, tags: Tags) {
    switch kind.storage {
    case .replaceable: self.init(kind: kind, author: author, identifier: .empty)
    case .addressable:
      let identifier = tags.first(named: "d")?.value(1) ?? .empty
      self.init(kind: kind, author: author, identifier: identifier.owned())
    case .regular, .ephemeral: return nil
    }
  }

  /// Reads `kind:pubkey:identifier`; the identifier may itself hold colons.
  public init?(_ text: Text) {
    let parts = text.utf8.split(separator: 0x3a, maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, let author = Bytes32(hex: Text(utf8: parts[1])),
      !parts[0].isEmpty, parts[0].allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }),
      let kind = UInt16(Text(utf8: parts[0]).string)
    else { return nil }
    self.init(
      kind: EventKind(kind), author: PublicKey(author), identifier: Text(utf8: parts[2]).owned())
  }

  /// `kind:pubkey:identifier`.
  public var text: Text {
    var bytes: [UInt8] = []
    bytes.appendDecimal(Int64(kind.number))
    bytes.append(0x3a)
    author.bytes.withUnsafeBytes { bytes.appendHex($0) }
    bytes.append(0x3a)
    bytes.append(contentsOf: identifier.utf8)
    return Text(utf8: bytes)
  }

  public static func < (left: EventAddress, right: EventAddress) -> Bool {
    (left.kind, left.author, left.identifier) < (right.kind, right.author, right.identifier)
  }
}
