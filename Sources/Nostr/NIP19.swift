/// Keys and events as people share them (NIP-19, NIP-21).
public enum NIP19 {
  public enum Entity: Hashable, Sendable {
    case npub(PublicKey)
    case note(EventID)
    case nprofile(PublicKey, relays: [RelayURL])
    case nevent(EventID, relays: [RelayURL], author: PublicKey?, kind: EventKind?)
    case naddr(EventAddress, relays: [RelayURL])
  }

  /// An entity, and the invitation that a group's address may carry (NIP-29).
  public struct Reference: Hashable, Sendable {
    public let entity: Entity
    public let invite: Text?

    public init(_ entity: Entity, invite: Text? = nil) {
      self.entity = entity
      self.invite = invite
    }
  }

  public enum Failure: Error, Hashable, Sendable, CustomStringConvertible {
    case bech32(Bech32.Failure)
    /// Well-formed, but of no kind that is known here.
    case unknownPrefix(String)
    /// A secret key where something to share was expected: it is neither returned nor named.
    case secretKey
    /// A list entry that reaches past the end.
    case truncated
    /// An entry that the entity cannot be without, by its name.
    case missing(String)

    public var description: String {
      switch self {
      case .bech32(let failure): failure.description
      case .unknownPrefix(let prefix): "nothing known begins with \(prefix)1"
      case .secretKey: "this is a secret key; it is not for sharing"
      case .truncated: "an entry of it is cut short"
      case .missing(let name): "it has no valid \(name)"
      }
    }
  }
}

extension NIP19 {
  /// Reads an entity, with or without `nostr:` in front.
  public static func decode(_ text: some StringProtocol) throws(Failure) -> Entity {
    try reference(text).entity
  }

  /// Reads an entity, with or without `nostr:` in front and `?invite=CODE` behind; other
  /// parameters are ignored.
  public static func reference(_ text: some StringProtocol) throws(Failure) -> Reference {
    var rest = Array(text.utf8)[...]
    if rest.count >= 6, rest.prefix(6).map({ $0 | 0x20 }) == Array("nostr:".utf8) {
      rest = rest.dropFirst(6)
    }
    var invite: Text?
    if let mark = rest.firstIndex(of: 0x3f) {
      invite = Query(rest[rest.index(after: mark)...])["invite"]
      rest = rest[..<mark]
    }
    let (prefix, data) = try bech32(String(decoding: rest, as: UTF8.self))
    let entity = try entity(prefix, data)
    if case .naddr = entity { return Reference(entity, invite: invite) }
    return Reference(entity)
  }

  static func bech32(
    _ text: String
  ) throws(Failure) -> (prefix: String, data: [UInt8]) {
    do throws(Bech32.Failure) {
      return try Bech32.decode(text)
    } catch {
      throw .bech32(error)
    }
  }

  private static func entity(_ prefix: String, _ data: [UInt8]) throws(Failure) -> Entity {
    switch prefix {
    case "npub": return .npub(PublicKey(try whole(data)))
    case "note": return .note(EventID(try whole(data)))
    case "nsec": throw .secretKey
    case "nprofile":
      let list = try EntryList(data)
      guard let key = list.special.flatMap(Bytes32.init) else { throw .missing("key") }
      return .nprofile(PublicKey(key), relays: list.relays)
    case "nevent":
      let list = try EntryList(data)
      guard let id = list.special.flatMap(Bytes32.init) else { throw .missing("id") }
      return .nevent(
        EventID(id), relays: list.relays, author: list.author, kind: list.kind)
    case "naddr":
      let list = try EntryList(data)
      guard let identifier = list.special, identifier.withUnsafeBytes(UTF8Check.isValid) else {
        throw .missing("identifier")
      }
      guard let author = list.author else { throw .missing("author") }
      guard let kind = list.kind else { throw .missing("kind") }
      let address = EventAddress(
        kind: kind, author: author, identifier: Text(utf8: Array(identifier)))
      return .naddr(address, relays: list.relays)
    default: throw .unknownPrefix(prefix.utf8.count <= 16 ? prefix : "…")
    }
  }

  private static func whole(_ data: [UInt8]) throws(Failure) -> Bytes32 {
    guard let bytes = Bytes32(data) else { throw .bech32(.payloadLength(data.count)) }
    return bytes
  }

  /// The entries of a list of type, length and value. Types nobody knows and optional entries that
  /// make no sense are left out: one bad hint must not cost the rest.
  private struct EntryList {
    var special: ArraySlice<UInt8>?
    var relays: [RelayURL] = []
    var author: PublicKey?
    var kind: EventKind?

