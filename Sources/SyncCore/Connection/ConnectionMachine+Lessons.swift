public import Nostr

// What is kept of a relay over a restart.
extension ConnectionMachine {
  /// What the relay's refusals have taught so far, in dates instead of uptimes.
  ///
  /// - Parameter wall: The wall clock's time of `now`.
  public func lessons(at now: Duration, wall: Timestamp) -> RelayLessons {
    func date(_ time: Duration) -> Timestamp { wall + (time - now).components.seconds }
    var lessons = RelayLessons()
    lessons.rate = budget.ceiling
    lessons.ratedAt = date(budget.refusedAt)
    // Rounded up, so that no pause ends a moment too early.
    lessons.pausedUntil = budget.pausedUntil.flatMap { $0 > now ? date($0 + .seconds(1)) : nil }
    lessons.subscriptionsMax = subscriptionsLearned
    lessons.crowdedAt = date(crowdedAt)
    return lessons
  }

  /// Begins with what an earlier run has learned of this relay.
  public mutating func recall(_ kept: RelayLessons, at now: Duration, wall: Timestamp) {
    let lessons = kept.remembered(at: wall)
    func uptime(_ date: Timestamp) -> Duration { now + .seconds(date.seconds - wall.seconds) }
    budget.recall(
      ceiling: lessons.rate, refusedAt: uptime(lessons.ratedAt),
      pausedUntil: lessons.pausedUntil.map(uptime), at: now)
    subscriptionsLearned = lessons.subscriptionsMax
    crowdedAt = uptime(lessons.crowdedAt)
  }
}
