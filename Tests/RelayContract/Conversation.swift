package import Nostr
package import NostrCrypto
import SyncCore

/// A relay that the contract is held against: the machine of this project, or one that somebody
/// else wrote.
package protocol ContractRelay: Sendable {
  /// What an AUTH event must name.
  var url: String { get }
  func now() -> Timestamp
  func connect() async throws -> any ContractWire
}

/// One connection to it.
package protocol ContractWire {
  func send(_ message: ClientMessage) async throws
  /// The next message, or nil once the relay has said nothing for as long as it may take.
  func next() async throws -> RelayMessage?
}

/// What a person says and hears on one connection.
package final class Conversation {
  package struct Verdict: Sendable {
    package let isAccepted: Bool
    package let text: String
  }

  package struct Answer: Sendable {
    package var events: [Event] = []
    package var refusal: String?
    package var isEnded = false
  }

  private let wire: any ContractWire
  private let relay: any ContractRelay
  /// What came while something else was waited for.
  private var heard: [RelayMessage] = []
  private var challenge: Text?
  private var requestLast = 0

  package init(_ relay: any ContractRelay) async throws {
    self.relay = relay
    wire = try await relay.connect()
  }

  // MARK: Authentication

  /// Answers the relay's challenge.
  ///
  /// Some relays have no word for the answer, and show by what they serve whether they took it.
  ///
  /// - Returns: Whether the relay took the answer; nil where it never asks, also not for a REQ.
  package func authenticate(
    _ key: SecretKey, challenge wrong: Text? = nil, url: String? = nil, age: Int64 = 0
  ) async throws -> Bool? {
    let probe = Filter(kinds: [9], limit: 1)
    if challenge == nil { try await provoke(probe) }
    guard let challenge else { return nil }
    let tags = Tags([
      ["relay", Text(url ?? relay.url)], ["challenge", wrong ?? challenge],
    ])
    let draft = EventDraft(createdAt: relay.now() - age, kind: 22242, tags: tags, content: "")
    let event = try RelaySigner(key).sign(draft).event
    try await wire.send(.auth(event))
    let answer = try await ask(probe)
    for case .ok(event.id, let isAccepted, _) in heard { return isAccepted }
    return answer.isEnded
  }

  /// Asks, and waits no longer than for a challenge: some relays have no other answer before it.
  private func provoke(_ filter: Filter) async throws {
    requestLast += 1
    let id = Text("contract-\(requestLast)")
    try await wire.send(.req(id, [filter]))
    try await hear { message in
      switch message {
      case .auth, .eose(id, _), .closed(id, _): true
      default: false
      }
    }
    try await wire.send(.close(id))
  }

  // MARK: Writing

  package func publish(_ event: Event) async throws -> Verdict? {
    try await wire.send(.event(event))
    return try await verdict(on: event.id)
  }

  private func verdict(on id: EventID) async throws -> Verdict? {
    var verdict: Verdict?
    try await hear { message in
      guard case .ok(id, let accepted, let text) = message else { return false }
      verdict = Verdict(isAccepted: accepted, text: text.string)
      return true
    }
    return verdict
  }

  // MARK: Reading

  /// What is stored for a REQ, which is then closed.
  package func ask(_ filter: Filter) async throws -> Answer {
    let (id, answer) = try await open([filter])
    try await wire.send(.close(id))
    return answer
  }

  /// Waits until the relay has stored this event, and with it all that it took before: some relays
  /// say OK first.
  ///
  /// - Returns: Whether it has.
  package func settle(_ event: Event) async throws -> Bool {
    _ = try await publish(event)
    // Asking takes as long as the answer does: so many are seconds at a relay behind a socket.
    for _ in 0..<2000 {
      if try await ask(Filter(ids: [event.id], kinds: [event.kind])).events == [event] {
        return true
      }
    }
    return false
  }

  /// Opens a REQ for what is to come.
  package func listen(_ filter: Filter) async throws -> Answer { try await open([filter]).1 }

  private func open(_ filters: [Filter]) async throws -> (SubscriptionID, Answer) {
    requestLast += 1
    let id = Text("contract-\(requestLast)")
    try await wire.send(.req(id, filters))
    var answer = Answer()
    try await hear { message in
      switch message {
      case .event(id, let event):
        answer.events.append(event)
        return false
      case .eose(id, _): answer.isEnded = true
      case .closed(id, let text): answer.refusal = text.string
      default: return false
      }
      return true
    }
    return (id, answer)
  }

  /// Waits for a live event, and gives every live event that came until then; nil where it never
  /// comes.
  package func events(until id: EventID) async throws -> [Event]? {
    func isWanted(_ message: RelayMessage) -> Bool {
      if case .event(_, let event) = message { return event.id == id }
      return false
    }
    if !heard.contains(where: isWanted) { try await hear(isWanted) }
    let isHere = heard.contains(where: isWanted)
    let events = heard.compactMap { message in
      if case .event(_, let event) = message { return event }
      return nil
    }
    return isHere ? events : nil
  }

  /// Takes messages until one is the last, or the relay falls silent.
  private func hear(_ isLast: (RelayMessage) -> Bool) async throws {
    while let message = try await wire.next() {
      if case .auth(let text) = message { challenge = text }
      heard.append(message)
      if isLast(message) { return }
    }
  }
}
