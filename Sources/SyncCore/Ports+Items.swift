public import Nostr

/// The local copy as NIP-77 compares it: what one relay should hold of what is here.
///
/// That is what is current, neither deleted nor expired, and not on its way to the relay or refused
/// by it. Superseded and deleted events stay in the log; they are not offered, and not asked for
/// again where a relay still lists them.
public protocol ReconciliationItems: Sendable {
  /// A copy of the items that match, fixed at the call.
  func items(_ filter: Filter, limit: Int) async throws(ItemsError) -> ItemSelection

  /// Those of `ids` that are not in the log, in the same order.
  func missing(_ ids: [EventID]) async throws(ItemsError) -> [EventID]
}

public enum ItemSelection: Sendable {
  case all(NegentropySet)
  /// More than the limit match; as many of them lie up to `middle` as after it, about.
  case tooMany(middle: Timestamp)
}

/// The local copy cannot tell now what it holds.
public enum ItemsError: Error, Hashable, Sendable {
  case unavailable(String)
}
