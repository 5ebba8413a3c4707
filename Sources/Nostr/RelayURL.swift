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
  ///   anything else, for user information, and for an empty host.
  public init?(_ text: some StringProtocol) {
    let text = String(text)
    let lower = text.lowercased()
    let rest: Substring
    if lower.hasPrefix("wss://") {
      isSecure = true
      rest = text.dropFirst(6)
    } else if lower.hasPrefix("ws://") {
      isSecure = false
      rest = text.dropFirst(5)
    } else {
      return nil
    }
    let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    guard !authority.contains("@"), authority.allSatisfy({ $0.isASCII && !$0.isWhitespace }) else {
      return nil
    }
    let tail = rest.dropFirst(authority.count).prefix { $0 != "?" && $0 != "#" }
    guard tail.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f }) else { return nil }
    path = tail.isEmpty ? "/" : String(tail)

    var name = authority[...]
    var portText: Substring?
    if authority.hasPrefix("[") {
      guard let end = authority.firstIndex(of: "]") else { return nil }
      name = authority[authority.index(after: authority.startIndex)..<end]
      let after = authority[authority.index(after: end)...]
      guard after.isEmpty || after.hasPrefix(":") else { return nil }
      portText = after.isEmpty ? nil : after.dropFirst()
    } else if let colon = authority.firstIndex(of: ":") {
      name = authority[..<colon]
      portText = authority[authority.index(after: colon)...]
    }
    guard !name.isEmpty else { return nil }
    host = name.lowercased()
    if let portText {
      guard let number = UInt16(portText), number > 0, portText.allSatisfy(\.isNumber) else {
        return nil
      }
      port = number
    } else {
      port = isSecure ? 443 : 80
    }
  }

  public var hasDefaultPort: Bool { port == (isSecure ? 443 : 80) }

  /// `host`, or `host:port` where the port is not the scheme's own: what names a community.
  public var hostAndPort: String {
    let name = host.contains(":") ? "[\(host)]" : host
    return hasDefaultPort ? name : "\(name):\(port)"
  }

  /// The one spelling, without the slash of an empty path.
  public var description: String {
    (isSecure ? "wss://" : "ws://") + hostAndPort + (path == "/" ? "" : path)
  }

  /// Whether the host is this machine; only then may plain `ws` be used.
  public var isLoopback: Bool {
    // `127.example.com` is a name like any other.
    let isFour = host.hasPrefix("127.") && host.allSatisfy { $0.isNumber || $0 == "." }
    return host == "localhost" || host == "::1" || isFour
  }

  public static func < (left: RelayURL, right: RelayURL) -> Bool {
    left.description < right.description
  }
}
