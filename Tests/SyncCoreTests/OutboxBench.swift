import Nostr
import SyncCore

/// An outbox policy with clocks that tests turn, and a relay that answers as it is told.
struct OutboxBench {
  var policy: OutboxPolicy
  var now: Duration = .zero
  var wall: Timestamp = 1_000_000
  let random = SeededRandom(3)
  /// Events handed over and not looked at yet.
  var published: [EventID] = []
  var looks: [EventID] = []
  var redates: [MessageID] = []
  var refreshes: [MessageID] = []
  /// The states that each message was recorded in, in order.
  var records: [MessageID: [DeliveryState]] = [:]
  static let relay = RelayURL("ws://relay.test")

  init(isRedating: Bool = true, limits: Limits = Limits()) {
    policy = OutboxPolicy(limits: limits, isRedating: isRedating)
  }

  mutating func take(_ input: OutboxPolicy.Input) {
    for effect in policy.handle(input, at: now, wall: wall, using: random) {
      switch effect {
      case .record(let delivery): records[delivery.message, default: []].append(delivery.state)
      case .publish(_, let id): published.append(id)
      case .look(let id): looks.append(id)
      case .redate(let id): redates.append(id)
      case .refresh(let id): refreshes.append(id)
      }
    }
  }

  mutating func pass(_ time: Duration) {
    let end = now + time
    while let due = policy.deadline, due <= end {
      advance(to: max(now, due))
      take(.tick)
    }
    advance(to: end)
    take(.tick)
  }

  private mutating func advance(to time: Duration) {
    wall = wall + ((time.components.seconds) - (now.components.seconds))
    now = time
  }

  mutating func add(
    _ number: Int, group: Text? = "g", waitsFor: Int? = nil, at createdAt: Timestamp? = nil,
    state: DeliveryState = .queued, handedAt: Timestamp? = nil
  ) {
    take(.added(item(number, group, waitsFor, createdAt ?? wall, state, handedAt)))
  }

  func item(
    _ number: Int, _ group: Text? = "g", _ waitsFor: Int? = nil, _ createdAt: Timestamp,
    _ state: DeliveryState = .queued, _ handedAt: Timestamp? = nil, event: Int? = nil
  ) -> OutboxPolicy.Item {
    guard let relay = Self.relay else { preconditionFailure("the relay's address is right") }
    return OutboxPolicy.Item(
      delivery: Delivery(
        message: MessageID(Int64(number)), eventID: Self.id(event ?? number), relay: relay,
        group: group, state: state, attempts: handedAt == nil ? 0 : 1, reason: nil,
        nextAttemptAt: nil, handedAt: handedAt,
        waitsFor: waitsFor.map { MessageID(Int64($0)) }),
      createdAt: createdAt)
  }

  static func id(_ number: Int) -> EventID { ModelRelay.position(0, number).id }

  mutating func answer(_ number: Int, _ isAccepted: Bool, _ text: Text = "") {
    take(.verdict(Self.id(number), accepted: isAccepted, text))
  }

  mutating func takePublished() -> [Int] {
    defer { published = [] }
    return published.map { id in (0..<2000).first { Self.id($0) == id } ?? -1 }
  }

  func state(_ number: Int) -> DeliveryState? {
    policy.deliveries.first { $0.message == MessageID(Int64(number)) }?.state
  }

  func reason(_ number: Int) -> Text? {
    policy.deliveries.first { $0.message == MessageID(Int64(number)) }?.reason
  }
}
