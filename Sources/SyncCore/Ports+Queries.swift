public import Nostr

/// A question to a relay's web server.
public struct RelayQuestion: Sendable, Hashable {
  public let relay: RelayURL
  /// Begins with a slash.
  public let path: String
  /// JSON.
  public let body: [UInt8]
  /// The value of the header `Authorization`.
  public let authorization: String?

  public init(relay: RelayURL, path: String, body: [UInt8], authorization: String? = nil) {
    self.relay = relay
    self.path = path
    self.body = body
    self.authorization = authorization
  }

  /// The whole address, as NIP-98 wants it signed.
  public static func address(of relay: RelayURL, path: String) -> String {
    (relay.isSecure ? "https://" : "http://") + relay.hostAndPort + path
  }
}

/// What the server answered.
public struct RelayReply: Sendable, Hashable {
  public let status: Int
  /// Empty unless the status is 200.
  public let body: [UInt8]

  public init(status: Int, body: [UInt8] = []) {
    self.status = status
    self.body = body
  }
}

/// Asks a relay's web server by POST.
public protocol RelayQueries: Sendable {
  /// Nothing leaves for another host: no redirect is followed. A body beyond the port's own bound,
  /// or one that takes too long, is an error.
  func post(_ question: RelayQuestion) async throws(TransportError) -> RelayReply
}

/// For worlds without web servers.
public struct NoQueries: RelayQueries {
  public init() {}

  public func post(_ question: RelayQuestion) async throws(TransportError) -> RelayReply {
    throw .refused("there is no HTTP here")
  }
}

/// A question as the relay's side gets it.
public struct ServedQuestion: Sendable, Hashable {
  public let path: String
  public let body: [UInt8]
  public let authorization: String?

  public init(path: String, body: [UInt8], authorization: String?) {
    self.path = path
    self.body = body
    self.authorization = authorization
  }
}

/// Answers a question; nil leaves whoever asks waiting.
public typealias QuestionAnswerer = @Sendable (ServedQuestion) async -> RelayReply?
