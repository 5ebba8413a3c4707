import Nostr

// What the relay's answers, and the user's wishes, make of a delivery.
extension OutboxPolicy {
  mutating func add(_ item: Item, _ now: Duration, _ wall: Timestamp) {
    let id = item.delivery.message
    guard entries[id] == nil else { return }
    var entry = Entry(item: item)
    if let next = item.delivery.nextAttemptAt, next > wall {
      entry.notBefore = now + .seconds(next.seconds - wall.seconds)
      entry.isWaitAsked = item.delivery.state == .held
    }
    let refusal = item.delivery.reason.map { RefusalClass($0) }
    entry.wasRefusedForTime = refusal == .outsideTimeWindow
    entry.wasRefusedForReferences = refusal == .references
    entries[id] = entry
    byEvent[item.delivery.eventID] = id
    order.append(id)
    if order.count > 1, order[order.count - 2] > id { order.sort() }
    if item.delivery.state == .sending {
      // Whoever was sending it is gone; the relay may have it.
      change(id) { $0.state = $0.handedAt == nil ? .queued : .unknown }
    }
  }

  mutating func connected() {
    isConnected = true
    for id in order where entries[id]?.isWaitAsked == false { entries[id]?.notBefore = nil }
  }

  mutating func accept(_ event: EventID) {
    guard let id = byEvent[event] else { return }
    change(id) { delivery in
      delivery.state = .sent
      delivery.reason = nil
      delivery.nextAttemptAt = nil
    }
    entries[id]?.activity = .idle
    entries[id]?.notBefore = nil
    releaseThoseWaiting(for: id)
  }

  private mutating func releaseThoseWaiting(for parent: MessageID) {
    for id in order where entries[id]?.item.delivery.waitsFor == parent {
      guard let delivery = entries[id]?.item.delivery, delivery.state == .held,
        entries[id]?.notBefore == nil
      else { continue }
      change(id) { delivery in
        delivery.state = delivery.handedAt == nil ? .queued : .unknown
        delivery.reason = nil
      }
    }
  }

  mutating func verdict(
    _ event: EventID, _ isAccepted: Bool, _ text: Text, _ now: Duration, _ wall: Timestamp,
    _ random: any RandomSource
  ) {
    guard let id = byEvent[event], let entry = entries[id],
      entry.item.delivery.state != .sent
    else { return }
    if isAccepted { return accept(event) }
    // A refusal that comes after its deadline is about an attempt that is over; a yes still counts.
    guard entry.activity == .publishing else { return }
    entries[id]?.activity = .idle
    switch RefusalClass(text) {
    case .duplicate: accept(event)
    case .rateLimited(let wait):
      let pause = wait ?? Self.pauseDefault
      later(id, .queued, text, pause + pause * (random.fraction() / 4), now, wall, isAsked: true)
    case .timedOut(let until):
      let wait = Duration.seconds(max(1, until.seconds - wall.seconds + 1))
      later(id, .held, text, min(wait, .seconds(30 * 86_400)), now, wall, isAsked: true)
    case .outsideTimeWindow: refusedForTime(id, text, wall)
    case .references: refusedForReferences(id, text)
    case .error:
      entries[id]?.errors += 1
      retryOrRefuse(
        id, text, entry.errors + 1, limits.errorAttemptsMax, now, wall, random)
    case .unknown:
      entries[id]?.unknowns += 1
      retryOrRefuse(
        id, text, entry.unknowns + 1, limits.unknownPrefixAttemptsMax, now, wall, random)
    case .authRequired, .restricted, .blocked, .invalid, .pow, .mute, .unsupported:
      refuse(id, text)
    }
  }

  /// The wait after a rate limit that names none.
  private static let pauseDefault: Duration = .seconds(10)

  private mutating func retryOrRefuse(
    _ id: MessageID, _ text: Text, _ attempts: Int, _ attemptsMax: Int, _ now: Duration,
    _ wall: Timestamp, _ random: any RandomSource
  ) {
    if attempts >= attemptsMax { return refuse(id, text) }
    later(id, .queued, text, backoff(attempts, random), now, wall, isAsked: false)
  }

  private func backoff(_ attempts: Int, _ random: any RandomSource) -> Duration {
    // At least half of the span: a refused event is not tried again at once.
    Backoff.delay(
      attempt: attempts + 1, fraction: 0.5 + random.fraction() / 2, cap: limits.outboxRetryMax)
  }

  private mutating func later(
    _ id: MessageID, _ state: DeliveryState, _ why: Text, _ wait: Duration, _ now: Duration,
    _ wall: Timestamp, isAsked: Bool
  ) {
    entries[id]?.notBefore = now + wait
    entries[id]?.isWaitAsked = isAsked
    change(id) { delivery in
      delivery.state = state
      delivery.reason = why
      delivery.nextAttemptAt = wall + max(1, wait.components.seconds)
    }
  }

  private mutating func refuse(_ id: MessageID, _ text: Text) { end(id, as: .refused, text) }

