/// The bounds of every queue and wait of the sockets.
public struct SocketLimits: Sendable {
  /// From the call to an open WebSocket, name lookup and TLS included.
  public var connectWaitMax: Duration = .seconds(15)
  /// Messages read and not yet pulled; at this many the socket is no longer read.
  public var inboundFramesMax = 256
  /// Bytes read and not yet pulled; at this many the socket is no longer read.
  public var inboundBytesMax = 4 << 20
  /// Calls of `send` and `ping` that may wait at once on one connection; one more is refused.
  public var sendsWaitingMax = 1024
  /// How long one frame may wait for the other side to read before the connection is dropped.
  public var writeStallMax: Duration = .seconds(60)
  /// Connections that a listener serves at once; one more is closed with 1008.
  public var acceptedLinksMax = 512
  /// Connections that were opened and not yet taken by `accept`; one more is closed with 1008.
  public var acceptQueueMax = 128
  /// From the request for a relay's document to its last byte.
  public var documentWaitMax: Duration = .seconds(10)
  public var documentBytesMax = 1 << 20
  /// From a question by POST to the last byte of its answer.
  public var answerWaitMax: Duration = .seconds(15)
  public var answerBytesMax = 16 << 20
  /// The largest question that a listener takes.
  public var questionBytesMax = 256 << 10

  public init() {}
}
