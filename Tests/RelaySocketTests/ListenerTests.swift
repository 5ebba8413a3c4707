import Nostr
import Platform
import SyncCore
import Testing

@testable import RelaySocket

@Suite struct ListenerTests {
  private func listener(_ limits: SocketLimits = .init()) async throws -> any BoundListener {
    try await SocketListener(service: SocketService(limits: limits))
      .listen(host: "127.0.0.1", port: 0, frameBytesMax: 1000)
  }

  @Test func `a port in use is refused with a sentence, and free again once closed`() async throws {
    let service = SocketService()
    let first = try await SocketListener(service: service)
      .listen(host: "127.0.0.1", port: 0, frameBytesMax: 1000)
    let port = first.port
    let error = await failure {
      _ = try await SocketListener(service: SocketService())
        .listen(host: "127.0.0.1", port: port, frameBytesMax: 1000)
    }
    guard case .refused(let why) = error else { return #expect(error == .refused("…")) }
    #expect(why.contains("127.0.0.1:\(port)"))
    // A client whose connection lingers must not keep the port.
    let client = try await SocketTransport(service: SocketService())
      .open(loopback(port), frameBytesMax: 1000)
    first.close()
    _ = await failure { _ = try await client.receive() }
    let again = try await SocketListener(service: SocketService())
      .listen(host: "127.0.0.1", port: port, frameBytesMax: 1000)
    #expect(again.port == port)
  }

  @Test func `closing ends whoever waits and drops whoever is connected`() async throws {
    let listener = try await listener()
    let client = try await SocketTransport(service: SocketService())
      .open(loopback(listener.port), frameBytesMax: 1000)
    let served = try await listener.accept()
    async let waiting = failure { _ = try await listener.accept() }
    listener.close()
    #expect(await waiting == .cancelled)
    #expect(await failure { _ = try await listener.accept() } == .cancelled)
    let atServer = await failure { _ = try await served.receive() }
    guard case .closed = atServer else { return #expect(atServer == .closed(code: 0, reason: "")) }
    let atClient = await failure { _ = try await client.receive() }
    guard case .closed = atClient else { return #expect(atClient == .closed(code: 0, reason: "")) }
  }

  @Test func `a cancelled accept ends with cancelled and the next one is served`() async throws {
    let listener = try await listener()
    let waiting = Task { await failure { _ = try await listener.accept() } }
    waiting.cancel()
    #expect(await waiting.value == .cancelled)
    let client = try await SocketTransport(service: SocketService())
      .open(loopback(listener.port), frameBytesMax: 1000)
    let served = try await listener.accept()
    try await served.send([65])
    #expect(try await client.receive() == .message([65]))
  }

  @Test func `one connection too many is closed with 1008, and there is room again later`()
    async throws
  {
    var limits = SocketLimits()
    limits.acceptedLinksMax = 1
    let listener = try await listener(limits)
    let transport = SocketTransport(service: SocketService())
    let url = try loopback(listener.port)
    let first = try await transport.open(url, frameBytesMax: 1000)
    let served = try await listener.accept()
    // Opening ends with the refusal too where it came before the caller was back.
    let end = await failure {
      let second = try await transport.open(url, frameBytesMax: 1000)
      _ = try await second.receive()
    }
    #expect(end == .closed(code: 1008, reason: ""))
    first.close(code: 1000)
    _ = await failure { _ = try await served.receive() }
    _ = await failure { _ = try await first.receive() }
    let third = try await transport.open(url, frameBytesMax: 1000)
    let servedThird = try await listener.accept()
    try await third.send([65])
    #expect(try await servedThird.receive() == .message([65]))
  }

  @Test func `the document is served beside the WebSocket, to any page`() async throws {
    let listener = try await listener()
    let document = Array(#"{"name":"one","supported_nips":[1,11]}"#.utf8)
    listener.setRelayInformation(document)
    let url = try loopback(listener.port, path: "/relay")
    #expect(try await DocumentFetcher().document(of: url) == document)
    let raw = try RawClient(port: listener.port)
    let answer = raw.ask("GET / HTTP/1.1\r\nHost: x\r\nAccept: application/nostr+json\r\n\r\n")
    #expect(answer.lowercased().contains("access-control-allow-origin: *"))
    #expect(answer.lowercased().contains("content-type: application/nostr+json"))
  }

  @Test func `a document of a hundred kilobytes arrives whole`() async throws {
    let listener = try await listener()
    let document = [UInt8](repeating: 32, count: 100_000)
    listener.setRelayInformation(document)
    #expect(try await DocumentFetcher().document(of: loopback(listener.port)) == document)
  }

  @Test func `whoever asks for something else is told what this is`() async throws {
    let listener = try await listener()
    let answer = try RawClient(port: listener.port).ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(answer.hasPrefix("HTTP/1.1 200"))
    #expect(answer.contains("Nostr relay"))
  }

  @Test func `without a document the answer is 404`() async throws {
    let listener = try await listener()
    let error = await failure {
      _ = try await DocumentFetcher().document(of: loopback(listener.port))
    }
    #expect(error == .refused("the answer was HTTP 404"))
  }

  @Test func `a preflight is answered`() async throws {
    let listener = try await listener()
    let answer = try RawClient(port: listener.port).ask("OPTIONS / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(answer.hasPrefix("HTTP/1.1 204"))
    #expect(answer.lowercased().contains("access-control-allow-methods"))
  }

  @Test func `noise on the port harms nobody else`() async throws {
    let listener = try await listener()
    for noise in ["\u{0}\u{1}\u{2}\r\n\r\n", "GET\r\n\r\n", String(repeating: "A", count: 70_000)] {
      let raw = try RawClient(port: listener.port)
      raw.send(noise)
    }
    let client = try await SocketTransport(service: SocketService())
      .open(loopback(listener.port), frameBytesMax: 1000)
    let served = try await listener.accept()
    try await served.send([65])
    #expect(try await client.receive() == .message([65]))
  }
}
