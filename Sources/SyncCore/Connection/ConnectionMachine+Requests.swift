import Nostr

// Wanted subscriptions and requests for stored events, against what is open on this connection.
extension ConnectionMachine {
  mutating func want(_ name: SubscriptionName, _ filters: [Filter], _ isPinned: Bool) {
    if let live = lives[name] {
      lives[name]?.isPinned = isPinned
      // What was refused stays so: only news of access is a reason to ask again.
      guard live.filters != filters else { return }
      closeLive(name)
    } else {
      liveOrder.append(name)
    }
    lives[name] = Live(filters: filters, isPinned: isPinned)
  }

  /// Asks again for a feed that was refused.
  mutating func readmit(_ name: SubscriptionName) {
    guard let live = lives[name], case .refused = live.phase else { return }
    var wanted = Live(filters: live.filters, isPinned: live.isPinned)
    wanted.isInterrupted = true
    lives[name] = wanted
    effects.append(.subscription(name, .wanted))
  }

  mutating func unwant(_ name: SubscriptionName) {
    guard lives[name] != nil else { return }
    closeLive(name)
    lives[name] = nil
    liveOrder.removeAll { $0 == name }
    for other in liveOrder where lives[other]?.phase == .parked {
      lives[other]?.phase = .idle
      lives[other]?.parkedAt = nil
      break
    }
  }

  /// Asks for a deaf feed under a new id; what it missed was found by asking.
  mutating func renew(_ name: SubscriptionName) {
    guard case .confirmed(let id) = lives[name]?.phase else { return }
    faults.count(.deafFeed)
    close(id)
    lives[name]?.phase = .idle
    effects.append(.subscription(name, .wanted))
  }

  mutating func ask(_ id: AskID, _ request: HistoryWalk.Request, _ now: Duration) {
    guard asks.count < limits.asksPendingMax else {
      effects.append(.answered(id, .cancelled))
      return
    }
    switch state {
    case .stopped: effects.append(.answered(id, .cancelled))
    case .suspended: effects.append(.answered(id, .disconnected))
    case .refused(let why): effects.append(.answered(id, .refused(why)))
    case .connecting, .authenticating, .backingOff, .ready:
      if isUnreached(now) { return effects.append(.answered(id, .disconnected)) }
      asks[id] = Ask(request: request)
      askOrder.append(id)
    }
  }

  mutating func cancel(_ id: AskID) {
    guard let ask = asks[id] else { return }
    if case .asked(let subscription) = ask.phase { close(subscription) }
    finish(id, .cancelled)
  }

  mutating func finish(_ id: AskID, _ end: PageEnd) {
    guard asks.removeValue(forKey: id) != nil else { return }
    askOrder.removeAll { $0 == id }
    effects.append(.answered(id, end))
  }

  mutating func refuseLive(_ name: SubscriptionName, _ why: Text) {
    lives[name]?.phase = .refused(why)
    effects.append(.subscription(name, .refused(why)))
  }

  private mutating func closeLive(_ name: SubscriptionName) {
    switch lives[name]?.phase {
    case .asked(let id), .confirmed(let id): close(id)
    default: break
    }
  }

  /// Ends a request on the wire; whatever still comes for its id is dropped and counted.
  mutating func close(_ id: SubscriptionID) {
    guard open.removeValue(forKey: id) != nil else { return }
    closed.add(id)
    effects.append(.send(ClientMessage.close(id).json()))
  }

  /// How many subscriptions may stay open for live feeds.
  var livesMax: Int {
    let total = subscriptionsTotal
    return max(1, total - min(limits.subscriptionsReserve, max(1, total / 4)))
  }

  private var subscriptionsTotal: Int {
    var total = limits.subscriptionsMax
    if let hint = information?.subscriptionsMax { total = min(total, hint) }
    if let learned = subscriptionsLearned { total = min(total, learned) }
    return max(total, 2)
  }

  /// Sends what waits, the most urgent first, as far as the budget goes.
  mutating func drain(_ now: Duration, _ random: any RandomSource) {
    drainAt = nil
    guard case .ready = state else { return }
    guard drainPublishes(now), !isSeekingRefused(now, random), drainLives(now, random) else {
      return
    }
    drainNegotiations(now, random)
    drainAsks(now, random)
  }

  /// - Returns: Whether the budget has room left for what comes after.
  mutating func mayGo(_ priority: FrameBudget.Priority, _ now: Duration) -> Bool {
    guard let later = budget.take(priority, at: now) else { return true }
    drainAt = later
    return false
  }

  private mutating func drainLives(_ now: Duration, _ random: any RandomSource) -> Bool {
    var count = lives.values.count { live in
      switch live.phase {
      case .asked, .confirmed: true
      default: false
      }
    }
    let bound = livesMax
    // Not amid a burst: what is still unanswered may be what the relay turned away.
    if count > bound, open.values.allSatisfy(\.hasProgress) { parkExcess(&count, bound, now) }
    for name in liveOrder {
      guard let live = lives[name], live.phase == .idle else { continue }
      if count >= bound {
        park(name, now)
        continue
      }
      guard isOneMoreClear, mayGo(.liveRequest, now) else { return false }
      count += 1
      openLive(name, now, random)
    }
    return true
  }

