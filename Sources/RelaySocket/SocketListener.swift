import Platform
package import SyncCore

/// Listens for WebSockets, and serves a relay's document on the same port.
package final class SocketListener: TransportListener {
  private let service: SocketService

  package init(service: SocketService) { self.service = service }

  /// A listener with a service thread of its own.
  package convenience init(limits: SocketLimits = .init()) {
    self.init(service: SocketService(limits: limits))
  }

  package func listen(host: String, port: UInt16, frameBytesMax: Int)
    async throws(TransportError) -> any BoundListener
  {
    let addresses = try await NameLookup().addresses(of: host)
    let socket = try ListeningSocket.open(address: addresses.first ?? host, port: port)
    let core = ListenerCore(service: service, socket: socket, frameBytesMax: frameBytesMax)
    core.start()
    return SocketBoundListener(core: core, service: service, port: socket.port)
  }
}

/// A listening socket. Letting go of it closes it.
package final class SocketBoundListener: BoundListener {
  private let core: ListenerCore
  private let service: SocketService
  package let port: UInt16

  init(core: ListenerCore, service: SocketService, port: UInt16) {
    self.core = core
    self.service = service
    self.port = port
  }

  deinit { core.close() }

  package func accept() async throws(TransportError) -> any TransportLink {
    try await core.accept()
  }

  package func setRelayInformation(_ json: [UInt8]) { core.setRelayInformation(json) }

  package func setAnswerer(_ answerer: @escaping QuestionAnswerer) { core.setAnswerer(answerer) }

  package func close() { core.close() }
}
