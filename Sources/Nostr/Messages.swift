/// A subscription id as either side spells it, 1…256 bytes on the wire; ours are at most 32.
public typealias SubscriptionID = Text

/// What a client sends (NIP-01, 42, 45, 77).
public enum ClientMessage: Hashable, Sendable {
  case event(Event)
  case req(SubscriptionID, [Filter])
  case close(SubscriptionID)
  case auth(Event)
  case count(SubscriptionID, [Filter])
  case negOpen(SubscriptionID, Filter, [UInt8])
  case negMessage(SubscriptionID, [UInt8])
  case negClose(SubscriptionID)
}

/// What a relay sends (NIP-01, 42, 45, 67, 77).
public enum RelayMessage: Hashable, Sendable {
  case event(SubscriptionID, Event)
  /// Some relays leave the id empty when they refuse: it is nil then.
  case ok(EventID?, accepted: Bool, Text)
  /// The hints are NIP-67's third element; unknown ones are kept and ignored.
  case eose(SubscriptionID, hints: [Text])
  case closed(SubscriptionID, Text)
  case notice(Text)
  case auth(challenge: Text)
  case count(SubscriptionID, Int, approximate: Bool)
  case negMessage(SubscriptionID, [UInt8])
  /// A relay that found too many records may say how many it can do.
  case negError(SubscriptionID, Text, recordsMax: Int?)
}
