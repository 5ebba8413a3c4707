public import Nostr

/// How an AUTH event is written for one relay, beside its challenge.
public struct AuthShape: Sendable, Hashable {
  /// Relays compare the address in different ways, some of them byte by byte.
  public enum Address: Sendable, Hashable {
    /// The relay's one spelling.
    case plain
    /// The other spelling in use: with the slash of an empty path, or without the path.
    case other
  }

  public var address = Address.plain
  /// What is added to our time, in seconds, because the relay's clock differs.
  public var correction: Int64 = 0

  public init() {}

  /// The next one to try after a refusal that may lie in the address.
  var withOtherAddress: AuthShape {
    var shape = self
    shape.address = address == .plain ? .other : .plain
    return shape
  }

  public func text(of url: RelayURL) -> Text {
    switch address {
    case .plain: Text(url.description)
    case .other:
      url.path == "/"
        ? Text(url.description + "/")
        : Text((url.isSecure ? "wss://" : "ws://") + url.hostAndPort)
    }
  }

  public func date(at now: Timestamp) -> Timestamp { now + correction }
}
