import Nostr
import SyncCore
import Testing

@Suite struct SelfPolicyTests {
  private let first = PublicKey(Bytes32([UInt8](repeating: 1, count: 32)) ?? .zero)
  private let second = PublicKey(Bytes32([UInt8](repeating: 2, count: 32)) ?? .zero)

  private func verdict(
    _ key: PublicKey, by relay: String, accepted: PublicKey?
  ) throws -> SelfPolicy.Verdict {
    SelfPolicy.verdict(
      on: key, namedBy: try #require(RelayURL(relay)), home: RelayURL("wss://home.example"),
      accepted: accepted)
  }

  @Test func `the home's key is accepted at first sight, and another one never by itself`() throws {
    #expect(try verdict(first, by: "wss://home.example", accepted: nil) == .adopted)
    #expect(try verdict(first, by: "wss://home.example", accepted: first) == .trusted)
    #expect(try verdict(second, by: "wss://home.example", accepted: first) == .offered)
  }

  @Test func `a replica names its origin's key, and brings none in`() throws {
    #expect(try verdict(first, by: "wss://copy.example", accepted: first) == .trusted)
    #expect(try verdict(second, by: "wss://copy.example", accepted: first) == .offered)
    #expect(try verdict(first, by: "wss://copy.example", accepted: nil) == .unknown)
  }
}
