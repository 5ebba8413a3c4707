import Nostr
import Platform
import SyncCore
import Testing

@testable import RelaySocket

/// Questions by POST, on both sides.
@Suite struct QuestionTests {
  private func question(
    _ port: UInt16, body: [UInt8] = Array("[{}]".utf8), authorization: String? = nil
  ) throws -> RelayQuestion {
    RelayQuestion(
      relay: try loopback(port), path: "/query", body: body, authorization: authorization)
  }

  /// What becomes of a question whose answer a test writes.
  private func outcome(
    limits: SocketLimits = .init(), _ talk: @escaping @Sendable (RawConnection) -> Void
  ) async throws -> Result<RelayReply, TransportError> {
    let server = try RawServer { connection in
      _ = connection.readRequest()
      talk(connection)
    }
    let question = try question(server.port)
    do throws(TransportError) {
      return .success(try await QuestionPoster(limits: limits).post(question))
    } catch {
      return .failure(error)
    }
  }

  @Test func `the question says its path, its length and who asks, and no more of us`() async throws
  {
    let request = Answer<String>()
    let server = try RawServer { connection in
      request.give(connection.readRequest())
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")
    }
    let reply = try await QuestionPoster().post(
      question(server.port, authorization: "Nostr abc"))
    #expect(reply == RelayReply(status: 200, body: Array("[]".utf8)))
    let text = await request.value()
    #expect(text.hasPrefix("POST /query HTTP/1.1\r\n"))
    let lower = text.lowercased()
    #expect(lower.contains("content-length: 4\r\n"))
    #expect(lower.contains("content-type: application/json\r\n"))
    #expect(text.contains("Nostr abc\r\n") && !lower.contains("cookie"))
  }

  @Test(arguments: [401, 404, 500])
  func `a refusal is its status, whatever else it says`(status: Int) async throws {
    let result = try await outcome { connection in
      connection.write("HTTP/1.1 \(status) No\r\nContent-Length: 5\r\n\r\nsorry")
    }
    #expect(result == .success(RelayReply(status: status)))
  }

