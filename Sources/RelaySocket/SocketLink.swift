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
    try await core.receive()
  }

  package func send(_ text: [UInt8]) async throws(TransportError) {
    try await core.send(.text(WriteBuffer(text)))
  }

  package func ping() async throws(TransportError) { try await core.send(.ping) }

  package func close(code: UInt16) { core.close(code: code) }

  package func abandon() { core.abandon() }
}
