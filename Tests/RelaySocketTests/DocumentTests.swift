import Nostr
import SyncCore
import Testing

@testable import RelaySocket

@Suite struct DocumentTests {
  private func document(
    limits: SocketLimits = .init(), _ talk: @escaping @Sendable (RawConnection) -> Void
  ) async -> Result<[UInt8], TransportError> {
    do {
      let server = try RawServer { connection in
        _ = connection.readRequest()
        talk(connection)
      }
      return .success(
        try await DocumentFetcher(limits: limits).document(of: loopback(server.port)))
    } catch {
      return .failure((error as? TransportError) ?? .refused("\(error)"))
    }
  }

  @Test func `the request asks the root for the document and names nothing of us`() async throws {
    let request = Answer<String>()
    let server = try RawServer { connection in
      request.give(connection.readRequest())
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    }
    let url = try loopback(server.port, path: "/some/where")
    #expect(try await DocumentFetcher().document(of: url) == Array("{}".utf8))
    let text = await request.value()
    #expect(text.hasPrefix("GET / HTTP/1.1\r\n"))
    #expect(text.lowercased().contains("accept: application/nostr+json\r\n"))
    #expect(!text.lowercased().contains("cookie"))
  }

  @Test(arguments: [200, 404])
  func `the server's clock is read, also where there is no document`(status: Int) async throws {
    let server = try RawServer { connection in
      _ = connection.readRequest()
      connection.write(
        "HTTP/1.1 \(status) X\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
          + "Content-Length: 2\r\n\r\n{}")
    }
    let answer = try await DocumentFetcher().answer(of: loopback(server.port))
    #expect(answer.date == 784_111_777)
    #expect(answer.document == (status == 200 ? Array("{}".utf8) : nil))
  }

  @Test func `a document of the limit passes`() async {
    var limits = SocketLimits()
    limits.documentBytesMax = 1000
    let result = await document(limits: limits) { connection in
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
      connection.write([UInt8](repeating: 65, count: 1000))
    }
    #expect(result == .success([UInt8](repeating: 65, count: 1000)))
  }

  @Test(arguments: [true, false])
  func `a document over the limit is refused, announced or not`(isAnnounced: Bool) async {
    var limits = SocketLimits()
    limits.documentBytesMax = 1000
    let result = await document(limits: limits) { connection in
      let length = isAnnounced ? "Content-Length: 1001\r\n" : "Connection: close\r\n"
      connection.write("HTTP/1.1 200 OK\r\n\(length)\r\n")
      connection.write([UInt8](repeating: 65, count: 1001))
    }
    #expect(result == .failure(.refused("the document is larger than 1000 bytes")))
  }

  @Test func `a body that never ends is left at the deadline`() async {
    var limits = SocketLimits()
    limits.documentWaitMax = .milliseconds(300)
    let result = await document(limits: limits) { connection in
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
      connection.waitForEnd()
    }
    #expect(result == .failure(.timedOut))
  }

  @Test func `a redirect to another place is not followed`() async throws {
    let other = try RawServer { $0.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") }
    let port = other.port
    let result = await document { connection in
      connection.write(
        "HTTP/1.1 302 Found\r\nLocation: http://localhost:\(port)/\r\nContent-Length: 0\r\n\r\n")
    }
    #expect(result == .failure(.refused("it redirects to another place")))
    #expect(other.accepted == 0)
  }

  @Test func `a redirect on the same host is followed`() async throws {
    let other = try RawServer { connection in
      _ = connection.readRequest()
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    }
    let port = other.port
    let result = await document { connection in
      connection.write(
        "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:\(port)/\r\nContent-Length: 0\r\n\r\n")
    }
    #expect(result == .success(Array("{}".utf8)))
  }

  @Test func `an error status and a refused connection are said as such`() async throws {
    let result = await document { $0.write("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n") }
    #expect(result == .failure(.refused("the answer was HTTP 500")))
    let port = try RawServer.portOfNobody()
    let error = await failure { _ = try await DocumentFetcher().document(of: loopback(port)) }
    guard case .refused = error else { return #expect(error == .refused("…")) }
  }

  @Test func `plain http reaches only this machine`() async throws {
    let url = try #require(RelayURL("ws://relay.example.com"))
    let error = await failure { _ = try await DocumentFetcher().document(of: url) }
    guard case .refused(let why) = error else { return #expect(error == .refused("…")) }
    #expect(why.contains("wss://relay.example.com"))
  }
}
