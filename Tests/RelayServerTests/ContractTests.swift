import Nostr
import RelayContract
import RelayServer
import Synchronization
import Testing

/// The contract against the relay machine: every case holds under the strict rules, and none does
/// with the rule behind it switched.
@Suite struct ContractTests {
  @Test(arguments: ContractCase.allCases)
  func `the machine holds the contract`(contractCase: ContractCase) async throws {
    var rules = RelayRules.strict
    rules.reading.refusedKinds = [9735, 45678, 65000]
    let run = ContractRun(MachineRelay(rules), salt: "machine")
    #expect(try await run.holds(contractCase))
  }

  @Test(arguments: Breach.all)
  fileprivate func `with a rule switched its case does not hold`(breach: Breach) async throws {
    var rules = RelayRules.strict
    breach.change(&rules)
    let run = ContractRun(MachineRelay(rules), salt: "breach")
    #expect(try await run.holds(breach.contractCase) == false)
  }

  @Test func `every case but the client's own has a rule that breaks it`() {
    let broken = Set(Breach.all.map(\.contractCase))
    #expect(
      Set(ContractCase.allCases).subtracting(broken) == [.clientRefusesRelayKinds])
  }
}

/// One switched rule, and the case that falls with it.
private struct Breach: Sendable, CustomTestStringConvertible {
  let contractCase: ContractCase
  let rule: String
  let change: @Sendable (inout RelayRules) -> Void

  init(
    _ contractCase: ContractCase, _ rule: String,
    _ change: @escaping @Sendable (inout RelayRules) -> Void
  ) {
    self.contractCase = contractCase
    self.rule = rule
    self.change = change
  }

  var testDescription: String { "\(contractCase): \(rule)" }

  static let all: [Breach] = [
    Breach(.authenticates, "never challenges") { $0.authentication.challenges = false },
    Breach(.authenticates, "members only") { $0.authentication.members = [] },
    Breach(.checksChallenge, "any challenge") { $0.authentication.checksChallenge = false },
    Breach(.checksRelay, "any address") { $0.authentication.checksHost = false },
    Breach(.checksFreshness, "any age") { $0.authentication.ageMax = nil },
    Breach(.refusesForeignGroup, "open groups") { $0.groups.scopesWriting = false },
    Breach(.refusesForeignGroup, "no groups") { $0.groups.areManaged = false },
    Breach(.needsGroup, "no kind needs a group") { $0.groups.kindsNeedingGroup = [] },
    Breach(.relayRefusesRelayKinds, "any kind") { $0.writing.refusesRelaySignedKinds = false },
    Breach(.takesPresence, "needs a group") { $0.groups.kindsNeedingGroup.insert(20001) },
    Breach(.takesWithdrawal, "needs a group") { $0.groups.kindsNeedingGroup.insert(5) },
    Breach(.takesWithdrawal, "takes nothing away") { $0.writing.deletionTargetsMax = 0 },
    Breach(.evaluatesFilters, "filters unread") { $0.reading.evaluatesFilters = false },
    Breach(.withholdsState, "state goes live") { $0.reading.withholdsGroupState = false },
    Breach(.announcesMembership, "silent") { $0.groups.announcesMembership = false },
    Breach(.opensConversation, "no conversations") { $0.groups.opensConversations = false },
    Breach(.reopensConversation, "no conversations") { $0.groups.opensConversations = false },
    Breach(.passesTyping, "no live events") { $0.reading.fanOut = .none },
    Breach(.passesTyping, "typing is stored") { $0.writing.storesEphemeralEvents = true },
    Breach(.replacesReadState, "versions stay") { $0.writing.replacesVersions = false },
    Breach(.selectsByTag, "filters unread") { $0.reading.evaluatesFilters = false },
    Breach(.takesProfileAndReport, "profiles need one") { $0.groups.kindsNeedingGroup.insert(0) },
    Breach(.takesProfileAndReport, "reports need one") {
      $0.groups.kindsNeedingGroup.insert(1984)
    },
    Breach(.survivesRefusedReceipts, "no live events") { $0.reading.fanOut = .none },
    Breach(.survivesUnknownKinds, "no live events") { $0.reading.fanOut = .none },
  ]
}

/// The relay machine as the contract sees a relay.
private final class MachineRelay: ContractRelay {
  private let bench: Mutex<Bench>

  init(_ rules: RelayRules) { bench = Mutex(Bench(rules)) }

  var url: String { Bench.url }

  func now() -> Timestamp { Bench.start }

  func connect() async throws -> any ContractWire {
    MachineWire(relay: self, id: bench.withLock { $0.connect() })
  }

  fileprivate func say(_ message: ClientMessage, on id: ConnectionID) {
    bench.withLock { $0.say(message, on: id) }
  }

  fileprivate func take(_ id: ConnectionID) -> [RelayMessage] { bench.withLock { $0.take(id) } }
}

private final class MachineWire: ContractWire {
  private let relay: MachineRelay
  private let id: ConnectionID
  private var inbox: [RelayMessage] = []

  init(relay: MachineRelay, id: ConnectionID) {
    self.relay = relay
    self.id = id
  }

  func send(_ message: ClientMessage) async throws { relay.say(message, on: id) }

  func next() async throws -> RelayMessage? {
    inbox += relay.take(id)
    return inbox.isEmpty ? nil : inbox.removeFirst()
  }
}
