package import Nostr
package import SyncCore

/// Opens WebSockets to relays.
package final class SocketTransport: Transport {
  private let service: SocketService
  private let names: NameLookup

  package init(service: SocketService, names: NameLookup = NameLookup()) {
    self.service = service
    self.names = names
  }

  package func open(_ url: RelayURL, frameBytesMax: Int) async throws(TransportError)
    -> any TransportLink
  {
    guard url.isSecure || url.isLoopback else {
      throw .refused("plain ws:// reaches only this machine; use wss://\(url.hostAndPort)")
    }
    return try await withDeadline(service.core.limits.connectWaitMax) { [self] in
      do throws(TransportError) {
        return .success(try await connect(url, frameBytesMax: frameBytesMax))
      } catch {
        return .failure(error)
      }
    }
  }

  private func connect(_ url: RelayURL, frameBytesMax: Int) async throws(TransportError)
    -> SocketLink
  {
    var addresses = try await names.addresses(of: url.host)
    if !url.isSecure {
      // A name that calls itself local and is not would send everything in the clear.
      addresses.removeAll { !$0.hasPrefix("127.") && $0 != "::1" }
      guard !addresses.isEmpty else { throw .refused("\(url.host) is not this machine") }
    }
    var lastError = TransportError.nameNotFound(host: url.host)
    for (index, address) in addresses.enumerated() {
      // An address that swallows everything must leave time for the next one.
      let share = service.core.limits.connectWaitMax / (addresses.count - index + 1)
      let isLast = index == addresses.count - 1
      do throws(TransportError) {
        if isLast { return try await connect(url, at: address, frameBytesMax: frameBytesMax) }
        return try await withDeadline(share) { [self] in
          do throws(TransportError) {
            return .success(try await connect(url, at: address, frameBytesMax: frameBytesMax))
          } catch {
            return .failure(error)
          }
        }
      } catch {
        if error == .cancelled { throw error }
        lastError = error
      }
    }
    throw lastError
  }

  private func connect(_ url: RelayURL, at address: String, frameBytesMax: Int)
    async throws(TransportError) -> SocketLink
  {
    let target = ConnectTarget(
      address: address, port: url.port, hostAndPort: url.hostAndPort, path: url.path,
      isSecure: url.isSecure)
    let core = LinkCore(service: service.core, target: target, frameBytesMax: frameBytesMax)
    try await core.open()
    return SocketLink(core: core, service: service)
  }
}
