public import Nostr
public import Platform

/// Everything the engine needs from the world outside it.
///
/// The program brings sockets, the system's clock and threads; the simulator brings its own. No
/// code above this line may reach for time, chance, tasks or sockets in any other way.
public struct Ports: Sendable {
  public let clock: any SyncClock
  public let random: any RandomSource
  public let tasks: any TaskSpawner
  public let transport: any Transport
  public let relayInformation: any RelayInformationFetcher
  public let queries: any RelayQueries
  public let work: any ParallelWork

  public init(
    clock: any SyncClock, random: any RandomSource, tasks: any TaskSpawner,
    transport: any Transport, relayInformation: any RelayInformationFetcher,
    queries: any RelayQueries = NoQueries(), work: any ParallelWork
  ) {
    self.clock = clock
    self.random = random
    self.tasks = tasks
    self.transport = transport
    self.relayInformation = relayInformation
    self.queries = queries
    self.work = work
  }
}

/// Wall time for what is written into events and logs, and a steady clock for deadlines.
public protocol SyncClock: Sendable {
  /// The wall clock in whole seconds; it may jump.
  func now() -> Timestamp

  /// Time since an origin of the clock's own; it never goes back.
  func uptime() -> Duration

  /// Returns at or soon after `uptime`; throws `CancellationError` when the task is cancelled.
  func sleep(until uptime: Duration) async throws
}

/// A source of random numbers; cryptographic in the program, seeded in the simulator.
public protocol RandomSource: Sendable {
  func next() -> UInt64
}

extension RandomSource {
  /// A number in `0..<1`.
  public func fraction() -> Double { Double(next() >> 11) * 0x1p-53 }

  /// A subscription id that was never used before on any connection: 16 lowercase hex digits.
  public func subscriptionID() -> SubscriptionID {
    let digits = String(next(), radix: 16)
    return Text(String(repeating: "0", count: 16 - digits.count) + digits)
  }
}

/// Starts work that outlives the call that starts it.
public protocol TaskSpawner: Sendable {
  func spawn(_ name: String, _ body: @escaping @Sendable () async -> Void) -> any SpawnedTask
}

public protocol SpawnedTask: Sendable {
  func cancel()

  /// Returns when the task has ended.
  func finished() async
}

/// Opens connections to relays.
public protocol Transport: Sendable {
  /// Returns when the WebSocket is open.
  ///
  /// - Parameter frameBytesMax: The largest whole message accepted; a larger one is dropped and
  ///   told as `InboundFrame.tooLarge`.
  func open(_ url: RelayURL, frameBytesMax: Int) async throws(TransportError) -> any TransportLink
}

/// One open connection. Frames are pulled, so a reader that is slow slows the socket.
public protocol TransportLink: Sendable {
  /// The next frame in order; one caller at a time. Throws once when the connection has ended, and
  /// again at every later call.
  func receive() async throws(TransportError) -> InboundFrame

  /// Like `receive`, with what else has arrived by now: one frame at least and `countMax` at most.
  func receive(upTo countMax: Int) async throws(TransportError) -> [InboundFrame]

  /// Returns when the frame was handed to the operating system; waits while the socket is full.
  func send(_ text: [UInt8]) async throws(TransportError)

  /// Sends several frames in order, as by `send` one after the other.
  func send(_ texts: [[UInt8]]) async throws(TransportError)

  func ping() async throws(TransportError)

  /// Starts a close handshake and returns; nothing waits for the other side.
  func close(code: UInt16)

  /// Drops the socket at once, without a handshake.
  func abandon()
}

extension TransportLink {
  public func receive(upTo countMax: Int) async throws(TransportError) -> [InboundFrame] {
    [try await receive()]
  }

  public func send(_ texts: [[UInt8]]) async throws(TransportError) {
    for text in texts { try await send(text) }
  }
}

public enum InboundFrame: Sendable, Hashable {
  /// A whole text or binary message.
  case message([UInt8])
  case pong
  /// A message over the limit was dropped; the connection may still be open.
  case tooLarge(limit: Int)
}

/// Why a connection could not be opened or has ended.
public enum TransportError: Error, Hashable, Sendable, CustomStringConvertible {
  case nameNotFound(host: String)
  case refused(String)
  case timedOut
  case tls(String)
  /// The server answered the upgrade with something else.
  case notWebSocket(String)
  /// The connection ended; the code is the close frame's, or 1006 where there was none.
  case closed(code: UInt16, reason: String)
  case cancelled

  public var description: String {
    switch self {
    case .nameNotFound(let host): "the name \(host) was not found"
    case .refused(let why): "connection refused: \(why)"
    case .timedOut: "timed out"
    case .tls(let why): "TLS failed: \(why)"
    case .notWebSocket(let why): "not a WebSocket: \(why)"
    case .closed(let code, let reason):
      reason.isEmpty ? "closed with code \(code)" : "closed with code \(code): \(reason)"
    case .cancelled: "cancelled"
    }
  }
}

/// What a relay's web server answered.
public struct RelayAnswer: Sendable, Hashable {
  /// Nil where there is no document.
  public var document: [UInt8]?
  /// The server's clock, by its `Date`.
  public var date: Timestamp?

  public init(document: [UInt8]? = nil, date: Timestamp? = nil) {
    self.document = document
    self.date = date
  }
}

/// Fetches a relay's NIP-11 document.
public protocol RelayInformationFetcher: Sendable {
  /// The document and the time, as far as the server tells them.
  func answer(of url: RelayURL) async throws(TransportError) -> RelayAnswer

  /// The body of `GET /` with `Accept: application/nostr+json`, at most 1 MiB.
  func document(of url: RelayURL) async throws(TransportError) -> [UInt8]
}

extension RelayInformationFetcher {
  public func answer(of url: RelayURL) async throws(TransportError) -> RelayAnswer {
    RelayAnswer(document: try await document(of: url))
  }
}