  @Test(arguments: [true, false])
  func `an answer over the limit is refused, announced or not`(isAnnounced: Bool) async throws {
    var limits = SocketLimits()
    limits.answerBytesMax = 1000
    let result = try await outcome(limits: limits) { connection in
      let length = isAnnounced ? "Content-Length: 1001\r\n" : "Connection: close\r\n"
      connection.write("HTTP/1.1 200 OK\r\n\(length)\r\n")
      connection.write([UInt8](repeating: 65, count: 1001))
    }
    guard case .failure(.refused) = result else { return #expect(result == .failure(.timedOut)) }
    limits.answerBytesMax = 1001
    let twin = try await outcome(limits: limits) { connection in
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n")
      connection.write([UInt8](repeating: 65, count: 1001))
    }
    #expect(twin == .success(RelayReply(status: 200, body: [UInt8](repeating: 65, count: 1001))))
  }

  @Test func `silence is left at the deadline`() async throws {
    var limits = SocketLimits()
    limits.answerWaitMax = .milliseconds(300)
    let result = try await outcome(limits: limits) { $0.waitForEnd() }
    #expect(result == .failure(.timedOut))
  }

  @Test func `a signed question never follows a redirect, not even on the same host`() async throws
  {
    let other = try RawServer { $0.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]") }
    let port = other.port
    let result = try await outcome { connection in
      connection.write(
        "HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:\(port)/\r\nContent-Length: 0\r\n\r\n")
    }
    #expect(result == .failure(.refused("it redirects to another place")))
    #expect(other.accepted == 0)
  }

  @Test func `a question goes only to this machine without TLS`() async throws {
    let url = try #require(RelayURL("ws://relay.example.com"))
    let error = await failure {
      _ = try await QuestionPoster().post(RelayQuestion(relay: url, path: "/query", body: []))
    }
    guard case .refused = error else { return #expect(error == .refused("…")) }
  }

  // MARK: The listener

  private func listener(
    _ limits: SocketLimits = .init(), _ answerer: @escaping QuestionAnswerer
  ) async throws -> any BoundListener {
    let listener = try await SocketListener(service: SocketService(limits: limits))
      .listen(host: "127.0.0.1", port: 0, frameBytesMax: 1000)
    listener.setAnswerer(answerer)
    return listener
  }

  @Test func `a listener hands the question over as it came and sends the answer whole`()
    async throws
  {
    let listener = try await listener { question in
      let text = "\(question.path) \(question.authorization ?? "nobody") \(question.body.count)"
      return RelayReply(
        status: 200, body: Array(text.utf8) + [UInt8](repeating: 33, count: 300_000))
    }
    let body = [UInt8](repeating: 97, count: 100_000)
    let reply = try await QuestionPoster().post(
      question(listener.port, body: body, authorization: "Nostr abc"))
    #expect(reply.status == 200)
    let head = Array("/query Nostr abc 100000".utf8)
    #expect(reply.body.prefix(head.count) == head[...])
    #expect(reply.body.count == head.count + 300_000)
    // The next one on a connection of its own, and a document beside it.
    let again = try await QuestionPoster().post(question(listener.port, body: []))
    #expect(again.body.prefix(15) == Array("/query nobody 0".utf8)[...])
  }

  @Test func `a status without a body is an answer too, and nobody there is not found`()
    async throws
  {
    let refusing = try await listener { _ in RelayReply(status: 401) }
    #expect(try await QuestionPoster().post(question(refusing.port)).status == 401)
    let plain = try await SocketListener(service: SocketService())
      .listen(host: "127.0.0.1", port: 0, frameBytesMax: 1000)
    #expect(try await QuestionPoster().post(question(plain.port)).status == 404)
  }

  @Test func `a question that is too long is refused and others are served`() async throws {
    var limits = SocketLimits()
    limits.questionBytesMax = 1000
    let listener = try await listener(limits) { _ in RelayReply(status: 200, body: [65]) }
    let raw = try RawClient(port: listener.port)
    let answer = raw.ask("POST /query HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n")
    #expect(answer.hasPrefix("HTTP/1.1 413"))
    let body = [UInt8](repeating: 97, count: 1000)
    #expect(try await QuestionPoster().post(question(listener.port, body: body)).status == 200)
  }

  @Test(arguments: [
    ("Content-Length: 12\r\n", 413), ("Content-Length: x\r\n", 411), ("Content-Length: 5\r\n", 200),
  ])
  func `a question gets one answer, whatever comes right behind it`(
    length: String, status: Int
  ) async throws {
    var limits = SocketLimits()
    limits.questionBytesMax = 10
    let listener = try await listener(limits) { question in
      RelayReply(status: 200, body: Array("answer to \(question.path)".utf8))
    }
    let count = length.contains("12") ? 12 : length.contains("5") ? 5 : 0
    let text =
      "POST /one HTTP/1.1\r\nHost: x\r\n\(length)\r\n" + String(repeating: "a", count: count)
      + "POST /two HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
    let raw = try RawClient(port: listener.port)
    let heard = Answer<String>()
    // A thread that waits must be none of those that the answer needs.
    startThread {
      raw.send(text)
      heard.give(raw.rest())
    }
    let all = await heard.value()
    #expect(all.split(separator: "HTTP/1.1 ").map { $0.prefix(3) } == ["\(status)"])
    #expect(all.lowercased().contains("connection: close"))
    if status == 200 { #expect(all.hasSuffix("answer to /one")) }
  }

  @Test
  func
    `a listener that leaves a question open serves the next one, and whoever gives up is forgotten`()
    async throws
  {
    let asked = Lock(0)
    let listener = try await listener { _ in
      let number = asked.withLock { count in
        count += 1
        return count
      }
      return number == 1 ? nil : RelayReply(status: 200, body: [65])
    }
    var limits = SocketLimits()
    limits.answerWaitMax = .milliseconds(300)
    let port = listener.port
    let error = await failure {
      _ = try await QuestionPoster(limits: limits).post(question(port))
    }
    #expect(error == .timedOut)
    #expect(try await QuestionPoster().post(question(port)).status == 200)
  }
}
