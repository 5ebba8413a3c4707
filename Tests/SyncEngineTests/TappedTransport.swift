import Nostr
import SyncCore

/// A transport that lets a test look at each frame before it leaves.
struct TappedTransport: Transport {
  let inner: any Transport
  let onSend: @Sendable ([UInt8]) -> Void

  func open(_ url: RelayURL, frameBytesMax: Int) async throws(TransportError) -> any TransportLink {
    Link(inner: try await inner.open(url, frameBytesMax: frameBytesMax), onSend: onSend)
  }

  private struct Link: TransportLink {
    let inner: any TransportLink
    let onSend: @Sendable ([UInt8]) -> Void

    func receive() async throws(TransportError) -> InboundFrame { try await inner.receive() }

    func send(_ text: [UInt8]) async throws(TransportError) {
      onSend(text)
      try await inner.send(text)
    }

    func ping() async throws(TransportError) { try await inner.ping() }

    func close(code: UInt16) { inner.close(code: code) }

    func abandon() { inner.abandon() }
  }
}
