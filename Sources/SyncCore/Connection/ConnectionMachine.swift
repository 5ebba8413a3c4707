public import Nostr

/// Everything about one relay's connection that has to be decided.
///
/// It owns the state of the connection, the AUTH exchange, what is wanted against what is
/// confirmed, the requests for stored events, the events on their way out, and the order and pace
/// of all frames. It does not own the socket, the key, the walk of a scope, or the outbox's rows.
///
/// Invariants:
/// * Every state that is not an end has a deadline, and `deadline` names the next one.
/// * Wanted subscriptions survive every connection; each new connection asks for all of them, in
///   a REQ of its own each, under an id never used before. Confirmed means the relay's own EOSE.
/// * CLOSED and NOTICE end a request and never a connection.
/// * One signature is being made at a time, and the newest challenge is the one answered.
/// * Nothing that a relay sends can make it send without pace, or hold more than the bounds of
///   `Limits`.
public struct ConnectionMachine: Sendable {
  public let limits: Limits
  /// Whether a key is there to answer a challenge with.
  public let canSign: Bool
  public internal(set) var state = ConnectionState.stopped
  public internal(set) var information: RelayInformation?
  public internal(set) var faults = PeerFaults()
  /// Whether the relay has ever sent a message. That a socket opens says little: what answers may not
  /// be a relay, or may have nothing to say.
  public private(set) var hasSpoken = false
  /// Why the last connection ended or the last AUTH failed.
  public internal(set) var lastError: Text?
  public internal(set) var budget: FrameBudget

  var backoff = Backoff()
  var auth: Authentication
  var authRefusals = 0
  /// How the next AUTH is written; what a relay took stays.
  var shape = AuthShape()
  /// By how many seconds the relay's clock is ahead of ours, where that is known.
  public internal(set) var clockSkew: Int64?
  var lives: [SubscriptionName: Live] = [:]
  /// The order in which they were wanted: the order in which they are asked for.
  var liveOrder: [SubscriptionName] = []
  var asks: [AskID: Ask] = [:]
  var askOrder: [AskID] = []
  var open: [SubscriptionID: OpenRequest] = [:]
  /// The ids that were open on this connection and are not any more, the last of them.
  var closed: RecentIDs<SubscriptionID>
  var publishes: [EventID: Publish] = [:]
  var publishOrder: [EventID] = []
  /// NIP-77 sessions, in the order in which they were asked for.
  var negotiations: [AskID: Negotiation] = [:]
  var negotiationOrder: [AskID] = []
  /// Whether this relay's OKs name the event; until one did, one event is in flight at a time.
  var namesEvents = false
  /// What the relay was found to keep open.
  var subscriptionsLearned: Int?
  var crowdedAt: Duration = .zero
  var crowdings = 0
  /// The most feeds that were confirmed at the same time: so many it does keep.
  var confirmedMax = 0
  var openNext: UInt64 = 0
  var hasAnswered = false
  var heardAt: Duration = .zero
  var pingedAt: Duration?
  var resumedAt: Duration?
  var attemptedAt: Duration?
  /// Since when the relay has not been usable; nil while it is.
  var unreachedSince: Duration?
  var rotation: FeedRotation
  var suspects = Suspects()
  /// When the budget lets the next queued frame go.
  var drainAt: Duration?
  var effects: [Effect] = []

  struct Live: Sendable {
    enum Phase: Hashable, Sendable {
      case idle
      case asked(SubscriptionID)
      case confirmed(SubscriptionID)
      case waiting(until: Duration)
      case awaitingAuth
      case refused(Text)
      case parked
    }

    var filters: [Filter]
    var isPinned = false
    var phase = Phase.idle
    var attempts = 0
    var hasRetriedAuth = false
    /// What the relay said when it asked for AUTH first.
    var refusal: Text?
    var confirmedAt: Duration?
    var heardAt: Duration?
    var parkedAt: Duration?
    /// It was not live for a while, although the connection was up.
    var isInterrupted = false
    /// Whether it is asked for under a short id.
    var isShort = false
  }

