import Nostr

// More feeds wanted than the relay keeps open: they take turns.
extension ConnectionMachine {
  mutating func park(_ name: SubscriptionName, _ now: Duration) {
    lives[name]?.phase = .parked
    lives[name]?.parkedAt = now
    lives[name]?.isInterrupted = true
    effects.append(.subscription(name, .parked))
  }

  /// When places are exchanged next; nil while nothing waits for one.
  var rotationDue: Duration? {
    guard case .ready = state else { return nil }
    let waiting = lives.values.compactMap { $0.phase == .parked ? $0.parkedAt : nil }
    return waiting.min().map { rotation.due(parkedAt: $0) }
  }

  mutating func tickRotation(_ now: Duration) {
    guard let due = rotationDue, now >= due else { return }
    let feeds = liveOrder.compactMap { name -> FeedRotation.Feed? in
      guard let live = lives[name] else { return nil }
      var feed = FeedRotation.Feed(name)
      feed.isPinned = live.isPinned
      if case .confirmed = live.phase { feed.confirmedAt = live.confirmedAt }
      feed.heardAt = live.heardAt
      if live.phase == .parked { feed.parkedAt = live.parkedAt }
      return feed
    }
    for (leaving, coming) in rotation.exchange(feeds, rate: budget.rate, at: now) {
      if case .confirmed(let id) = lives[leaving]?.phase { close(id) }
      park(leaving, now)
      lives[coming]?.phase = .idle
      lives[coming]?.parkedAt = nil
    }
  }
}
