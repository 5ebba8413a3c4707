package import Nostr
import SyncCore

/// The relay's side of every conversation, decided from frames and time alone.
///
/// It owns who is authenticated, what is subscribed, who is in which group, and what is answered
/// under which of `RelayRules`. It does not own sockets, clocks, randomness or disk: those are its
/// host's, which feeds it inputs and performs the effects in the order given.
///
/// Invariants: an event is stored at most once; nothing is sent to a connection after its closing;
/// the order of effects depends on the inputs only.
package struct RelayMachine: Sendable {
  package var identity: RelayIdentity
  package var rules: RelayRules
  package internal(set) var store: any RelayStore

  var groups = GroupBook()
  /// By rising id, so that a fan-out has one order.
  var connections: [Connection] = []
  var delayed: [Delayed] = []
  var spending: [PublicKey: [Duration]] = [:]
  /// The last commands that were carried out, oldest first; commands are not stored.
  var commands: [EventID] = []
  let isValid: @Sendable (Event) -> Bool

  // The time of the step, and what it has brought so far.
  var now = Timestamp(0)
  var uptime = Duration.zero
  var effects: [Effect] = []

  /// - Parameters:
  ///   - isValid: Whether an event's id and signature hold; a simulation may remember verdicts.
  package init(
    identity: RelayIdentity, rules: RelayRules = RelayRules(),
    store: any RelayStore = MemoryStore(), isValid: @escaping @Sendable (Event) -> Bool
  ) {
    self.identity = identity
    self.rules = rules
    self.store = store
    self.isValid = isValid
  }

  package enum Input: Sendable {
    /// A connection opened; the challenge is fresh and never used before.
    case opened(ConnectionID, challenge: Text)
    case frame(ConnectionID, [UInt8])
    /// A frame over the limit was dropped by the socket.
    case tooLarge(ConnectionID)
    case closed(ConnectionID)
    /// The time of `nextDeadline` has come.
    case tick
    /// Events that came into the store by another way, to be told to whoever listens.
    case arrived([Event])
  }

  package enum Effect: Sendable, Hashable {
    case send(ConnectionID, [UInt8])
    case close(ConnectionID, code: UInt16)
    /// The event was stored; a host that must survive a restart writes it down.
    case keep(Event)
  }

  /// Takes one input; the effects are to be performed in order.
  package mutating func handle(_ input: Input, now: Timestamp, uptime: Duration) -> [Effect] {
    begin(now: now, uptime: uptime)
    switch input {
    case .opened(let id, let challenge): open(id, challenge: challenge)
    case .frame(let id, let bytes): receive(bytes, from: id)
    case .tooLarge(let id):
      send(.notice("invalid: frame too large"), to: id)
      close(id, code: 1009)
    case .closed(let id): connections.removeAll { $0.id == id }
    case .arrived(let events): for event in events { fanOut(event) }
    case .tick: break
    }
    expireDeadlines()
    return finish()
  }

  /// Takes an event that the relay itself vouches for, such as one that another relay handed over:
  /// it is stored and told as if it had been published, without a judgement.
  package mutating func admit(_ event: Event, now: Timestamp, uptime: Duration) -> [Effect] {
    begin(now: now, uptime: uptime)
    _ = accept(event)
    return finish()
  }

  /// When the next `tick` is due; nil while nothing waits.
  package var nextDeadline: Duration? {
    var earliest = delayed.map(\.due).min()
    for connection in connections {
      guard let deadline = authenticationDeadline(of: connection) else { continue }
      earliest = min(earliest ?? deadline, deadline)
    }
    return earliest
  }

  /// Ends every connection's memory and takes away what `isKept` does not hold on to: a relay that
  /// was restored from a backup. Its host drops the sockets.
  package mutating func restart(
    keeping isKept: (Event) -> Bool = { _ in true }
  ) throws(RelayStoreError) {
    connections = []
    delayed = []
    spending = [:]
    try store.forget(except: isKept)
    try reloadGroups()
  }

  // MARK: Connections

  mutating func begin(now: Timestamp, uptime: Duration) {
    self.now = now
    self.uptime = uptime
    effects.removeAll()
  }

  mutating func finish() -> [Effect] {
    defer { effects = [] }
    return effects
  }

  private mutating func open(_ id: ConnectionID, challenge: Text) {
    precondition(position(of: id) == nil, "a connection id was used twice")
    let isAsked = rules.authentication.challenges
    connections.append(
      Connection(id: id, challenge: isAsked ? challenge : nil, openedAt: uptime))
    connections.sort { $0.id < $1.id }
    if isAsked { send(.auth(challenge: challenge), to: id) }
  }

  private mutating func receive(_ bytes: [UInt8], from id: ConnectionID) {
    guard position(of: id) != nil else { return }
    guard bytes.count <= rules.limits.frameBytesMax else {
      send(.notice("invalid: frame too large"), to: id)
      return close(id, code: 1009)
    }
    let message: ClientMessage
    do throws(FrameError) {
      message = try ClientMessage.parse(bytes)
    } catch {
      return answerBadFrame(error, bytes, to: id)
    }
    if let subscription = message.asker, let refusal = refusalOfKeys(in: bytes) {
      if case .negOpen = message {
        return send(.negError(subscription, refusal, recordsMax: nil), to: id)
      }
      return refuseRequest(subscription, refusal, to: id)
    }
    switch message {
    case .event(let event): publish(event, from: id)
    case .auth(let event): authenticate(event, from: id)
    case .req(let subscription, let filters):
      let cursors = rules.reading.servesKeysetCursor ? keysetCursors(in: bytes) : []
      request(subscription, filters, after: cursors, from: id)
    case .count(let subscription, let filters): count(subscription, filters, from: id)
    case .close(let subscription): end(subscription, of: id)
    case .negOpen(let subscription, let filter, let message):
      openReconciliation(subscription, filter, message, from: id)
    case .negMessage(let subscription, let message): reconcile(subscription, message, from: id)
    case .negClose(let subscription): closeReconciliation(subscription, from: id)
    }
  }

  private mutating func answerBadFrame(
    _ error: FrameError, _ bytes: [UInt8], to id: ConnectionID
  ) {
    switch error {
    case .badSubmission(let event?, let scanError):
      send(.ok(event, accepted: false, Text("invalid: \(scanError)")), to: id)
    case .badFilter(let subscription, let filterError):
      refuseRequest(subscription, Text("invalid: \(filterError)"), to: id)
    default:
      send(.notice(Text("invalid message: \(error)")), to: id)
    }
  }

  mutating func close(_ id: ConnectionID, code: UInt16) {
    guard let index = position(of: id) else { return }
    connections.remove(at: index)
    delayed.removeAll { $0.connection == id }
    effects.append(.close(id, code: code))
  }

  func position(of id: ConnectionID) -> Int? {
    var low = 0
    var high = connections.count
    while low < high {
      let middle = (low + high) / 2
      if connections[middle].id < id { low = middle + 1 } else { high = middle }
    }
    return low < connections.count && connections[low].id == id ? low : nil
  }

  func connection(_ id: ConnectionID) -> Connection? { position(of: id).map { connections[$0] } }

  // MARK: Sending

  mutating func send(_ message: RelayMessage, to id: ConnectionID) {
    guard position(of: id) != nil else { return }
    effects.append(.send(id, message.json()))
  }

  mutating func send(_ message: RelayMessage, to id: ConnectionID, after delay: Duration) {
    delayed.append(Delayed(due: uptime + delay, connection: id, message: message))
  }

  private mutating func expireDeadlines() {
    let due = delayed.filter { $0.due <= uptime }.sorted { $0.due < $1.due }
    delayed.removeAll { $0.due <= uptime }
    for answer in due { send(answer.message, to: answer.connection) }
    for connection in connections {
      guard let deadline = authenticationDeadline(of: connection), deadline <= uptime else {
        continue
      }
      close(connection.id, code: 1008)
    }
  }

  private func authenticationDeadline(of connection: Connection) -> Duration? {
    guard let deadline = rules.authentication.deadline, connection.challenge != nil,
      connection.keys.isEmpty
    else { return nil }
    return connection.openedAt + deadline
  }
}

