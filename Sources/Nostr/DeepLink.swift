/// A link to a message: `buzz://message?channel=…&id=…[&thread=…]`.
///
/// It names no community; whoever keeps one keeps the relay beside it. Invitations share its
/// scheme, so try this first.
public struct DeepLink: Hashable, Sendable {
  public let channel: Text
  public let id: EventID
  /// The root of the thread in which the message stands.
  public let thread: EventID?

  public init(channel: Text, id: EventID, thread: EventID? = nil) {
    self.channel = channel
    self.id = id
    self.thread = thread
  }

  /// Scheme and host in any case; nil without a channel and a valid id.
  public init?(_ text: some StringProtocol) {
    guard let link = Link(text), link.scheme == "buzz", link.host == "message",
      let channel = link.query["channel"], !channel.isEmpty,
      let id = link.query["id"].flatMap(Bytes32.init(hex:))
    else { return nil }
    let thread = link.query["thread"] ?? .empty
    let root = Bytes32(hex: thread)
    guard thread.isEmpty || root != nil else { return nil }
    self.init(channel: channel, id: EventID(id), thread: root.map(EventID.init))
  }

  public var text: String {
    let start = "buzz://message?channel=\(Query.escaped(channel))&id=\(id.hex)"
    return thread.map { "\(start)&thread=\($0.hex)" } ?? start
  }
}

/// An invitation to a community: `https://HOST/invite/CODE` or `buzz://join?relay=…&code=…`.
public struct InviteLink: Hashable, Sendable {
  public let relay: RelayURL
  public let code: Text

  public init?(relay: RelayURL, code: Text) {
    guard (8...512).contains(code.count), !code.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7f })
    else { return nil }
    self.relay = relay
    self.code = code
  }

  public init?(_ text: some StringProtocol) {
    guard let link = Link(text) else { return nil }
    switch link.scheme {
    case "https", "http":
      let segments = link.path.split(separator: 0x2f)
      guard segments.count == 2, segments[0].elementsEqual("invite".utf8),
        let code = Query.decoded(segments[1]),
        let relay = RelayURL((link.scheme == "https" ? "wss://" : "ws://") + link.host),
        relay.isSecure || relay.isLoopback
      else { return nil }
      self.init(relay: relay, code: code)
    case "buzz", "comb":
      guard link.host == "join", let code = link.query["code"],
        let relay = link.query["relay"].flatMap({ RelayURL($0.string) })
      else { return nil }
      self.init(relay: relay, code: code)
    default: return nil
    }
  }

  /// When the code itself says that it expires. It may end an attempt early and never lets one
  /// pass; newer codes are opaque and say nothing.
  public var expiryHint: Timestamp? {
    guard !code.hasPrefix("v2."), let head = code.utf8.split(separator: 0x2e).first,
      let json = Base64URL.decoded(head),
      // A hint that cannot be read is no hint.
      let value = try? JSONValue.parse(json)
    else { return nil }
    return value["e"]?.int.map { Timestamp($0) }
  }
}

/// A link taken apart as far as the links here need it.
private struct Link {
  let scheme: String
  /// Lowercase, with its port.
  let host: String
  let path: ArraySlice<UInt8>
  let query: Query

  init?(_ text: some StringProtocol) {
    var bytes = Array(text.utf8)[...]
    while let first = bytes.first, Self.isSpace(first) { bytes = bytes.dropFirst() }
    while let last = bytes.last, Self.isSpace(last) { bytes = bytes.dropLast() }
    guard let colon = bytes.firstIndex(of: 0x3a),
      bytes[colon...].starts(with: "://".utf8)
    else { return nil }
    scheme = String(decoding: bytes[..<colon], as: UTF8.self).lowercased()
    let rest = bytes[(colon + 3)...].prefix { $0 != 0x23 }
    let place = rest.prefix { $0 != 0x3f }
    query = Query(rest.dropFirst(place.count + 1))
    let authority = place.prefix { $0 != 0x2f }
    host = String(decoding: authority, as: UTF8.self).lowercased()
    path = place.dropFirst(authority.count)
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte <= 0x20 }
}

/// Base64 with `-` and `_` and without padding (RFC 4648, section 5).
enum Base64URL {
  static func decoded(_ text: some Collection<UInt8>) -> [UInt8]? {
    var result: [UInt8] = []
    var bits: UInt32 = 0
    var count = 0
    for byte in text where byte != 0x3d {
      guard let value = value(byte) else { return nil }
      bits = (bits & 0xffff) << 6 | value
      count += 6
      if count >= 8 {
        count -= 8
        result.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      }
    }
    return result
  }

  private static func value(_ byte: UInt8) -> UInt32? {
    switch byte {
    case 0x41...0x5a: UInt32(byte - 0x41)
    case 0x61...0x7a: UInt32(byte - 0x61 + 26)
    case 0x30...0x39: UInt32(byte - 0x30 + 52)
    case 0x2d: 62
    case 0x5f: 63
    default: nil
    }
  }
}
