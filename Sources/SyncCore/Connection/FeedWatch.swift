public import Nostr

/// Tells a feed that is deaf from one that is quiet.
///
/// Some relays serve the stored events of a filter and never push new ones for it, or lose a
/// subscription without a word. What a live feed should have brought, and only asking found, is
/// the proof.
public struct FeedWatch: Sendable {
  /// Younger events may be on their way; clocks may differ by as much.
  public static let margin: Int64 = 60
  /// For how long a relay is asked more often after one of its feeds was found deaf.
  public static let memory: Int64 = 3600

  private struct Feed: Sendable {
    var filters: [Filter]
    var liveSince: Timestamp?
    var isRefused = false
  }

  private var feeds: [SubscriptionName: Feed] = [:]
  private var deafAt: Timestamp?

  public init() {}

  /// Says what the feed is to bring.
  public mutating func want(_ name: SubscriptionName, _ filters: [Filter]) {
    if feeds[name]?.filters != filters { feeds[name] = Feed(filters: filters) }
  }

  public mutating func changed(
    _ name: SubscriptionName, _ state: SubscriptionState, at now: Timestamp
  ) {
    if case .refused = state {
      feeds[name]?.isRefused = true
    } else {
      feeds[name]?.isRefused = false
    }
    guard state == .live else {
      feeds[name]?.liveSince = nil
      return
    }
    if feeds[name]?.liveSince == nil { feeds[name]?.liveSince = now }
  }

  /// Takes events that were new and came by asking.
  ///
  /// - Returns: The feeds that should have brought one of them long ago, sorted.
  public mutating func found(_ events: [Event], at now: Timestamp) -> [SubscriptionName] {
    guard let earliest = feeds.values.compactMap(\.liveSince).min() else { return [] }
    let telling = events.filter { event in
      event.createdAt > earliest + Self.margin && event.createdAt + Self.margin < now
    }
    guard !telling.isEmpty else { return [] }
    let deaf = feeds.filter { _, feed in
      guard let liveSince = feed.liveSince else { return false }
      let matcher = FilterMatcher(feed.filters)
      return telling.contains { $0.createdAt > liveSince + Self.margin && matcher.matches($0) }
    }
    if !deaf.isEmpty { deafAt = now }
    return deaf.keys.sorted()
  }

  /// The refused feeds of groups that something new came from, or that tell of members: whoever is
  /// shown that may be served again. Sorted.
  public func readmitted(by events: [Event]) -> [SubscriptionName] {
    let refused = feeds.filter { $0.value.isRefused }
    guard !refused.isEmpty else { return [] }
    let groups = Set(
      events.compactMap { event -> Text? in
        switch event.kind {
        case .memberRemoved: nil
        case .groupMetadata, .groupAdmins, .groupMembers: event.identifier
        default: event.group
        }
      })
    return refused.keys.filter { name in
      SyncScopes.group(ofFeed: name).map(groups.contains) ?? false
    }.sorted()
  }

  /// Whether a feed of this relay was deaf not long ago.
  public func isDeaf(at now: Timestamp) -> Bool {
    deafAt.map { now - Self.memory < $0 } ?? false
  }
}