    init(_ data: [UInt8]) throws(Failure) {
      var rest = data[...]
      while !rest.isEmpty {
        guard rest.count >= 2 else { throw .truncated }
        let type = rest[rest.startIndex]
        let length = Int(rest[rest.startIndex + 1])
        rest = rest.dropFirst(2)
        guard rest.count >= length else { throw .truncated }
        add(type, rest.prefix(length))
        rest = rest.dropFirst(length)
      }
    }

    private mutating func add(_ type: UInt8, _ value: ArraySlice<UInt8>) {
      switch type {
      case 0 where special == nil: special = value
      case 1:
        guard value.withUnsafeBytes(UTF8Check.isValid) else { return }
        if let relay = RelayURL(Text(utf8: value).string) { relays.append(relay) }
      case 2 where author == nil: author = Bytes32(value).map(PublicKey.init)
      case 3 where kind == nil && value.count == 4:
        let number = value.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        kind = UInt16(exactly: number).map { EventKind($0) }
      default: break
      }
    }
  }
}

extension NIP19 {
  /// The entity in its one spelling, without `nostr:`. Relay addresses and an identifier of more
  /// than 255 bytes have no spelling: such hints are left out, and such an address is nil.
  public static func encode(_ entity: Entity) -> String? {
    switch entity {
    case .npub(let key): return Bech32.encode(prefix: "npub", key.bytes.array)
    case .note(let id): return Bech32.encode(prefix: "note", id.bytes.array)
    case .nprofile(let key, let relays):
      var data: [UInt8] = []
      append(0, key.bytes.array, to: &data)
      append(relays, to: &data)
      return Bech32.encode(prefix: "nprofile", data)
    case .nevent(let id, let relays, let author, let kind):
      var data: [UInt8] = []
      append(0, id.bytes.array, to: &data)
      if let author { append(2, author.bytes.array, to: &data) }
      if let kind { append(kind, to: &data) }
      append(relays, to: &data)
      return Bech32.encode(prefix: "nevent", data)
    case .naddr(let address, let relays):
      guard address.identifier.count <= 255 else { return nil }
      var data: [UInt8] = []
      append(0, Array(address.identifier.utf8), to: &data)
      append(2, address.author.bytes.array, to: &data)
      append(address.kind, to: &data)
      append(relays, to: &data)
      return Bech32.encode(prefix: "naddr", data)
    }
  }

  public static func uri(_ reference: Reference) -> String? {
    guard let entity = encode(reference.entity) else { return nil }
    guard let invite = reference.invite else { return "nostr:" + entity }
    return "nostr:" + entity + "?invite=" + Query.escaped(invite)
  }

  private static func append(_ type: UInt8, _ value: [UInt8], to data: inout [UInt8]) {
    data.append(type)
    data.append(UInt8(value.count))
    data.append(contentsOf: value)
  }

  private static func append(_ relays: [RelayURL], to data: inout [UInt8]) {
    for relay in relays {
      let text = Array(relay.description.utf8)
      if text.count <= 255 { append(1, text, to: &data) }
    }
  }

  private static func append(_ kind: EventKind, to data: inout [UInt8]) {
    append(3, [0, 0, UInt8(kind.number >> 8), UInt8(kind.number & 0xff)], to: &data)
  }
}

extension NIP19 {
  /// Lends the 32 bytes of an `nsec` to `body` and wipes them afterwards; a secret key is never a
  /// value that could be kept, compared or printed here.
  public static func withSecretKey<Result, Problem: Error>(
    nsec: some StringProtocol, _ body: (UnsafeRawBufferPointer) throws(Problem) -> Result
  ) throws(Failure) -> Swift.Result<Result, Problem> {
    var (prefix, data) = try bech32(String(nsec))
    defer { Bech32.wipe(&data) }
    guard prefix == "nsec" else { throw .bech32(.prefix(expected: "nsec1")) }
    guard data.count == 32 else { throw .bech32(.payloadLength(data.count)) }
    return data.withUnsafeBytes { buffer in
      Swift.Result { () throws(Problem) in try body(buffer) }
    }
  }

  /// The `nsec` of a secret key: the one way by which it is disclosed.
  public static func nsec(_ secret: UnsafeRawBufferPointer) -> String {
    precondition(secret.count == 32, "a secret key has 32 bytes")
    return Bech32.encode(prefix: "nsec", secret)
  }
}
