public import Nostr
public import SyncCore

/// One step of the log: an event, or something learnt about events or relays.
public struct LogEntry: Sendable, Hashable {
  public let sequence: LogSequence
  public let body: Body

  public enum Body: Sendable, Hashable {
    case event(LoggedEvent)
    case fact(Fact)
  }

  public init(sequence: LogSequence, body: Body) {
    self.sequence = sequence
    self.body = body
  }
}

/// A verified event as the log keeps it.
public struct LoggedEvent: Sendable, Hashable {
  public let event: Event
  /// The bytes over which the id was computed.
  public let idForm: IdForm
  public let receivedAt: Timestamp
  /// The relay that served it first; nil: written here, or imported from a file.
  public let source: RelayURL?

  public init(event: Event, idForm: IdForm, receivedAt: Timestamp, source: RelayURL?) {
    self.event = event
    self.idForm = idForm
    self.receivedAt = receivedAt
    self.source = source
  }
}

/// What is known beside the events. Facts take sequences of their own, so that whoever follows the
/// log by its watermark learns of them.
public enum Fact: Sendable, Hashable {
  /// A relay served an event that the log already had from elsewhere.
  case served(EventID, by: RelayURL)
  /// The key a relay names as its own (NIP-11 `self`); nil: it names none any more.
  case relaySelf(RelayURL, PublicKey?)
  /// The event is hidden from views; it stays in the log.
  case discarded(EventID)
  /// The event is no longer hidden.
  case restored(EventID)
  /// A message got a new date, and with it a new event.
  case redated(old: EventID, new: EventID)
}
