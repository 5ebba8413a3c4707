import Nostr
import SyncCore

/// A connection machine with a clock that tests turn, and what it sent in words.
struct ConnectionBench {
  var machine: ConnectionMachine
  var now: Duration = .zero
  let random = SeededRandom(7)
  /// Frames sent and not looked at yet.
  var sent: [ClientMessage] = []
  /// Everything else, in order.
  var effects: [ConnectionMachine.Effect] = []

  init(canSign: Bool = true, limits: Limits = Limits()) {
    machine = ConnectionMachine(limits: limits, canSign: canSign, at: .zero)
  }

  mutating func take(_ input: ConnectionMachine.Input) {
    for effect in machine.handle(input, at: now, using: random) {
      if case .send(let frame) = effect {
        if let message = frame.withUnsafeBytes({ try? ClientMessage.parse($0) }) {
          sent.append(message)
        }
      } else {
        effects.append(effect)
      }
    }
  }

  /// Lets time pass, with a tick whenever one is due.
  mutating func pass(_ time: Duration) {
    let end = now + time
    while let due = machine.deadline, due <= end {
      now = max(now, due)
      take(.tick)
    }
    now = end
  }

  /// Opens and becomes ready without AUTH.
  mutating func becomeReady() {
    take(.start)
    take(.opened)
    pass(.seconds(2))
  }

  /// The REQs sent since last asked, oldest first; CLOSEs are forgotten.
  mutating func takeRequests() -> [(id: SubscriptionID, filters: [Filter])] {
    defer { sent = [] }
    return sent.compactMap { message in
      if case .req(let id, let filters) = message { (id: id, filters: filters) } else { nil }
    }
  }

  mutating func takeEvents() -> [EventID] {
    defer { sent = [] }
    return sent.compactMap { message in
      if case .event(let event) = message { event.id } else { nil }
    }
  }

  mutating func takeAuths() -> [EventID] {
    defer { sent = [] }
    return sent.compactMap { message in
      if case .auth(let event) = message { event.id } else { nil }
    }
  }

  mutating func takeEffects() -> [ConnectionMachine.Effect] {
    defer { effects = [] }
    return effects
  }

  var opens: Int { effects.count { $0 == .open } }

  static func event(
    _ number: Int, kind: EventKind = 9, at time: Timestamp = 1000, group: Text = "g"
  ) -> Event {
    Event(
      id: ModelRelay.position(0, number).id, pubkey: PublicKey(.zero), createdAt: time, kind: kind,
      tags: Tags([["h", group]]), content: "x", sig: Signature(first: .zero, second: .zero))
  }

  static func request(_ filter: Filter = Filter(kinds: [9])) -> HistoryWalk.Request {
    HistoryWalk.Request(filter: filter)
  }
}
