import EventLog
import Nostr
import NostrCrypto
import Platform
import RelaySocket
import SyncCore
import Testing

@testable import SyncEngine

/// How long our messages of NIP-77 are on the wire. Hex doubles what is compared, and a message over
/// what a relay takes ends the connection.
@Suite(.timeLimit(.minutes(3))) struct NegotiationFrameTests {
  private struct Deaf: RelayReportSink {
    func take(_ report: RelayReport, from relay: RelayURL) async {}
  }

  /// A relay over a real socket that compares by the machine and measures each message that comes.
  private final class MeasuringRelay: Sendable {
    let url: RelayURL
    private let listener: any BoundListener
    private let largest = Lock(0)

    var largestFrame: Int { largest.withLock { $0 } }

    /// - Parameters:
    ///   - messageBytesMax: What its document names; nil: it has none.
    ///   - takesMax: What it takes; whoever sends more is cut off.
    init(_ set: NegentropySet, messageBytesMax: Int?, takesMax: Int) async throws {
      let listener = try await SocketListener().listen(
        host: "127.0.0.1", port: 0, frameBytesMax: takesMax)
      self.listener = listener
      url = try #require(RelayURL("ws://127.0.0.1:\(listener.port)"))
      if let messageBytesMax {
        listener.setRelayInformation(
          Array(
            (#"{"supported_nips":[1,77],"limitation":{"auth_required":false,"#
              + #""max_message_length":\#(messageBytesMax)}}"#).utf8))
      }
      let largest = largest
      _ = SystemTasks().spawn("measuring relay") {
        while let link = try? await listener.accept() {
          var session: NegentropyMachine?
          while case .message(let bytes)? = try? await link.receive() {
            largest.withLock { $0 = max($0, bytes.count) }
            guard let message = try? ClientMessage.parse(bytes) else { continue }
            switch message {
            case .negOpen(let id, _, let text):
              let opened = NegentropyMachine(set: set, isClient: false, frameBytesMax: 60_000)
              session = opened
              await Self.answer(opened, text, id, link)
            case .negMessage(let id, let text):
              if let session { await Self.answer(session, text, id, link) }
            default: break
            }
          }
          link.abandon()
        }
      }
    }

    deinit { listener.close() }

    private static func answer(
      _ session: NegentropyMachine, _ message: [UInt8], _ id: SubscriptionID,
      _ link: any TransportLink
    ) async {
      guard let step = try? session.receive(message), let answer = step.answer else { return }
      // A client that is gone needs no answer.
      try? await link.send(RelayMessage.negMessage(id, answer).json())
    }
  }

  /// Every item of a set of `count` with a chance for each to be on one side or on both.
  private func sets(_ count: Int) -> (ours: NegentropySet, theirs: NegentropySet) {
    var random: UInt64 = 7
    func draw() -> UInt64 {
      random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return random >> 33
    }
    var (ours, theirs): ([EventPosition], [EventPosition]) = ([], [])
    for number in 0..<count {
      let bytes = (0..<4).flatMap { _ in
        withUnsafeBytes(of: draw() << 32 | draw()) { Array($0) }
      }
      let position = EventPosition(
        createdAt: Timestamp(1_700_000_000 + Int64(number / 3)),
        id: EventID(Bytes32(bytes) ?? .zero))
      let side = draw() % 4
      if side != 0 { ours.append(position) }
      if side != 1 { theirs.append(position) }
    }
    return (NegentropySet(ours), NegentropySet(theirs))
  }

  private func largestFrame(
    messageBytesMax: Int?, takesMax: Int, count: Int = 200_000
  ) async throws -> (bytes: Int, outcome: NegotiationOutcome) {
    let (ours, theirs) = sets(count)
    let relay = try await MeasuringRelay(
      theirs, messageBytesMax: messageBytesMax, takesMax: takesMax)
    var limits = Limits()
    limits.challengeGrace = .milliseconds(200)
    let connection = RelayConnection(
      relay.url, ports: .system(), signer: nil, verifier: Verifier(), sink: Deaf(),
      limits: limits)
    await connection.start()
    // Whether it does it is asked first, as always; then its document has been read too.
    #expect(await connection.servesNegentropy())
    while messageBytesMax != nil, await connection.machine.information == nil { await Task.yield() }
    let outcome = await connection.negotiate(Filter(), over: ours, openMax: .seconds(60))
    await connection.stop()
    return (relay.largestFrame, outcome)
  }

  // F174.
  @Test(arguments: [131_072, 16_384, nil])
  func `no message is longer than the relay takes, however much there is to compare`(
    messageBytesMax: Int?
  ) async throws {
    let most = messageBytesMax ?? 131_072
    let (bytes, outcome) = try await largestFrame(
      messageBytesMax: messageBytesMax, takesMax: most)
    #expect(bytes <= most)
    // There was enough to say to fill a message.
    #expect(bytes > most * 3 / 4, "\(bytes)")
    guard case .compared(let listed, _, let isWhole) = outcome else {
      return #expect(Bool(false), "\(outcome)")
    }
    #expect(isWhole && listed.count > 40_000)
  }

  @Test func `a relay that takes more is sent longer messages`() async throws {
    let (bytes, outcome) = try await largestFrame(
      messageBytesMax: 1 << 20, takesMax: 1 << 20)
    #expect(bytes > 131_072, "\(bytes)")
    guard case .compared = outcome else { return #expect(Bool(false), "\(outcome)") }
  }
}
