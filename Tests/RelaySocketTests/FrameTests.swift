import Nostr
import SyncCore
import Testing

@testable import RelaySocket

/// What a server that was written by nobody we know may send.
@Suite struct FrameTests {
  private static let text: UInt8 = 1
  private static let more: UInt8 = 0
  private static let close: UInt8 = 8
  private static let ping: UInt8 = 9
  private static let pong: UInt8 = 10

  private func link(
    max: Int = 1 << 20, _ talk: @escaping @Sendable (RawConnection) -> Void
  ) async throws -> (RawServer, any TransportLink) {
    let server = try RawServer { connection in
      connection.upgrade()
      talk(connection)
    }
    let transport = SocketTransport(service: SocketService())
    return (server, try await transport.open(loopback(server.port), frameBytesMax: max))
  }

  @Test func `a message in five fragments with a ping between them is one message`() async throws {
    let part = [UInt8](repeating: 65, count: 60_000)
    let (_, link) = try await link { connection in
      connection.writeFrame(Self.text, part, isFinal: false)
      connection.writeFrame(Self.more, part, isFinal: false)
      connection.writeFrame(Self.ping, Array("between".utf8))
      connection.writeFrame(Self.more, part, isFinal: false)
      connection.writeFrame(Self.more, part, isFinal: false)
      connection.writeFrame(Self.more, part)
      connection.waitForEnd()
    }
    let whole = [UInt8](repeating: 65, count: 300_000)
    #expect(difference(try await link.receive(), from: whole) == nil)
  }

  @Test func `an empty last fragment ends the message`() async throws {
    let (_, link) = try await link { connection in
      connection.writeFrame(Self.text, [65, 66], isFinal: false)
      connection.writeFrame(Self.more, [])
      connection.waitForEnd()
    }
    #expect(try await link.receive() == .message([65, 66]))
  }

  @Test func `fragments over the limit together are dropped and what follows arrives`()
    async throws
  {
    let (_, link) = try await link(max: 1000) { connection in
      for number in 0..<5 {
        let opcode = number == 0 ? Self.text : Self.more
        connection.writeFrame(opcode, [UInt8](repeating: 65, count: 400), isFinal: number == 4)
      }
      connection.writeFrame(Self.text, [66])
      connection.waitForEnd()
    }
    #expect(try await link.receive() == .tooLarge(limit: 1000))
    #expect(try await link.receive() == .message([66]))
  }

  @Test(arguments: [0, 4, 125])
  func `a pong that nobody asked for is told, whatever it carries`(count: Int) async throws {
    let (_, link) = try await link { connection in
      connection.writeFrame(Self.pong, [UInt8](repeating: 7, count: count))
      connection.writeFrame(Self.text, [65])
      connection.waitForEnd()
    }
    #expect(try await link.receive() == .pong)
    #expect(try await link.receive() == .message([65]))
  }

  @Test func `what was sent before a close arrives before it, and its reason is kept`()
    async throws
  {
    let (_, link) = try await link { connection in
      for number in 0..<100 { connection.writeFrame(Self.text, Array("\(number)".utf8)) }
      connection.writeFrame(Self.close, [0x0f, 0xa1] + Array("maintenance".utf8))
      connection.waitForEnd()
    }
    for number in 0..<100 {
      #expect(try await link.receive() == .message(Array("\(number)".utf8)))
    }
    let end = await failure { _ = try await link.receive() }
    #expect(end == .closed(code: 4001, reason: "maintenance"))
  }

  @Test func `a close without a code is 1005`() async throws {
    let (_, link) = try await link { connection in
      connection.writeFrame(Self.close, [])
      connection.waitForEnd()
    }
    let end = await failure { _ = try await link.receive() }
    #expect(end == .closed(code: 1005, reason: ""))
  }

  @Test func `a reset is 1006`() async throws {
    let (_, link) = try await link { connection in
      connection.waitForSomething()
      connection.reset()
    }
    try await link.send(Array("open".utf8))
    let end = await failure { _ = try await link.receive() }
    #expect(end == .closed(code: 1006, reason: ""))
  }

  @Test(
    arguments: [
      [0xc1, 0x01, 0x41],  // a compressed frame that nobody agreed to
      [0x83, 0x01, 0x41],  // an opcode that does not exist
      [0x80, 0x01, 0x41],  // a continuation of nothing
    ] as [[UInt8]])
  func `a broken frame ends the connection and delivers nothing`(bytes: [UInt8]) async throws {
    // Beside the answer to the upgrade it could end the opening instead.
    let (_, link) = try await link { connection in
      connection.waitForSomething()
      connection.write(bytes)
      connection.waitForEnd()
    }
    try await link.send(Array("open".utf8))
    let end = await failure { _ = try await link.receive() }
    guard case .closed = end else { return #expect(end == .closed(code: 1002, reason: "…")) }
  }

  @Test func `a reader that stops for good is dropped after the stall limit`() async throws {
    var limits = SocketLimits()
    limits.writeStallMax = .milliseconds(200)
    let service = SocketService(limits: limits)
    let server = try RawServer { connection in
      connection.upgrade()
      // Holds the connection open and reads nothing until the other side has dropped it.
      connection.waitForHangUp()
    }
    let link = try await SocketTransport(service: service)
      .open(loopback(server.port), frameBytesMax: 1000)
    let end = await failure {
      while true { try await link.send([UInt8](repeating: 65, count: 1 << 20)) }
    }
    #expect(end == .closed(code: 1006, reason: "the other side stopped reading"))
  }
}