  struct Ask: Sendable {
    enum Phase: Hashable, Sendable {
      case queued
      case asked(SubscriptionID)
      case waiting(until: Duration)
      case awaitingAuth
    }

    let request: HistoryWalk.Request
    var phase = Phase.queued
    var attempts = 0
    var hasRetriedAuth = false
    /// What the relay said when it asked for AUTH first.
    var refusal: Text?
    /// Whether it is asked under a short id.
    var isShort = false
  }

  struct OpenRequest: Sendable {
    let target: Target
    /// Counts the REQs, so that the last one is known.
    let number: UInt64
    let wanted: FilterMatcher
    /// The filter without its time bounds, to tell a wrong time from a wrong event.
    var bare: FilterMatcher?
    var until: Timestamp?
    var deadline: Duration?
    var hasProgress = false
    /// A NOTICE that may have meant it.
    var notice: Text?
    /// Whether a NOTICE can have meant no other.
    var isAlone = false
    var isShort = false
  }

  struct Publish: Sendable {
    let event: Event
    let deadline: Duration
    var isSent = false
    var isAwaitingAuth = false
    var hasRetriedAuth = false
    /// What the relay said when it asked for AUTH first.
    var refusal: Text?
  }

  struct Authentication: Sendable {
    var challenge: Text?
    /// The challenge for which a signature is being made.
    var signing: Text?
    /// The AUTH event that was sent last.
    var sent: EventID?
    /// The challenge that it answered.
    var answered: Text?
    /// Whether the relay said yes, or said nothing and is being tried.
    var isDone = false
    var allowance: SignatureAllowance
    /// Whether the newest challenge waits for the allowance.
    var isPostponed = false
    var deadline: Duration?

    init(_ limits: Limits) { allowance = SignatureAllowance(limits) }
  }

  public init(limits: Limits, canSign: Bool, at now: Duration) {
    self.limits = limits
    self.canSign = canSign
    auth = Authentication(limits)
    budget = FrameBudget(at: now, patience: limits.budgetPatience)
    closed = RecentIDs(limits.closedRemembered)
    rotation = FeedRotation(interval: limits.rotationInterval)
  }

  /// Takes one input and returns what has to be done, in order.
  ///
  /// - Parameters:
  ///   - now: The steady clock's time.
  ///   - random: For jitter and subscription ids.
  public mutating func handle(_ input: Input, at now: Duration, using random: any RandomSource)
    -> [Effect]
  {
    effects.removeAll(keepingCapacity: true)
    switch input {
    case .start: start(now)
    case .stop: leave(for: .stopped, ending: .cancelled)
    case .suspend: suspend()
    case .resume: resume(now)
    case .information(let information): learn(information, now)
    case .clock(let skew): learnClock(skew)
    case .opened: opened(now)
    case .ended(let why): ended(why, now, random)
    case .received(let message):
      hasSpoken = true
      heard(now)
      received(message, now, random)
    case .malformed(let error):
      heard(now)
      malformed(error, now)
    case .heard: heard(now)
    case .oversized:
      heard(now)
      oversized(now)
    case .signed(let event, let challenge): signed(event, challenge, now)
    case .signingFailed(let why, let challenge): signingFailed(why, challenge, now)
    case .want(let name, let filters, let isPinned): want(name, filters, isPinned)
    case .unwant(let name): unwant(name)
    case .renew(let name): renew(name)
    case .readmit(let name): readmit(name)
    case .ask(let id, let request): ask(id, request, now)
    case .cancel(let id): cancel(id)
    case .publish(let event): publish(event, now)
    case .negotiate(let id, let filter, let opening, let openMax):
      negotiate(id, filter, opening, openMax: openMax, now)
    case .reply(let id, let message): reply(id, message)
    case .closeNegotiation(let id): closeNegotiation(id)
    case .tick: tick(now, random)
    }
    // A page streams in without giving cause to look at all that waits.
    if case .received(.event) = input { return effects }
    drain(now, random)
    return effects
  }