  /// Nothing is tried any more unless the user asks for it.
  private mutating func end(_ id: MessageID, as state: DeliveryState, _ text: Text) {
    change(id) { delivery in
      delivery.state = state
      delivery.reason = text
      delivery.nextAttemptAt = nil
    }
  }

  /// It goes again, signed anew.
  private mutating func requeue(_ id: MessageID, _ text: Text) {
    change(id) { delivery in
      delivery.state = .queued
      delivery.reason = text
    }
  }

  private mutating func refusedForTime(_ id: MessageID, _ text: Text, _ wall: Timestamp) {
    entries[id]?.wasRefusedForTime = true
    guard let entry = entries[id], let dateWindow, isRedating,
      entry.item.createdAt < wall - dateWindow
    else {
      // No window is known that the date would lie outside of: whose clock is wrong is for the user.
      return end(id, as: .expired, text)
    }
    requeue(id, text)
  }

  private mutating func refusedForReferences(_ id: MessageID, _ text: Text) {
    entries[id]?.wasRefusedForReferences = true
    guard isRedating, entries[id]?.refreshes == 0 else {
      // Fresh references did not help: the relay and the local copy differ.
      return end(id, as: .expired, text)
    }
    requeue(id, text)
  }

  mutating func unanswered(
    _ event: EventID, _ isHanded: Bool, _ why: Text, _ now: Duration, _ wall: Timestamp,
    _ random: any RandomSource
  ) {
    guard let id = byEvent[event], let entry = entries[id], entry.activity == .publishing else {
      return
    }
    entries[id]?.activity = .idle
    if isHanded {
      later(
        id, .unknown, why, backoff(min(entry.item.delivery.attempts, 8), random), now, wall,
        isAsked: false)
    } else {
      // Whether or not it ever left this machine, nothing was lost by asking first.
      let state: DeliveryState = entry.item.delivery.attempts > 1 ? .unknown : .queued
      later(id, state, why, .seconds(1), now, wall, isAsked: false)
    }
  }

  mutating func looked(
    _ event: EventID, _ isThere: Bool?, _ now: Duration, _ wall: Timestamp,
    _ random: any RandomSource
  ) {
    guard let id = byEvent[event], let entry = entries[id], entry.activity == .looking else {
      return
    }
    entries[id]?.activity = .idle
    switch isThere {
    case true?: accept(event)
    case false?:
      entries[id]?.isKnownAbsent = true
      change(id) { delivery in
        delivery.state = .queued
      }
    case nil:
      later(
        id, entry.item.delivery.state == .queued ? .queued : .unknown,
        "the relay did not say whether it has it", backoff(4, random), now, wall, isAsked: false)
    }
  }

  mutating func redated(_ item: Item) {
    let id = item.delivery.message
    guard let old = entries[id] else { return }
    byEvent[old.item.delivery.eventID] = nil
    byEvent[item.delivery.eventID] = id
    var entry = Entry(item: item)
    entry.ignoresParent = old.ignoresParent
    entry.refreshes = old.refreshes + (old.wasRefusedForReferences ? 1 : 0)
    entries[id] = entry
  }

  mutating func redatingFailed(_ id: MessageID, _ why: Text) {
    guard entries[id]?.activity == .redating else { return }
    entries[id]?.activity = .idle
    change(id) { delivery in
      delivery.state = .expired
      delivery.reason = why
      delivery.nextAttemptAt = nil
    }
  }

  mutating func redatingDelayed(
    _ id: MessageID, _ why: Text, _ now: Duration, _ wall: Timestamp
  ) {
    guard let entry = entries[id], entry.activity == .redating else { return }
    entries[id]?.activity = .idle
    later(id, entry.item.delivery.state, why, .seconds(1), now, wall, isAsked: false)
  }

  mutating func retry(_ id: MessageID, _ isOutdated: Bool, _ wall: Timestamp) {
    guard let entry = entries[id], entry.activity == .idle,
      entry.item.delivery.state != .sent
    else { return }
    entries[id]?.errors = 0
    entries[id]?.unknowns = 0
    entries[id]?.refreshes = 0
    entries[id]?.notBefore = nil
    entries[id]?.isWaitAsked = false
    entries[id]?.ignoresParent = true
    entries[id]?.item.isOutdated = isOutdated
    // An expired message's retry is the user's decision for a new date, whatever the option says.
    let redates = entry.item.delivery.state == .expired
    change(id) { delivery in
      delivery.state = .queued
      delivery.reason = nil
      delivery.nextAttemptAt = nil
    }
    if redates { renew(id) }
  }

  mutating func forget(_ id: MessageID) {
    guard let entry = entries.removeValue(forKey: id) else { return }
    byEvent[entry.item.delivery.eventID] = nil
    order.removeAll { $0 == id }
    for other in order where entries[other]?.item.delivery.waitsFor == id {
      guard entries[other]?.item.delivery.state.isOpen == true else { continue }
      change(other) { delivery in
        delivery.state = .refused
        delivery.reason = "the message that it answers was discarded"
      }
    }
  }
}
