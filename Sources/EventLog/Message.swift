public import Nostr
public import SyncCore

/// A message written here, and how far it has come.
public struct Message: Sendable, Hashable {
  public let id: MessageID
  /// The event it is now; after a re-dating, the new one.
  public let eventID: EventID
  public let group: Text?
  /// What the writer named it by, so that writing it twice is writing it once.
  public let token: Text?
  /// The message that must be accepted first.
  public let waitsFor: MessageID?
  public let writtenAt: Timestamp
  /// The event it was before it got a new date.
  public let redatedFrom: EventID?
  public let isDiscarded: Bool
  /// By relay, in the order of their addresses.
  public let deliveries: [Delivery]

  public init(
    id: MessageID, eventID: EventID, group: Text?, token: Text?, waitsFor: MessageID?,
    writtenAt: Timestamp, redatedFrom: EventID?, isDiscarded: Bool, deliveries: [Delivery]
  ) {
    self.id = id
    self.eventID = eventID
    self.group = group
    self.token = token
    self.waitsFor = waitsFor
    self.writtenAt = writtenAt
    self.redatedFrom = redatedFrom
    self.isDiscarded = isDiscarded
    self.deliveries = deliveries
  }
}

/// The new state of one message at one relay.
public struct DeliveryChange: Sendable, Hashable {
  public let message: MessageID
  public let relay: RelayURL
  public let state: DeliveryState
  public let reason: Text?
  public let nextAttemptAt: Timestamp?
  public let attempts: Int
  /// Nil leaves an earlier time as it is: that a relay may know an id is never taken back.
  public let handedAt: Timestamp?

  public init(
    message: MessageID, relay: RelayURL, state: DeliveryState, reason: Text? = nil,
    nextAttemptAt: Timestamp? = nil, attempts: Int, handedAt: Timestamp? = nil
  ) {
    self.message = message
    self.relay = relay
    self.state = state
    self.reason = reason
    self.nextAttemptAt = nextAttemptAt
    self.attempts = attempts
    self.handedAt = handedAt
  }

  /// The delivery as it now is.
  public init(_ delivery: Delivery) {
    self.init(
      message: delivery.message, relay: delivery.relay, state: delivery.state,
      reason: delivery.reason, nextAttemptAt: delivery.nextAttemptAt,
      attempts: delivery.attempts, handedAt: delivery.handedAt)
  }
}
