import Foundation
import Nostr
import NostrCrypto
import RelayContract
import RelaySocket
import SyncCore
import Testing

/// The contract against relays that nobody here wrote. A case that such a relay is known not to
/// hold is listed, and fails once the relay holds it after all.
@Suite(.live, .serialized) struct ContractTests {
  /// What a plain relay without groups has not.
  private static let groupCases: Set<ContractCase> = [
    .refusesForeignGroup, .needsGroup, .withholdsState, .announcesMembership, .opensConversation,
    .reopensConversation, .relayRefusesRelayKinds,
  ]

  private static let lacking: [Relay.Kind: Set<ContractCase>] = [
    // It stores typing for a while, and keeps an older version that comes late beside the newer.
    .nostrRelaySQLite: groupCases.union([.passesTyping, .replacesReadState]),
    .nostrRelayLMDB: groupCases.union([.replacesReadState]),
    .localRelay: groupCases,
  ]

  @Test(arguments: Relay.Kind.allCases)
  func `a foreign relay holds the contract but for what it lacks`(kind: Relay.Kind) async throws {
    let data = try Scratch()
    let salt = "live"
    try await Relay.with(kind, in: data.path("data"), needsAuth: true) { relay in
      for name in ContractRun.names {
        try await relay.admit(try ContractRun.key(name, salt: salt).publicKey.hex)
      }
      for contractCase in ContractCase.allCases {
        let run = ContractRun(
          SocketRelay(url: relay.url), salt: salt, group: contractCase.name)
        let isLacking = Self.lacking[kind]?.contains(contractCase) == true
        #expect(try await run.holds(contractCase) == !isLacking, "\(contractCase.name)")
      }
    }
  }

  @Test(.enabled(if: Named.url != nil, "SKEP_CONTRACT_RELAY names no relay"))
  func `the relay that the environment names holds the contract but for what it lacks`()
    async throws
  {
    let relay = SocketRelay(url: try #require(Named.url), pause: .milliseconds(150))
    let known = Set(ContractCase.allCases.map(\.name))
    try #require(Named.lacking.isSubset(of: known), "the cases are \(known.sorted())")
    for contractCase in ContractCase.allCases {
      let run = ContractRun(relay, salt: UUID().uuidString)
      let isLacking = Named.lacking.contains(contractCase.name)
      #expect(try await run.holds(contractCase) == !isLacking, "\(contractCase.name)")
    }
  }

  /// Another relay, and the names of the cases that it does not hold, with commas between.
  private enum Named {
    static let url = Live.environment["SKEP_CONTRACT_RELAY"]
    static let lacking = Set(
      (Live.environment["SKEP_CONTRACT_LACKS"] ?? "").split(separator: ",").map(String.init))
  }
}

/// A relay behind a real socket as the contract sees a relay.
private struct SocketRelay: ContractRelay {
  /// How long a relay may be silent before it is taken to have nothing to say.
  static let patience = Duration.seconds(3)

  let url: String
  /// Between two frames, for a relay that counts them.
  var pause = Duration.zero
  private let transport = SocketTransport(service: SocketService())

  init(url: String, pause: Duration = .zero) {
    self.url = url
    self.pause = pause
  }

  func now() -> Timestamp { Timestamp(Int64(Date().timeIntervalSince1970)) }

  func connect() async throws -> any ContractWire {
    let address = try #require(RelayURL(url))
    let link = try await transport.open(address, frameBytesMax: 1 << 20)
    return SocketWire(link, pause: pause)
  }
}

private struct SocketWire: ContractWire {
  let link: any TransportLink
  let pause: Duration
  private let clock = SystemClock()

  init(_ link: any TransportLink, pause: Duration) {
    self.link = link
    self.pause = pause
  }

  func send(_ message: ClientMessage) async throws {
    if pause > .zero { try await clock.sleep(until: clock.uptime() + pause) }
    try await link.send(message.json())
  }

  func next() async throws -> RelayMessage? {
    await withTaskGroup(of: RelayMessage?.self) { group in
      group.addTask {
        // The end of the connection is the end of what the relay says.
        while case .message(let bytes)? = try? await link.receive() {
          // What is no message of the protocol is no answer either.
          if let message = try? RelayMessage.parse(bytes) { return message }
        }
        return nil
      }
      group.addTask {
        // Cancelled as soon as the relay has said something.
        try? await clock.sleep(until: clock.uptime() + SocketRelay.patience)
        return nil
      }
      defer { group.cancelAll() }
      return await group.next() ?? nil
    }
  }
}