  /// The state of a wanted subscription; nil when it is not wanted.
  public func subscription(_ name: SubscriptionName) -> SubscriptionState? {
    switch lives[name]?.phase {
    case nil: nil
    case .idle, .waiting, .awaitingAuth: .wanted
    case .asked: .asked
    case .confirmed: .live
    case .refused(let why): .refused(why)
    case .parked: .parked
    }
  }

  /// When the relay was last heard on this connection, or it was made.
  public var lastHeard: Duration { heardAt }

  /// Whether it was asked for something and has never said a word.
  public var isMute: Bool { openNext > 0 && !hasSpoken }

  /// Why the relay counts as not reached, where it does.
  public var whyUnreached: Text {
    switch state {
    case .authenticating, .ready: if !hasSpoken { return "connected, but answered nothing" }
    case .stopped, .suspended, .connecting, .backingOff, .refused: break
    }
    return lastError ?? "no answer"
  }

  /// How many requests are open on this connection.
  public var openCount: Int { open.count }

  /// Counts what was learned that a later run should begin with.
  public var lessonsCount: Int { budget.refusals + crowdings }

  /// The names wanted, in the order in which they were.
  public var wanted: [SubscriptionName] { liveOrder }

  /// Whether the relay has taken this connection's AUTH, or needed none so far.
  public var isAuthenticated: Bool { auth.isDone && auth.sent != nil }

  /// Whether the relay has challenged on this connection.
  public var isChallenged: Bool { auth.challenge != nil }

  /// When `tick` is due; nil when nothing waits for time.
  public var deadline: Duration? {
    var times: [Duration] = []
    switch state {
    case .connecting(let deadline), .authenticating(let deadline): times.append(deadline)
    case .backingOff(let until): times.append(until)
    case .ready: times.append(pingedAt.map { $0 + limits.pongMax } ?? heardAt + limits.quietMax)
    case .stopped, .suspended, .refused: break
    }
    if let deadline = auth.deadline { times.append(deadline) }
    if let postponedUntil { times.append(postponedUntil) }
    if let unreachedSince, !asks.isEmpty || !negotiations.isEmpty {
      times.append(unreachedSince + limits.unreachedMax)
    }
    if let drainAt { times.append(drainAt) }
    if let rotationDue { times.append(rotationDue) }
    times += open.values.compactMap(\.deadline)
    times += publishes.values.map(\.deadline)
    times += negotiationDeadlines
    for live in lives.values { if case .waiting(let until) = live.phase { times.append(until) } }
    for ask in asks.values { if case .waiting(let until) = ask.phase { times.append(until) } }
    return times.min()
  }
}

// MARK: The connection

extension ConnectionMachine {
  private mutating func start(_ now: Duration) {
    switch state {
    case .stopped, .suspended, .refused:
      backoff.reset()
      authRefusals = 0
      connect(now)
    case .connecting, .authenticating, .ready, .backingOff: break
    }
  }

  private mutating func connect(_ now: Duration) {
    attemptedAt = now
    unreachedSince = unreachedSince ?? now
    enter(.connecting(deadline: now + limits.connectMax))
    effects.append(.open)
  }

  private mutating func opened(_ now: Duration) {
    guard case .connecting = state else { return }
    // What a former connection's AUTH came to says nothing about this one.
    auth = Authentication(limits)
    namesEvents = false
    hasAnswered = false
    confirmedMax = 0
    heardAt = now
    pingedAt = nil
    if information?.neverChallenges == true { return becomeReady(now) }
    enter(.authenticating(deadline: now + limits.challengeGrace))
  }

  mutating func becomeReady(_ now: Duration) {
    switch state {
    case .connecting, .authenticating:
      backoff.opened(at: now)
      budget.began(at: now)
      unreachedSince = nil
      enter(.ready)
    case .stopped, .suspended, .ready, .backingOff, .refused: break
    }
  }

