import Nostr

// What the relay says.
extension ConnectionMachine {
  mutating func received(
    _ message: RelayMessage, _ now: Duration, _ random: any RandomSource
  ) {
    switch message {
    case .event(let id, let event): receivedEvent(id, event, now)
    case .eose(let id, let hints): receivedEOSE(id, PageEnd.EndHint(hints), now)
    case .closed(let id, let text): receivedClosed(id, text, now)
    case .ok(let id, let isAccepted, let text): receivedOK(id, isAccepted, text, now, random)
    case .notice(let text): receivedNotice(text, now)
    case .auth(let challenge):
      switch state {
      case .authenticating, .ready: challenged(challenge, now)
      default: break
      }
    case .negMessage(let id, let message): receivedNegMessage(id, message, now)
    case .negError(let id, let text, let recordsMax):
      if !negotiationRefused(id, text, recordsMax: recordsMax, now) { countUnknown(id) }
    case .count(let id, _, _): countUnknown(id)
    }
  }

  mutating func malformed(_ error: FrameError, _ now: Duration) {
    guard case .badEvent(let id, let reason) = error else {
      faults.count(.malformedFrame)
      // Noise that is no EVENT claims nothing that could be missing.
      if error.isUnaddressedEvent { anyPageLacks(.shape(error.description), now) }
      return negotiationsHeardJunk(now)
    }
    faults.count(.unreadableEvent)
    guard let target = open[id]?.target else { return }
    progress(id, now)
    effects.append(.unreadable(target, reason))
  }

  /// A frame too large to be taken in. It may have been an event of any page that is being read, so
  /// each of them has one that could not be read.
  mutating func oversized(_ now: Duration) {
    faults.count(.oversizedFrame)
    anyPageLacks(.size(limits.frameBytesMax), now)
  }

  /// Something came that may have been an event of any page that is being read.
  private mutating func anyPageLacks(_ reason: ScanError, _ now: Duration) {
    for id in open.keys.sorted() {
      guard let target = open[id]?.target, case .ask = target else { continue }
      progress(id, now)
      effects.append(.unreadable(target, reason))
    }
  }

  private mutating func receivedEvent(_ id: SubscriptionID, _ event: Event, _ now: Duration) {
    guard let request = open[id] else {
      countUnknown(id)
      return
    }
    if request.wanted.matches(event) {
      progress(id, now)
      if request.deadline == nil, case .live(let name) = request.target {
        lives[name]?.heardAt = now
      }
      return effects.append(.event(request.target, event, .inside))
    }
    guard let bare = request.bare, bare.matches(event) else {
      faults.count(.foreignEvent)
      return
    }
    faults.count(.outsideTimes)
    progress(id, now)
    let isAbove = request.until.map { event.createdAt > $0 } ?? false
    let fit: Fit = isAbove ? .aboveUntil : .belowSince
    effects.append(.event(request.target, event, fit))
  }

  /// A relay may race a frame to an id that we have closed, which is no lie.
  mutating func countUnknown(_ id: SubscriptionID) {
    if !closed.contains(id) { faults.count(.unknownSubscription) }
  }

  /// Only what belongs to the request itself moves its deadline: chatter does not.
  private mutating func progress(_ id: SubscriptionID, _ now: Duration) {
    guard let deadline = open[id]?.deadline else { return }
    open[id]?.hasProgress = true
    open[id]?.notice = nil
    open[id]?.deadline = max(deadline, now + limits.answerIdleMax)
  }

  private mutating func receivedEOSE(
    _ id: SubscriptionID, _ hint: PageEnd.EndHint, _ now: Duration
  ) {
    guard let request = open[id] else {
      countUnknown(id)
      return
    }
    hasAnswered = true
    isHeard(request)
    switch request.target {
    case .ask(let ask):
      close(id)
      // While something that the user wrote is on its way, nothing is risked.
      if publishes.isEmpty { budget.answered(at: now) }
      finish(ask, .complete(hint))
    case .live(let name):
      guard lives[name]?.phase == .asked(id) else { return }
      open[id]?.deadline = nil
      open[id]?.hasProgress = true
      open[id]?.notice = nil
      lives[name]?.phase = .confirmed(id)
      lives[name]?.attempts = 0
      lives[name]?.confirmedAt = now
      let confirmed = lives.values.count { live in
        if case .confirmed = live.phase { true } else { false }
      }
      confirmedMax = max(confirmedMax, confirmed)
      effects.append(.subscription(name, .live))
      guard lives[name]?.isInterrupted == true else { return }
      lives[name]?.isInterrupted = false
      effects.append(.resumed(name))
    }
  }

  private mutating func receivedClosed(_ id: SubscriptionID, _ text: Text, _ now: Duration) {
    if negotiationRefused(id, text, recordsMax: nil, now) { return }
    guard let request = open.removeValue(forKey: id) else {
      countUnknown(id)
      return
    }
    closed.add(id)
    hasAnswered = true
    isHeard(request)
    refused(request.target, text, now)
  }

