import Nostr

// NIP-77 on the wire. What is compared is somebody else's: here a session gets an id never used
// before, one filter, its place in the budget, and an end.
//
// * A session waits for the relay's next message alone: nothing else that the relay says moves its
//   deadline, and no total bounds a session that is alive.
// * Before its first message a NOTICE, a CLOSED and silence all mean that the relay does not do this.
// * Every session that the relay has not ended itself is ended with NEG-CLOSE.
extension ConnectionMachine {
  struct Negotiation: Sendable {
    enum Phase: Hashable, Sendable {
      case queued
      case open(SubscriptionID)
      case awaitingAuth
    }

    let filter: Filter
    let opening: [UInt8]
    /// How long the first answer may take: the relay has a set to collect.
    let openMax: Duration
    var phase = Phase.queued
    /// Our next message, while it waits for the budget.
    var reply: [UInt8]?
    /// Set while the relay's next message is awaited.
    var deadline: Duration?
    var hasProgress = false
    var notice: Text?
    var attempts = 0
    var hasRetriedAuth = false
    /// What the relay said when it asked for AUTH first.
    var refusal: Text?
  }

  // MARK: What is wanted

  mutating func negotiate(
    _ id: AskID, _ filter: Filter, _ opening: [UInt8], openMax: Duration, _ now: Duration
  ) {
    switch state {
    case .stopped: endNegotiation(id, .cancelled)
    case .suspended: endNegotiation(id, .disconnected)
    case .refused(let why): endNegotiation(id, .refused(.unsupported(why)))
    case .connecting, .authenticating, .backingOff, .ready:
      if isUnreached(now) { return endNegotiation(id, .disconnected) }
      guard negotiations.count < limits.asksPendingMax else {
        return endNegotiation(id, .cancelled)
      }
      negotiations[id] = Negotiation(filter: filter, opening: opening, openMax: openMax)
      negotiationOrder.append(id)
    }
  }

  mutating func reply(_ id: AskID, _ message: [UInt8]) {
    guard case .open = negotiations[id]?.phase else { return }
    negotiations[id]?.reply = message
  }

  /// Our side is done, or gives up.
  mutating func closeNegotiation(_ id: AskID) {
    if case .open(let subscription) = negotiations[id]?.phase {
      closed.add(subscription)
      effects.append(.send(ClientMessage.negClose(subscription).json()))
    }
    forgetNegotiation(id)
  }

  private mutating func forgetNegotiation(_ id: AskID) {
    negotiations[id] = nil
    negotiationOrder.removeAll { $0 == id }
  }

  private mutating func endNegotiation(_ id: AskID, _ end: NegotiationEnd) {
    forgetNegotiation(id)
    effects.append(.negotiationEnded(id, end))
  }

  // MARK: What the relay says

  private func negotiation(_ subscription: SubscriptionID) -> AskID? {
    negotiationOrder.first { negotiations[$0]?.phase == .open(subscription) }
  }

  private var quietNegotiations: [AskID] {
    negotiationOrder.filter { id in
      guard let negotiation = negotiations[id], !negotiation.hasProgress else { return false }
      if case .open = negotiation.phase { return true }
      return false
    }
  }

  mutating func receivedNegMessage(
    _ subscription: SubscriptionID, _ message: [UInt8], _ now: Duration
  ) {
    // A message that answers none of ours is not taken: the relay does not set the pace.
    guard let id = negotiation(subscription), negotiations[id]?.deadline != nil else {
      return countUnknown(subscription)
    }
    hasAnswered = true
    negotiations[id]?.deadline = nil
    negotiations[id]?.hasProgress = true
    negotiations[id]?.notice = nil
    if publishes.isEmpty { budget.answered(at: now) }
    effects.append(.negotiated(id, message))
  }

  /// NEG-ERR or CLOSED.
  ///
  /// - Returns: Whether it was about a session.
  mutating func negotiationRefused(
    _ subscription: SubscriptionID, _ text: Text, recordsMax: Int?, _ now: Duration
  ) -> Bool {
    guard let id = negotiation(subscription) else { return false }
    hasAnswered = true
    refuseNegotiation(id, text, recordsMax: recordsMax, now)
    return true
  }

  private mutating func refuseNegotiation(
    _ id: AskID, _ text: Text, recordsMax: Int? = nil, _ now: Duration
  ) {
    let refusal = NegotiationRefusal(text, recordsMax: recordsMax)
    // LocalRelay says `rate-limited: too many negentropy items`, which no waiting helps.
    if case .tooMany = refusal { return endNegotiation(id, .refused(refusal)) }
    switch RefusalClass(text) {
    case .rateLimited(let wait):
      budget.refused(retryAfter: wait, at: now)
      askAgain(id, text)
    case .authRequired: awaitAuth(id, text, now)
    default: endNegotiation(id, .refused(refusal))
    }
  }

