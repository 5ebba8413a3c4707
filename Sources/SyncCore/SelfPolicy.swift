public import Nostr

/// Decides whose word about groups counts: that of the one key which the community's home named as
/// its own when it was first heard, until the user takes another.
///
/// A replica shows what its origin signed, so its own document must name the same key. It cannot
/// bring a key in: whoever runs it could then rule the community.
public enum SelfPolicy {
  public enum Verdict: Sendable, Hashable {
    /// The key is the accepted one, and what it signed counts, whichever relay shows it.
    case trusted
    /// No key was accepted yet, and the home names this one: it is accepted now.
    case adopted
    /// Another key than the accepted one: nothing it signs counts unless the user says so.
    case offered
    /// A replica names a key, and the home has not been heard: nothing counts yet.
    case unknown
  }

  /// - Parameters:
  ///   - key: What the document of `relay` names as `self`.
  ///   - accepted: The key that counts so far.
  public static func verdict(
    on key: PublicKey, namedBy relay: RelayURL, home: RelayURL?, accepted: PublicKey?
  ) -> Verdict {
    if let accepted { return key == accepted ? .trusted : .offered }
    return relay == home ? .adopted : .unknown
  }
}
