import Nostr
import SyncCore
import Testing

@testable import RelaySocket

/// A listener on loopback, a connection to it, and the two ends of that connection.
struct SocketPair {
  let service: SocketService
  let listener: any BoundListener
  let client: any TransportLink
  let server: any TransportLink

  init(
    limits: SocketLimits = .init(), clientMax: Int = 8 << 20, serverMax: Int = 8 << 20
  ) async throws {
    service = SocketService(limits: limits)
    let listener = try await SocketListener(service: service)
      .listen(host: "127.0.0.1", port: 0, frameBytesMax: serverMax)
    self.listener = listener
    async let accepted = listener.accept()
    client = try await SocketTransport(service: service)
      .open(loopback(listener.port), frameBytesMax: clientMax)
    server = try await accepted
  }
}

func loopback(_ port: UInt16, host: String = "127.0.0.1", path: String = "/") throws -> RelayURL {
  try #require(RelayURL("ws://\(host):\(port)\(path)"))
}

/// The error that `body` throws, or nil.
func failure(_ body: () async throws -> Void) async -> TransportError? {
  do {
    try await body()
    return nil
  } catch {
    return error as? TransportError
  }
}

/// Where a frame first differs from a message, in words; nil where it is that message.
///
/// Printing megabytes helps nobody.
func difference(_ frame: InboundFrame, from expected: [UInt8]) -> String? {
  guard case .message(let bytes) = frame else { return "\(frame)" }
  if bytes == expected { return nil }
  let at = zip(bytes, expected).enumerated().first { $1.0 != $1.1 }?.offset
  return "\(bytes.count) bytes of \(expected.count), first difference at \(at ?? -1)"
}