  /// A session that has begun cannot go on under another id; one that has not is opened again.
  private mutating func askAgain(_ id: AskID, _ text: Text) {
    let attempts = (negotiations[id]?.attempts ?? 0) + 1
    guard attempts < limits.askAttemptsMax, negotiations[id]?.hasProgress == false else {
      return endNegotiation(id, .refused(.failed(text)))
    }
    negotiations[id]?.attempts = attempts
    negotiations[id]?.deadline = nil
    negotiations[id]?.phase = .queued
  }

  private mutating func awaitAuth(_ id: AskID, _ text: Text, _ now: Duration) {
    guard let negotiation = negotiations[id], !negotiation.hasProgress else {
      return endNegotiation(id, .refused(.failed(text)))
    }
    let wait = needsAuth(hasRetried: negotiation.hasRetriedAuth, now)
    if wait == .refused { return endNegotiation(id, .refused(.unsupported(text))) }
    negotiations[id]?.hasRetriedAuth = true
    negotiations[id]?.refusal = text
    negotiations[id]?.deadline = nil
    negotiations[id]?.phase = wait == .again ? .queued : .awaitingAuth
  }

  /// A NOTICE names no session. One that speaks of NIP-77 ends those that have heard nothing; any
  /// other that may mean them leaves them a last moment.
  ///
  /// - Returns: Whether it can mean nothing else.
  mutating func noticedByNegotiations(_ text: Text, _ now: Duration) -> Bool {
    let quiet = quietNegotiations
    guard !quiet.isEmpty else { return false }
    let words = text.string.lowercased()
    if words.contains("neg-") || words.contains("negentropy") {
      for id in quiet { refuseNegotiation(id, text, now) }
      return true
    }
    switch RefusalClass(text) {
    case .rateLimited, .authRequired:
      for id in quiet { refuseNegotiation(id, text, now) }
    default: suspect(quiet, text, now)
    }
    return false
  }

  /// Something came that could not be read, and may have been meant as an answer.
  mutating func negotiationsHeardJunk(_ now: Duration) {
    suspect(quietNegotiations, "the relay answers with what cannot be read", now)
  }

  private mutating func suspect(_ quiet: [AskID], _ text: Text, _ now: Duration) {
    for id in quiet {
      guard let deadline = negotiations[id]?.deadline else { continue }
      negotiations[id]?.notice = text
      negotiations[id]?.deadline = min(deadline, now + limits.noticeGrace)
    }
  }

  // MARK: Time, AUTH and the end of the connection

  mutating func drainNegotiations(_ now: Duration, _ random: any RandomSource) {
    var count = negotiations.values.count { negotiation in
      if case .open = negotiation.phase { true } else { false }
    }
    for id in negotiationOrder {
      guard let negotiation = negotiations[id] else { continue }
      switch negotiation.phase {
      case .queued where count < limits.negotiationsOpenMax:
        guard mayGo(.backfill, now) else { return }
        count += 1
        let subscription = random.subscriptionID()
        negotiations[id]?.phase = .open(subscription)
        negotiations[id]?.deadline = now + negotiation.openMax
        effects.append(
          .send(
            ClientMessage.negOpen(subscription, negotiation.filter, negotiation.opening).json()))
      case .open(let subscription):
        guard let message = negotiation.reply else { continue }
        guard mayGo(.backfill, now) else { return }
        negotiations[id]?.reply = nil
        negotiations[id]?.deadline = now + limits.answerIdleMax
        effects.append(.send(ClientMessage.negMessage(subscription, message).json()))
      case .queued, .awaitingAuth: continue
      }
    }
  }

  mutating func tickNegotiations(_ now: Duration) {
    for id in negotiationOrder {
      guard let negotiation = negotiations[id] else { continue }
      guard let deadline = negotiation.deadline, now >= deadline else { continue }
      closeNegotiation(id)
      let end: NegotiationRefusal =
        negotiation.notice.map { NegotiationRefusal.unsupported($0) }
        ?? (negotiation.hasProgress ? .failed("the relay stopped answering") : .silent)
      effects.append(.negotiationEnded(id, .refused(end)))
    }
    if isUnreached(now) { dropNegotiations(.disconnected) }
  }

  var negotiationDeadlines: [Duration] {
    negotiations.values.compactMap(\.deadline)
  }

  mutating func releaseNegotiations() {
    for id in negotiationOrder where negotiations[id]?.phase == .awaitingAuth {
      negotiations[id]?.phase = .queued
    }
  }

  mutating func refuseAwaitingNegotiations(_ words: (Text?) -> Text) {
    for id in negotiationOrder where negotiations[id]?.phase == .awaitingAuth {
      endNegotiation(id, .refused(.unsupported(words(negotiations[id]?.refusal))))
    }
  }

  /// The connection is gone: a session lives and dies with it, and what was not opened yet waits.
  mutating func disconnectNegotiations(_ end: NegotiationEnd) {
    for id in negotiationOrder where negotiations[id]?.phase != .queued {
      endNegotiation(id, end)
    }
  }

  mutating func dropNegotiations(_ end: NegotiationEnd) {
    for id in negotiationOrder { endNegotiation(id, end) }
  }
}
