import Nostr
import Platform
import SyncCore
import Testing

@testable import RelaySocket

@Suite struct LinkTests {
  @Test func `a text sent by either side arrives whole at the other`() async throws {
    let pair = try await SocketPair()
    try await pair.client.send(Array("hello".utf8))
    #expect(try await pair.server.receive() == .message(Array("hello".utf8)))
    try await pair.server.send(Array("welcome".utf8))
    #expect(try await pair.client.receive() == .message(Array("welcome".utf8)))
  }

  @Test func `two megabytes arrive whole in both directions`() async throws {
    let pair = try await SocketPair()
    var random = SplitMix(state: 7)
    let large = (0..<2_000_000).map { _ in UInt8(32 + random.next() % 90) }
    async let sent: Void = pair.client.send(large)
    let received = try await pair.server.receive()
    try await sent
    #expect(difference(received, from: large) == nil)
    async let answered: Void = pair.server.send(large)
    let back = try await pair.client.receive()
    try await answered
    #expect(difference(back, from: large) == nil)
  }

  @Test func `many messages arrive in order`() async throws {
    let pair = try await SocketPair()
    let count = 5000
    async let sending: Void = {
      for number in 0..<count { try await pair.client.send(Array("message \(number)".utf8)) }
    }()
    for number in 0..<count {
      #expect(try await pair.server.receive() == .message(Array("message \(number)".utf8)))
    }
    try await sending
  }

  @Test func `messages given and taken several at a time arrive in order and once`() async throws {
    let pair = try await SocketPair()
    let texts = (0..<700).map { Array("text \($0) \(String(repeating: "x", count: $0))".utf8) }
    async let sending: Void = pair.server.send(texts)
    var received: [InboundFrame] = []
    while received.count < texts.count {
      let some = try await pair.client.receive(upTo: 64)
      #expect((1...64).contains(some.count))
      received += some
    }
    try await sending
    #expect(received == texts.map { .message($0) })
  }

  @Test func `a message over the limit is told once and the connection goes on`() async throws {
    let pair = try await SocketPair(serverMax: 1000)
    try await pair.client.send([UInt8](repeating: 65, count: 100_000))
    try await pair.client.send([UInt8](repeating: 66, count: 1000))
    #expect(try await pair.server.receive() == .tooLarge(limit: 1000))
    #expect(try await pair.server.receive() == .message([UInt8](repeating: 66, count: 1000)))
  }

  @Test func `a ping is answered with a pong`() async throws {
    let pair = try await SocketPair()
    try await pair.client.ping()
    #expect(try await pair.client.receive() == .pong)
    try await pair.server.ping()
    #expect(try await pair.server.receive() == .pong)
  }

  @Test func `a close tells the other side its code, after what was sent before it`() async throws {
    let pair = try await SocketPair()
    try await pair.client.send(Array("last".utf8))
    pair.client.close(code: 4001)
    #expect(try await pair.server.receive() == .message(Array("last".utf8)))
    let atServer = await failure { _ = try await pair.server.receive() }
    #expect(atServer == .closed(code: 4001, reason: ""))
    let atClient = await failure { _ = try await pair.client.receive() }
    #expect(atClient == .closed(code: 4001, reason: ""))
    #expect(await failure { try await pair.client.send([65]) } == atClient)
  }

  @Test func `an abandoned connection ends at once here, and with 1006 there`() async throws {
    let pair = try await SocketPair()
    pair.client.abandon()
    let here = await failure { _ = try await pair.client.receive() }
    #expect(here == .closed(code: 1006, reason: "abandoned"))
    let there = await failure { _ = try await pair.server.receive() }
    #expect(there == .closed(code: 1006, reason: ""))
    let again = await failure { _ = try await pair.server.receive() }
    #expect(again == there)
  }

  @Test func `a cancelled receive ends with cancelled and loses nothing`() async throws {
    let pair = try await SocketPair()
    let waiting = Task { await failure { _ = try await pair.client.receive() } }
    waiting.cancel()
    #expect(await waiting.value == .cancelled)
    try await pair.server.send([65])
    #expect(try await pair.client.receive() == .message([65]))
  }

  @Test func `a reader that does not pull stops the sender, and one that does lets it go on`()
    async throws
  {
    var limits = SocketLimits()
    limits.inboundFramesMax = 8
    let pair = try await SocketPair(limits: limits)
    var random = SplitMix(state: 3)
    let piece = (0..<65_536).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    let total = 2000
    let sent = Lock(0)
    let sender = Task {
      for _ in 0..<total {
        try await pair.client.send(piece)
        sent.withLock { $0 += 1 }
      }
    }
    // A frame that cannot leave stays in flight: the sender is stopped for good when a whole
    // round trip on another connection passes and its count has not moved.
    var last = -1
    while true {
      let now = sent.withLock { $0 }
      if now == last, now > 0 { break }
      last = now
      for _ in 0..<20 {
        let other = try await SocketPair()
        other.client.abandon()
      }
    }
    // 128 MB were offered; what is under way is bounded by the queue and the kernel's buffers.
    #expect(last < total / 2)
    for _ in 0..<total {
      try #require(difference(try await pair.server.receive(), from: piece) == nil)
    }
    try await sender.value
    #expect(sent.withLock { $0 } == total)
  }

  @Test func `a cancelled send ends with cancelled while the socket is full`() async throws {
    var limits = SocketLimits()
    limits.inboundFramesMax = 1
    let pair = try await SocketPair(limits: limits)
    let sender = Task {
      await failure {
        while true { try await pair.client.send([UInt8](repeating: 1, count: 99_999)) }
      }
    }
    #expect(try await pair.server.receive() != .pong)
    sender.cancel()
    #expect(await sender.value == .cancelled)
  }
}

/// A small generator with a fixed sequence.
struct SplitMix {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = (state ^ (state >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }
}