/// One connection's number; a host never uses one twice.
package struct ConnectionID: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let number: UInt64

  package init(_ number: UInt64) { self.number = number }

  package var description: String { String(number) }

  package static func < (left: ConnectionID, right: ConnectionID) -> Bool {
    left.number < right.number
  }
}

/// What the machine knows of one connection.
struct Connection: Sendable {
  let id: ConnectionID
  /// What an AUTH must repeat; nil where none was sent.
  let challenge: Text?
  let openedAt: Duration
  /// The keys that authenticated here, in order; NIP-42 allows more than one.
  var keys: [PublicKey] = []
  var hasFailedAuthentication = false
  /// In the order in which they were opened.
  var subscriptions: [Subscription] = []
  var closedIDs: Set<SubscriptionID> = []
  var reconciliations: [SubscriptionID: NegentropyMachine] = [:]
}

struct Subscription: Sendable {
  let id: SubscriptionID
  let filters: [Filter]
  /// Set once it was closed, where a last event is still to be sent to it.
  var isGhost = false
}

struct Delayed: Sendable {
  let due: Duration
  let connection: ConnectionID
  let message: RelayMessage
}

extension ClientMessage {
  /// The subscription under which something is asked by a filter.
  fileprivate var asker: SubscriptionID? {
    switch self {
    case .req(let id, _), .count(let id, _), .negOpen(let id, _, _): id
    case .event, .auth, .close, .negMessage, .negClose: nil
    }
  }
}
