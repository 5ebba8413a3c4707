public import Nostr

/// What one relay's refusals taught, as it is kept over a restart, so that the user's first messages
/// do not have to be refused to learn it again.
///
/// A relay may be given more room at any time, so each lesson is forgotten a day after the refusal
/// that taught it. Until then a rate stands as it was left, and grows in use as it always does.
/// What its document says is not among them: that is read anew.
public struct RelayLessons: Sendable, Hashable {
  /// How long a lesson counts, in seconds.
  public static let memory: Int64 = 86_400

  /// Frames a second that were too many for it not long ago.
  public var rate: Double?
  public var ratedAt: Timestamp = 0
  /// When the wait that it named is over.
  public var pausedUntil: Timestamp?
  /// Subscriptions that it was found to keep open.
  public var subscriptionsMax: Int?
  public var crowdedAt: Timestamp = 0

  public init() {}

  /// What of it still counts. A date from the future, left by a clock that was wrong, counts from now.
  public func remembered(at now: Timestamp) -> RelayLessons {
    var kept = self
    kept.ratedAt = min(ratedAt, now)
    kept.crowdedAt = min(crowdedAt, now)
    if now.seconds - kept.ratedAt.seconds >= Self.memory { kept.rate = nil }
    if now.seconds - kept.crowdedAt.seconds >= Self.memory { kept.subscriptionsMax = nil }
    if let until = pausedUntil, until <= now { kept.pausedUntil = nil }
    return kept
  }

  // MARK: Lines of text

  /// - Parameter text: As `text` wrote it; a line that says nothing sensible is left out.
  public init(text: String) {
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ")
      guard words.count == 3, let at = Int64(words[2]) else { continue }
      switch words[0] {
      case "rate":
        guard let rate = Double(words[1]), rate.isFinite, rate > 0 else { continue }
        (self.rate, ratedAt) = (rate, Timestamp(at))
      case "paused": pausedUntil = Timestamp(at)
      case "subscriptions":
        guard let count = Int(words[1]), count > 0 else { continue }
        (subscriptionsMax, crowdedAt) = (count, Timestamp(at))
      default: continue
      }
    }
  }

  /// One lesson a line.
  public var text: String {
    var lines: [String] = []
    if let rate { lines.append("rate \(rate) \(ratedAt.seconds)") }
    if let pausedUntil { lines.append("paused until \(pausedUntil.seconds)") }
    if let subscriptionsMax {
      lines.append("subscriptions \(subscriptionsMax) \(crowdedAt.seconds)")
    }
    return lines.joined(separator: "\n")
  }
}