  mutating func openLive(
    _ name: SubscriptionName, _ now: Duration, _ random: any RandomSource, isAlone: Bool = false
  ) {
    guard let live = lives[name] else { return }
    let number = nextOpen()
    let isShort = live.isShort || suspects.shortIDsHelp == true
    let id = subscriptionID(isShort: isShort, random)
    lives[name]?.phase = .asked(id)
    open[id] = OpenRequest(
      target: .live(name), number: number, wanted: FilterMatcher(live.filters),
      deadline: now + limits.answerIdleMax, isAlone: isAlone, isShort: isShort)
    effects.append(.send(ClientMessage.req(id, live.filters).json()))
    effects.append(.subscription(name, .asked))
  }

  /// Feeds beyond what the relay keeps give way, the last wanted first.
  private mutating func parkExcess(_ count: inout Int, _ bound: Int, _ now: Duration) {
    for name in liveOrder.reversed() where count > bound {
      guard case .confirmed(let id) = lives[name]?.phase else { continue }
      close(id)
      count -= 1
      park(name, now)
    }
  }

  private mutating func nextOpen() -> UInt64 {
    openNext += 1
    return openNext
  }

  private mutating func drainAsks(_ now: Duration, _ random: any RandomSource) {
    var count = asks.values.count { ask in
      if case .asked = ask.phase { true } else { false }
    }
    for id in askOrder where count < limits.asksOpenMax {
      guard let ask = asks[id], ask.phase == .queued else { continue }
      guard isOneMoreClear, mayGo(.backfill, now) else { return }
      count += 1
      openAsk(id, now, random)
    }
  }

  mutating func openAsk(
    _ id: AskID, _ now: Duration, _ random: any RandomSource, isAlone: Bool = false
  ) {
    guard let ask = asks[id] else { return }
    let number = nextOpen()
    let isShort = ask.isShort || suspects.shortIDsHelp == true
    let subscription = subscriptionID(isShort: isShort, random)
    asks[id]?.phase = .asked(subscription)
    open[subscription] = OpenRequest(
      target: .ask(id), number: number, wanted: FilterMatcher(ask.request.filter),
      bare: FilterMatcher(ask.request.filter.withoutTimes), until: ask.request.filter.until,
      deadline: now + limits.answerIdleMax, isAlone: isAlone, isShort: isShort)
    if ask.attempts > 0 || ask.hasRetriedAuth { effects.append(.restarted(id)) }
    effects.append(.send(ask.request.frame(subscription)))
  }

  mutating func tickRequests(_ now: Duration, _ random: any RandomSource) {
    for name in liveOrder {
      if case .waiting(let until) = lives[name]?.phase, now >= until { lives[name]?.phase = .idle }
    }
    for id in askOrder {
      if case .waiting(let until) = asks[id]?.phase, now >= until { asks[id]?.phase = .queued }
    }
    let overdue = open.filter { $0.value.deadline.map { now >= $0 } ?? false }.keys.sorted()
    for id in overdue { unanswered(id, now, random) }
  }

  private mutating func unanswered(
    _ id: SubscriptionID, _ now: Duration, _ random: any RandomSource
  ) {
    guard let request = open[id] else { return }
    close(id)
    if isAskedAgain(request) { return }
    switch request.target {
    case .ask(let ask): finish(ask, request.notice.map { .noticed($0) } ?? .timedOut)
    case .live(let name):
      if let notice = request.notice { return refuseLive(name, notice) }
      lives[name]?.attempts += 1
      lives[name]?.phase = .idle
      lives[name]?.isInterrupted = true
      guard let attempts = lives[name]?.attempts, attempts >= limits.liveAttemptsMax else { return }
      // Where the relay answers others, only this one is dead; else the connection is.
      if hasAnswered { return refuseLive(name, "the relay never answers this subscription") }
      fail("the relay answers no subscription", now, random)
    }
  }

  /// The connection is gone: what was open on it has ended, what is wanted stays.
  mutating func disconnect(_ end: PageEnd) {
    auth = Authentication(limits)
    let running = askOrder.filter { id in
      if case .queued = asks[id]?.phase { false } else { true }
    }
    open = [:]
    suspects.waiting = []
    closed.removeAll()
    for id in running { finish(id, end) }
    disconnectNegotiations(.disconnected)
    for name in liveOrder {
      if case .refused = lives[name]?.phase { continue }
      lives[name]?.phase = .idle
      lives[name]?.attempts = 0
      lives[name]?.hasRetriedAuth = false
      lives[name]?.parkedAt = nil
      // What a lost connection missed is asked for as a whole.
      lives[name]?.isInterrupted = false
      effects.append(.subscription(name, .wanted))
    }
    for id in publishOrder {
      guard let publish = publishes[id] else { continue }
      effects.append(.unanswered(id, isHanded: publish.isSent, "the connection ended"))
    }
    publishes = [:]
    publishOrder = []
  }
}

extension Filter {
  var withoutTimes: Filter {
    var bare = self
    bare.since = nil
    bare.until = nil
    return bare
  }
}

extension HistoryWalk.Request {
  /// The REQ of this request.
  func frame(_ id: SubscriptionID) -> [UInt8] {
    var frame = ClientMessage.req(id, [filter]).json()
    guard let beforeID else { return frame }
    // The one filter is the last element: the frame ends in `}]`.
    frame.removeLast(2)
    frame.append(contentsOf: Array(",\"before_id\":\"\(beforeID.hex)\"}]".utf8))
    return frame
  }
}