  /// One request was refused; the others on this connection go on.
  private mutating func refused(_ target: Target, _ text: Text, _ now: Duration) {
    switch RefusalClass.subscriptionVerdict(text) {
    case .pause(let wait):
      budget.refused(retryAfter: wait, at: now)
      again(target, text, at: nil, now)
    case .authenticate: awaitAuth(target, text, now)
    case .retry: again(target, text, at: now, now)
    case .terminal: giveUp(target, text)
    case .crowded:
      learnCrowding(now)
      if case .live(let name) = target {
        park(name, now)
      } else {
        again(target, text, at: now, now)
      }
    }
  }

  private mutating func giveUp(_ target: Target, _ text: Text) {
    switch target {
    case .ask(let id): finish(id, .refused(text))
    case .live(let name): refuseLive(name, text)
    }
  }

  /// Asks again under a new id: after a wait from `start` on, or as soon as the budget allows.
  private mutating func again(
    _ target: Target, _ text: Text, at start: Duration?, _ now: Duration
  ) {
    switch target {
    case .ask(let id):
      asks[id]?.attempts += 1
      guard let attempts = asks[id]?.attempts, attempts < limits.askAttemptsMax else {
        return giveUp(target, text)
      }
      let until = start.map { $0 + Backoff.delay(attempt: attempts, fraction: 1) }
      asks[id]?.phase = until.map { .waiting(until: $0) } ?? .queued
    case .live(let name):
      lives[name]?.attempts += 1
      lives[name]?.isInterrupted = true
      let attempts = lives[name]?.attempts ?? 1
      // A wanted feed is never given up for an error that passes; it only waits longer.
      let until = start.map { $0 + Backoff.delay(attempt: attempts, fraction: 1) }
      lives[name]?.phase = until.map { .waiting(until: $0) } ?? .idle
      effects.append(.subscription(name, .wanted))
    }
  }

  private mutating func awaitAuth(_ target: Target, _ text: Text, _ now: Duration) {
    let hasRetried: Bool
    switch target {
    case .ask(let id): hasRetried = asks[id]?.hasRetriedAuth ?? true
    case .live(let name): hasRetried = lives[name]?.hasRetriedAuth ?? true
    }
    let wait = needsAuth(hasRetried: hasRetried, now)
    if wait == .refused { return giveUp(target, text) }
    switch target {
    case .ask(let id):
      asks[id]?.hasRetriedAuth = true
      asks[id]?.refusal = text
      asks[id]?.phase = wait == .again ? .queued : .awaitingAuth
    case .live(let name):
      lives[name]?.hasRetriedAuth = true
      lives[name]?.refusal = text
      lives[name]?.phase = wait == .again ? .idle : .awaitingAuth
    }
  }

  private mutating func receivedNotice(_ text: Text, _ now: Duration) {
    effects.append(.notice(text))
    if noticedByNegotiations(text, now) { return }
    let quiet = open.filter { !$0.value.hasProgress }.keys.sorted()
    if RefusalClass.subscriptionVerdict(text) == .crowded { return crowded(quiet, text, now) }
    switch RefusalClass(text) {
    case .rateLimited(let wait):
      budget.refused(retryAfter: wait, at: now)
      for id in quiet { closeAnd(id) { $0.again($1, text, at: nil, now) } }
    case .authRequired:
      for id in quiet { closeAnd(id) { $0.awaitAuth($1, text, now) } }
    default:
      guard Self.soundsLikeARefusal(text) else { return }
      suspect(quiet, text, now)
    }
  }

  /// Too many are open. The NOTICE names none, so the last that heard nothing is taken for the one
  /// that was turned away; a wrong guess shows itself when its answer does not come.
  private mutating func crowded(_ quiet: [SubscriptionID], _ text: Text, _ now: Duration) {
    let last = quiet.max { (open[$0]?.number ?? 0) < (open[$1]?.number ?? 0) }
    guard let last else { return }
    closeAnd(last) { $0.refused($1, text, now) }
  }

  /// The relay keeps no more than are open now, and no fewer than it was seen to keep.
  private mutating func learnCrowding(_ now: Duration) {
    let kept = max(open.count, confirmedMax, 2)
    crowdedAt = now
    if kept < subscriptionsLearned ?? .max { crowdings += 1 }
    subscriptionsLearned = min(subscriptionsLearned ?? kept, kept)
  }

  private mutating func closeAnd(
    _ id: SubscriptionID, _ body: (inout ConnectionMachine, Target) -> Void
  ) {
    guard let target = open[id]?.target else { return }
    close(id)
    body(&self, target)
  }

  private static func soundsLikeARefusal(_ text: Text) -> Bool {
    if RefusalClass(text) != .unknown { return true }
    let words = text.string.lowercased()
    return [
      "invalid", "error", "bad ", "could not", "cannot", "not allowed", "unsupported",
      "too many", "too long", "too large", "denied", "forbidden", "required", "unauthorized",
      "limit",
    ].contains { words.contains($0) }
  }
}
