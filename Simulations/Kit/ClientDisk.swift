package import Nostr
package import SyncCore

/// What a client has on its disk: the only things that outlive a crash. Each change is made whole,
/// as a transaction is.
package struct ClientDisk {
  package private(set) var held: [EventID: Event] = [:]
  package private(set) var coverage: [Scope: CoverageMap] = [:]
  package private(set) var gaps: [Scope: GapMap] = [:]
  package private(set) var deliveries: [MessageID: Delivery] = [:]
  /// The event that each message is now; re-dating changes it.
  package private(set) var messages: [MessageID: Event] = [:]
  private var messageNext: Int64 = 1

  package init() {}

  /// The events of a page and what the page proved, in one transaction.
  mutating func commit(
    _ events: [Event], _ findings: HistoryWalk.Findings, of scope: Scope, at now: Timestamp
  ) {
    for event in events { held[event.id] = event }
    for gap in findings.gaps {
      gaps[scope, default: GapMap()].insert(
        GapMap.Entry(from: gap.span.from, to: gap.span.to, why: gap.why))
    }
    for span in findings.proofs {
      coverage[scope, default: CoverageMap()].insert(
        CoverageInterval(from: span.from, to: span.to, provedAt: now, method: .paging))
      gaps[scope]?.subtract(from: span.from, to: span.to)
    }
  }

  mutating func hold(_ event: Event) { held[event.id] = event }

  mutating func forget(_ id: EventID) { held[id] = nil }

  /// Claims a span without a reason; only a flawed client does that.
  mutating func claim(_ interval: CoverageInterval, of scope: Scope) {
    coverage[scope, default: CoverageMap()].insert(interval)
  }

  /// A message just written: the event and its outbox row.
  mutating func enqueue(_ event: Event, to relay: RelayURL) -> OutboxPolicy.Item {
    let id = MessageID(messageNext)
    messageNext += 1
    let delivery = Delivery(
      message: id, eventID: event.id, relay: relay, group: event.group, state: .queued,
      attempts: 0, reason: nil, nextAttemptAt: nil, handedAt: nil, waitsFor: nil)
    messages[id] = event
    deliveries[id] = delivery
    held[event.id] = event
    return OutboxPolicy.Item(delivery: delivery, createdAt: event.createdAt)
  }

  mutating func record(_ delivery: Delivery) { deliveries[delivery.message] = delivery }

  /// The message becomes another event; the old one is given up.
  mutating func redate(_ id: MessageID, as event: Event) -> OutboxPolicy.Item? {
    guard let old = deliveries[id] else { return nil }
    held[old.eventID] = nil
    let delivery = Delivery(
      message: id, eventID: event.id, relay: old.relay, group: old.group, state: .queued,
      attempts: old.attempts, reason: nil, nextAttemptAt: nil, handedAt: nil,
      waitsFor: old.waitsFor)
    messages[id] = event
    deliveries[id] = delivery
    held[event.id] = event
    return OutboxPolicy.Item(delivery: delivery, createdAt: event.createdAt)
  }

  /// The rows that a start takes over, in the order in which they were written.
  var openItems: [OutboxPolicy.Item] {
    deliveries.keys.sorted().compactMap { id in
      guard let delivery = deliveries[id], delivery.state != .sent, let event = messages[id] else {
        return nil
      }
      return OutboxPolicy.Item(delivery: delivery, createdAt: event.createdAt)
    }
  }
}