  private mutating func learn(_ information: RelayInformation?, _ now: Duration) {
    self.information = information
    guard case .authenticating = state, auth.challenge == nil,
      information?.neverChallenges == true
    else { return }
    becomeReady(now)
  }

  private mutating func heard(_ now: Duration) {
    heardAt = now
    pingedAt = nil
  }

  private mutating func ended(_ why: Text, _ now: Duration, _ random: any RandomSource) {
    switch state {
    case .connecting, .authenticating, .ready: fail(why, now, random)
    case .stopped, .suspended, .backingOff, .refused: break
    }
  }

  /// The connection is of no use any more: drop it and try again later.
  ///
  /// - Parameter atLeast: What to wait for at least before the next attempt.
  mutating func fail(
    _ why: Text, _ now: Duration, _ random: any RandomSource, atLeast: Duration = .zero
  ) {
    lastError = why
    effects.append(.abandon)
    disconnect(.disconnected)
    unreachedSince = unreachedSince ?? now
    let wait = max(backoff.failed(at: now, fraction: random.fraction()), atLeast)
    enter(.backingOff(until: now + wait))
  }

  /// The relay refuses this key: nothing is tried again until the user asks.
  mutating func refuse(_ why: Text) {
    lastError = why
    effects.append(.abandon)
    disconnect(.refused(why))
    for id in askOrder { effects.append(.answered(id, .refused(why))) }
    forgetAsks()
    dropNegotiations(.refused(.unsupported(why)))
    enter(.refused(why))
  }

  private mutating func suspend() {
    switch state {
    case .stopped, .suspended, .refused: return
    case .connecting, .authenticating, .ready, .backingOff:
      leave(for: .suspended, ending: .disconnected)
    }
  }

  private mutating func leave(for next: ConnectionState, ending: PageEnd) {
    if state == next { return }
    unreachedSince = nil
    effects.append(.close)
    disconnect(ending)
    for id in askOrder { effects.append(.answered(id, ending)) }
    forgetAsks()
    dropNegotiations(next == .suspended ? .disconnected : .cancelled)
    enter(next)
  }

  private mutating func forgetAsks() {
    asks = [:]
    askOrder = []
  }

  private mutating func resume(_ now: Duration) {
    if let resumedAt, now - resumedAt < limits.resumeSpacing { return }
    resumedAt = now
    switch state {
    case .suspended: connect(now)
    case .backingOff:
      if let attemptedAt, now - attemptedAt < limits.resumeSpacing { return }
      connect(now)
    case .ready where pingedAt == nil:
      // A socket that slept may be dead without knowing it.
      pingedAt = now
      effects.append(.ping)
    case .ready, .stopped, .connecting, .authenticating, .refused: break
    }
  }

  /// Whether the relay has been out of reach for so long that nobody is kept waiting for it.
  func isUnreached(_ now: Duration) -> Bool {
    unreachedSince.map { now - $0 >= limits.unreachedMax } ?? false
  }

  mutating func enter(_ next: ConnectionState) {
    state = next
    effects.append(.state(next))
  }

  private mutating func tick(_ now: Duration, _ random: any RandomSource) {
    switch state {
    case .connecting(let deadline) where now >= deadline:
      return fail("the connection did not open in time", now, random)
    case .authenticating(let deadline) where now >= deadline:
      // No challenge came, or its exchange has a deadline of its own.
      if auth.signing == nil { becomeReady(now) }
    case .backingOff(let until) where now >= until: return connect(now)
    case .ready:
      if let pingedAt, now >= pingedAt + limits.pongMax {
        return fail("the relay went silent", now, random)
      }
      if pingedAt == nil, now >= heardAt + limits.quietMax {
        pingedAt = now
        effects.append(.ping)
      }
    default: break
    }
    if isUnreached(now) {
      for id in askOrder { finish(id, .disconnected) }
    }
    tickAuth(now)
    tickRotation(now)
    tickRequests(now, random)
    tickPublishes(now)
    tickNegotiations(now)
  }
}
