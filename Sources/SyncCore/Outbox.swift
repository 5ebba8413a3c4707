public import Nostr

/// The state of one message at one relay, as `skep outbox` names it.
public enum DeliveryState: String, Sendable, Hashable, CaseIterable {
  case queued
  case sending
  /// Handed to the relay, and its answer was lost: the relay is asked before anything is resent.
  case unknown
  /// Waits for something that is named in `reason`: a parent's acceptance, or a time.
  case held
  case refused
  /// Its date is outside the relay's window and re-dating was ruled out.
  case expired
  case sent

  /// Whether the engine will still do something about it by itself.
  public var isOpen: Bool {
    switch self {
    case .queued, .sending, .unknown, .held: true
    case .refused, .expired, .sent: false
    }
  }
}

/// The stable name of a message, from writing it until its end, across re-dating.
public struct MessageID: Hashable, Comparable, Sendable, CustomStringConvertible {
  public let number: Int64

  public init(_ number: Int64) { self.number = number }

  public var description: String { String(number) }

  public static func < (left: MessageID, right: MessageID) -> Bool { left.number < right.number }
}

/// One message on its way to one relay.
public struct Delivery: Hashable, Sendable {
  public let message: MessageID
  public let eventID: EventID
  public let relay: RelayURL
  /// The message's group; messages of one group keep their order.
  public let group: Text?
  public var state: DeliveryState
  public var attempts: Int
  /// The relay's last words, or what is waited for.
  public var reason: Text?
  /// Wall time before which it is not tried again.
  public var nextAttemptAt: Timestamp?
  /// When the bytes were first about to be handed to the relay; nil: the relay cannot know the id.
  public var handedAt: Timestamp?
  /// The message that must be accepted first (a reply's parent, an edit's target), if it is ours
  /// and was still open when this one was written.
  public let waitsFor: MessageID?

  public init(
    message: MessageID, eventID: EventID, relay: RelayURL, group: Text?, state: DeliveryState,
    attempts: Int, reason: Text?, nextAttemptAt: Timestamp?, handedAt: Timestamp?,
    waitsFor: MessageID?
  ) {
    self.message = message
    self.eventID = eventID
    self.relay = relay
    self.group = group
    self.state = state
    self.attempts = attempts
    self.reason = reason
    self.nextAttemptAt = nextAttemptAt
    self.handedAt = handedAt
    self.waitsFor = waitsFor
  }
}
