package import SyncCore

/// An open connection. Letting go of it drops the socket, unless a close handshake is under way.
package final class SocketLink: TransportLink {
  private let core: LinkCore
  // Keeps the thread that serves the socket.
  private let service: SocketService

  init(core: LinkCore, service: SocketService) {
    self.core = core
    self.service = service
  }

  deinit { core.letGo() }

  package func receive() async throws(TransportError) -> InboundFrame {
    let frames = try await core.receive(upTo: 1)
    // The core hands out a frame or throws.
    guard let frame = frames.first else { throw .closed(code: 1006, reason: "") }
    return frame
  }

  package func receive(upTo countMax: Int) async throws(TransportError) -> [InboundFrame] {
    try await core.receive(upTo: max(1, countMax))
  }

  package func send(_ text: [UInt8]) async throws(TransportError) {
    try await core.send([.text(WriteBuffer(text))])
  }

  package func send(_ texts: [[UInt8]]) async throws(TransportError) {
    var rest = texts[...]
    while !rest.isEmpty {
      let some = rest.prefix(Self.framesAtOnce)
      rest = rest.dropFirst(Self.framesAtOnce)
      try await core.send(some.map { .text(WriteBuffer($0)) })
    }
  }

  package func ping() async throws(TransportError) { try await core.send([.ping]) }

  /// Frames that are queued together; the next are queued when these have left.
  private static let framesAtOnce = 64

  package func close(code: UInt16) { core.close(code: code) }

  package func abandon() { core.abandon() }
}
