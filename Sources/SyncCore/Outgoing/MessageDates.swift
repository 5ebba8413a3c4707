public import Nostr

/// The dates of what one person writes: in the order of writing, one second each, as `created_at`
/// counts whole seconds and what falls into the same one is sorted by its id.
public struct MessageDates: Sendable {
  /// How far ahead of the clock a date may be, in seconds: relays refuse what comes from the future.
  public let lead: Int64
  /// A date that is further ahead than `lead` by more than this is of a clock that was set back since,
  /// and is followed no more.
  public let setBack: Int64

  public init(lead: Int64, setBack: Int64) {
    self.lead = lead
    self.setBack = setBack
  }

  /// The date of what is written now, after something of the date `last`; nil: the clock has to come
  /// up first, or the order would be lost.
  public func next(after last: Timestamp?, at now: Timestamp) -> Timestamp? {
    guard let last, last >= now, last <= now + lead + setBack else { return now }
    return last < now + lead ? last + 1 : nil
  }
}
