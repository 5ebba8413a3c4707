/// Accepts connections: the relay side of `Transport`.
public protocol TransportListener: Sendable {
  /// - Parameter port: 0 lets the system choose one.
  func listen(host: String, port: UInt16, frameBytesMax: Int) async throws(TransportError)
    -> any BoundListener
}

/// A listening socket.
public protocol BoundListener: Sendable {
  /// The port that is listened on.
  var port: UInt16 { get }

  /// The next connection; throws `cancelled` once closed.
  func accept() async throws(TransportError) -> any TransportLink

  /// Sets the body served to `GET /` with `Accept: application/nostr+json` (NIP-11).
  func setRelayInformation(_ json: [UInt8])

  /// Sets who answers what is POSTed; without anybody it is not found.
  func setAnswerer(_ answerer: @escaping QuestionAnswerer)

  /// Stops listening and drops every connection it accepted.
  func close()
}
