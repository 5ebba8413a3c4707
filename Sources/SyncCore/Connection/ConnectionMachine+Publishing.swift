import Nostr

// Events on their way out. The rows of the outbox are somebody else's: here an event is handed over
// once and gets one verdict, or the word that none will come.
extension ConnectionMachine {
  mutating func publish(_ event: Event, _ now: Duration) {
    // A second hand-over of the same event shares the verdict of the first.
    guard publishes[event.id] == nil else { return }
    switch state {
    case .connecting, .authenticating, .ready:
      publishes[event.id] = Publish(event: event, deadline: now + limits.publishMax)
      publishOrder.append(event.id)
    case .stopped, .suspended, .backingOff, .refused:
      effects.append(.unanswered(event.id, isHanded: false, "not connected"))
    }
  }

  /// - Returns: Whether the budget has room left for what comes after.
  mutating func drainPublishes(_ now: Duration) -> Bool {
    var inFlight = publishes.values.count { $0.isSent }
    let bound = namesEvents ? limits.publishesInFlightMax : 1
    for id in publishOrder where inFlight < bound {
      guard let publish = publishes[id], !publish.isSent, !publish.isAwaitingAuth else { continue }
      guard mayGo(.userEvent, now) else { return false }
      inFlight += 1
      publishes[id]?.isSent = true
      effects.append(.send(ClientMessage.event(publish.event).json()))
    }
    return true
  }

  mutating func receivedOK(
    _ id: EventID?, _ isAccepted: Bool, _ text: Text, _ now: Duration, _ random: any RandomSource
  ) {
    if let id {
      // The verdict on our AUTH comes first: the next frame may rely on it.
      if id == auth.sent { return authAnswered(isAccepted, text, now, random) }
      namesEvents = true
      return verdict(id, isAccepted, text, now)
    }
    // Some relays leave the id out when they refuse; with one event in flight it is clear.
    let inFlight = publishOrder.filter { publishes[$0]?.isSent == true }
    if inFlight.isEmpty, auth.sent != nil, !auth.isDone {
      return authAnswered(isAccepted, text, now, random)
    }
    namesEvents = false
    if inFlight.count == 1 { verdict(inFlight[0], isAccepted, text, now) }
  }

  private mutating func verdict(
    _ id: EventID, _ isAccepted: Bool, _ text: Text, _ now: Duration
  ) {
    guard let publish = publishes[id] else {
      // An OK after its deadline still counts, and the outbox knows what for.
      return effects.append(.verdict(id, accepted: isAccepted, text))
    }
    if !isAccepted {
      let refusal = RefusalClass(text)
      if case .rateLimited(let wait) = refusal { budget.refused(retryAfter: wait, at: now) }
      if refusal == .authRequired {
        let wait = needsAuth(hasRetried: publish.hasRetriedAuth, now)
        if wait != .refused {
          publishes[id]?.hasRetriedAuth = true
          publishes[id]?.refusal = text
          publishes[id]?.isSent = false
          publishes[id]?.isAwaitingAuth = wait == .wait
          return
        }
      }
    }
    removePublish(id)
    effects.append(.verdict(id, accepted: isAccepted, text))
  }

  mutating func removePublish(_ id: EventID) {
    publishes[id] = nil
    publishOrder.removeAll { $0 == id }
  }

  mutating func tickPublishes(_ now: Duration) {
    for id in publishOrder {
      guard let publish = publishes[id], now >= publish.deadline else { continue }
      removePublish(id)
      effects.append(
        .unanswered(id, isHanded: publish.isSent, "the relay did not answer in time"))
    }
  }
}
