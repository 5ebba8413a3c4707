/// A relay's address in one spelling, so that one relay is never counted twice.
///
/// Scheme and host are lowercase, a default port is dropped, an empty path is `/`, a query and a
/// fragment are dropped, and other paths are kept as given.
public struct RelayURL: Hashable, Comparable, Sendable, CustomStringConvertible {
  public let isSecure: Bool
  /// Lowercase name, IPv4 address, or IPv6 address without brackets.
  public let host: String
  public let port: UInt16
  /// Begins with `/`.
  public let path: String

  /// - Parameter text: `ws://` or `wss://`, a host, and optionally a port and a path; nil for
  ///   anything else, for user information, and for a host that is neither a name of the DNS nor an
  ///   IP address.
  public init?(_ text: some StringProtocol) {
    var rest = Array(text.utf8)[...]
    if Self.drop("wss://", from: &rest) {
      isSecure = true
    } else if Self.drop("ws://", from: &rest) {
      isSecure = false
    } else {
      return nil
    }
    let authority = rest.prefix { $0 != 0x2f && $0 != 0x3f && $0 != 0x23 }
    let tail = rest.dropFirst(authority.count).prefix { $0 != 0x3f && $0 != 0x23 }
    guard tail.allSatisfy({ $0 > 0x20 && $0 != 0x7f }) else { return nil }
    path = tail.isEmpty ? "/" : String(decoding: tail, as: UTF8.self)

    guard let (name, port) = Self.split(authority) else { return nil }
    host = String(decoding: name.map(Self.lowercase), as: UTF8.self)
    self.port = port ?? (isSecure ? 443 : 80)
  }

  public var hasDefaultPort: Bool { port == (isSecure ? 443 : 80) }

  /// `host`, or `host:port` where the port is not the scheme's own: what names a community.
  public var hostAndPort: String {
    let name = host.utf8.contains(0x3a) ? "[\(host)]" : host
    return hasDefaultPort ? name : "\(name):\(port)"
  }

  /// The one spelling, without the slash of an empty path.
  public var description: String {
    (isSecure ? "wss://" : "ws://") + hostAndPort + (path == "/" ? "" : path)
  }

  /// Whether the host is this machine; only then may plain `ws` be used.
  public var isLoopback: Bool {
    if host == "localhost" || host == "::1" { return true }
    // Four numbers, for a name like `127.evil.test` is somebody else's.
    return host.hasPrefix("127.") && RelayHost.isFour(Array(host.utf8)[...])
  }

  public static func < (left: RelayURL, right: RelayURL) -> Bool {
    left.description < right.description
  }

  private static func drop(_ scheme: StaticString, from rest: inout ArraySlice<UInt8>) -> Bool {
    let length = scheme.utf8CodeUnitCount
    let expected = UnsafeBufferPointer(start: scheme.utf8Start, count: length)
    guard rest.count >= length,
      rest.prefix(length).map(lowercase).elementsEqual(expected)
    else { return false }
    rest = rest.dropFirst(length)
    return true
  }

  /// The host and the port of an authority; nil where it is none that a relay can have.
  private static func split(
    _ authority: ArraySlice<UInt8>
  ) -> (name: ArraySlice<UInt8>, port: UInt16?)? {
    let name: ArraySlice<UInt8>
    let after: ArraySlice<UInt8>
    if authority.first == 0x5b {
      guard let end = authority.firstIndex(of: 0x5d) else { return nil }
      name = authority[(authority.startIndex + 1)..<end]
      after = authority[(end + 1)...]
      guard RelayHost.isSix(name) else { return nil }
    } else {
      name = authority.prefix { $0 != 0x3a }
      after = authority.dropFirst(name.count)
      guard RelayHost.isNameOrFour(name) else { return nil }
    }
    guard name.count <= hostBytesMax else { return nil }
    guard let colon = after.first else { return (name, nil) }
    let digits = after.dropFirst()
    guard colon == 0x3a, (1...5).contains(digits.count),
      digits.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }),
      let port = UInt16(String(decoding: digits, as: UTF8.self)), port > 0
    else { return nil }
    return (name, port)
  }

  /// Names end at 253 bytes, and with its port a host must still do as the name of a folder.
  private static let hostBytesMax = 249

  private static func lowercase(_ byte: UInt8) -> UInt8 {
    byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte
  }
}
