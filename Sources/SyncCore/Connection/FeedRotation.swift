public import Nostr

/// Decides which feeds give up their place to which, where more are wanted than a relay keeps open.
///
/// A feed that never gets a place is deaf, however many places there are. So places go round: the
/// quietest feeds leave, those that waited longest come, a few at a time, as the pace allows.
public struct FeedRotation: Sendable {
  /// A wanted feed as the rotation sees it.
  public struct Feed: Sendable {
    public let name: SubscriptionName
    /// Whether it keeps its place as long as others can leave.
    public var isPinned = false
    /// Since when it is confirmed; nil while it is not.
    public var confirmedAt: Duration?
    /// When it last brought something.
    public var heardAt: Duration?
    /// Since when it waits for a place; nil while it has one.
    public var parkedAt: Duration?

    public init(_ name: SubscriptionName) { self.name = name }
  }

  /// How many frames one exchange costs, with the pages that prove what was missed.
  public static let framesPerExchange = 20.0

  private let interval: Duration
  private var rotatedAt: Duration?

  public init(interval: Duration) { self.interval = interval }

  /// When the next exchange is due, given that something waits since `parkedAt`.
  public func due(parkedAt: Duration) -> Duration { max(parkedAt, rotatedAt ?? .zero) + interval }

  /// The feeds that leave and come now, in pairs.
  ///
  /// - Parameters:
  ///   - feeds: In the order in which they were wanted.
  ///   - rate: The frames a second that the relay takes.
  public mutating func exchange(
    _ feeds: [Feed], rate: Double, at now: Duration
  ) -> [(leaving: SubscriptionName, coming: SubscriptionName)] {
    rotatedAt = now
    let waiting = Self.sorted(feeds) { $0.parkedAt }
    var leaving = settled(feeds.filter { !$0.isPinned }, now)
    // Where only pinned feeds have places, they take turns as well.
    if leaving.isEmpty { leaving = settled(feeds, now) }
    let affordable = Int(rate * interval.inSeconds / 2 / Self.framesPerExchange)
    let count = min(waiting.count, leaving.count, max(1, min((leaving.count + 3) / 4, affordable)))
    return zip(leaving, waiting).prefix(count).map { (leaving: $0.name, coming: $1.name) }
  }

  /// Those that had their place for a whole interval, the quietest first.
  private func settled(_ feeds: [Feed], _ now: Duration) -> [Feed] {
    Self.sorted(feeds) { feed in
      guard let confirmedAt = feed.confirmedAt, now - confirmedAt >= interval else { return nil }
      return max(feed.heardAt ?? confirmedAt, confirmedAt)
    }
  }

  /// Those with a time, by it; where it is the same, as they were wanted.
  private static func sorted(_ feeds: [Feed], by time: (Feed) -> Duration?) -> [Feed] {
    feeds.enumerated().compactMap { index, feed in
      time(feed).map { (time: $0, index: index, feed: feed) }
    }
    .sorted { ($0.time, $0.index) < ($1.time, $1.index) }.map(\.feed)
  }
}
