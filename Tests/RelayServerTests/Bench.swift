import Nostr
import NostrCrypto
import RelayServer

/// A relay machine, the people who talk to it and a clock that a test moves by hand.
struct Bench {
  static let start = Timestamp(1_760_000_000)

  var machine: RelayMachine
  var now = Bench.start
  var uptime = Duration.seconds(100)
  /// What each connection was sent and has not looked at yet.
  var inboxes: [ConnectionID: [RelayMessage]] = [:]
  var closed: [ConnectionID: UInt16] = [:]
  var kept: [Event] = []
  private var connectionLast: UInt64 = 0
  private var requestLast = 0

  static let relayKey = key("relay")
  static let url = "ws://relay.test:7000"

  init(_ rules: RelayRules = RelayRules(), store: any RelayStore = MemoryStore()) {
    let verifier = Verifier()
    let identity = RelayIdentity(
      name: "bench", urls: [RelayURL(Bench.url)].compactMap { $0 },
      signer: RelaySigner(Bench.relayKey))
    machine = RelayMachine(identity: identity, rules: rules, store: store) {
      (try? verifier.verify($0)) != nil
    }
  }

  static func key(_ name: String) -> SecretKey {
    do {
      return try SecretKey(bytes: SHA256.hash(Array("bench \(name)".utf8)).array)
    } catch {
      preconditionFailure("a test key is in range: \(error)")
    }
  }

  /// An event signed by the person of that name.
  static func event(
    by name: String, _ kind: EventKind, _ tags: [[String]] = [], _ content: String = "",
    at time: Timestamp = Bench.start
  ) -> Event {
    let draft = EventDraft(createdAt: time, kind: kind, tags: Tags(tags), content: Text(content))
    do {
      return try RelaySigner(key(name), entropy: NoEntropy()).sign(draft).event
    } catch {
      preconditionFailure("a test event can be signed: \(error)")
    }
  }

  static func hex(_ name: String) -> String { key(name).publicKey.hex }

  // MARK: Acting

  mutating func connect() -> ConnectionID {
    connectionLast += 1
    let id = ConnectionID(connectionLast)
    step(.opened(id, challenge: Text("challenge-\(connectionLast)")))
    return id
  }

  /// A connection that has authenticated.
  mutating func connect(as name: String) -> ConnectionID {
    let id = connect()
    _ = authenticate(id, as: name)
    _ = take(id)
    return id
  }

  mutating func authenticate(
    _ id: ConnectionID, as name: String, challenge: String? = nil, url: String = Bench.url,
    at time: Timestamp? = nil
  ) -> RelayMessage? {
    let tags = [["relay", url], ["challenge", challenge ?? "challenge-\(id.number)"]]
    let event = Bench.event(by: name, 22242, tags, at: time ?? now)
    _ = take(id)
    say(.auth(event), on: id)
    return take(id).last
  }

  mutating func say(_ message: ClientMessage, on id: ConnectionID) {
    step(.frame(id, message.json()))
  }

  mutating func say(_ text: String, on id: ConnectionID) { step(.frame(id, Array(text.utf8))) }

  /// Publishes and gives the OK's verdict and text.
  mutating func publish(_ event: Event, on id: ConnectionID) -> (accepted: Bool, text: String)? {
    _ = take(id)
    say(.event(event), on: id)
    for case .ok(let answered, let accepted, let text) in take(id) where answered == event.id {
      return (accepted, text.string)
    }
    return nil
  }

  /// What came back for a REQ until its EOSE or CLOSED.
  struct Answer {
    var events: [Event] = []
    var end: RelayMessage?

    var ids: [EventID] { events.map(\.id) }

    var hints: [Text]? {
      if case .eose(_, let hints) = end { return hints }
      return nil
    }

    var refusal: String? {
      if case .closed(_, let text) = end { return text.string }
      return nil
    }
  }

  mutating func ask(_ filters: Filter..., on id: ConnectionID) -> Answer {
    requestLast += 1
    let subscription = Text("q\(requestLast)")
    _ = take(id)
    say(.req(subscription, filters), on: id)
    var answer = Answer()
    for message in take(id) {
      switch message {
      case .event(subscription, let event): answer.events.append(event)
      case .eose, .closed: answer.end = message
      default: break
      }
    }
    say(.close(subscription), on: id)
    return answer
  }

  mutating func step(_ input: RelayMachine.Input) {
    for effect in machine.handle(input, now: now, uptime: uptime) { perform(effect) }
  }

  mutating func perform(_ effect: RelayMachine.Effect) {
    switch effect {
    case .send(let id, let bytes):
      do {
        inboxes[id, default: []].append(try RelayMessage.parse(bytes))
      } catch {
        preconditionFailure("the machine sent a frame that is no message: \(error)")
      }
    case .close(let id, let code): closed[id] = code
    case .keep(let event): kept.append(event)
    }
  }

  mutating func pass(_ duration: Duration) {
    uptime += duration
    now = now + duration.components.seconds
    step(.tick)
  }

  /// Everything that a connection was sent since the last look.
  mutating func take(_ id: ConnectionID) -> [RelayMessage] {
    inboxes.removeValue(forKey: id) ?? []
  }

  /// The live events that a connection was sent since the last look.
  mutating func takeEvents(_ id: ConnectionID) -> [Event] {
    take(id).compactMap { message in
      if case .event(_, let event) = message { return event }
      return nil
    }
  }

  /// A group made by `founder`, with more tags and members.
  mutating func found(
    _ group: String, by founder: String, _ tags: [[String]] = [], members: [String] = []
  ) {
    let id = connect(as: founder)
    _ = publish(
      Bench.event(by: founder, 9007, [["h", group], ["name", group]] + tags, at: now), on: id)
    for member in members {
      let add = Bench.event(by: founder, 9000, [["h", group], ["p", Bench.hex(member)]], at: now)
      _ = publish(add, on: id)
    }
    step(.closed(id))
  }
}
