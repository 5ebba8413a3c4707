import Nostr
import SyncCore

/// Walking: which scope, which page, and what reaches the disk.
extension SimulatedClient {
  func scheduleFullRounds(_ mine: Int) {
    guard let every = settings.fullRoundEvery else { return }
    world.after(every) { [weak self] in
      guard let self, self.life == mine else { return }
      if case .ready = self.machine.state, self.round == nil { self.startRound(isFull: true) }
      self.scheduleFullRounds(mine)
    }
  }

  func startRound(isFull: Bool) {
    guard !settings.scopes.isEmpty else { return }
    round = WalkRound(settings.scopes, isFull: isFull)
    nextWalk()
  }

  func nextWalk() {
    guard var current = round else { return }
    guard let scope = current.scopes.popLast() else {
      round = nil
      roundsDone += 1
      return world.note("\(name) has walked everything")
    }
    var plan = SyncPlan(recentWindow: 3600)
    plan.isFull = current.isFull
    let coverage = disk.coverage[scope] ?? CoverageMap()
    let options = HistoryWalk.Options(
      limits: settings.limits, information: machine.information, pageShown: pageShown)
    current.scope = scope
    current.walk = HistoryWalk(
      scope.filter, legs: plan.legs(over: coverage, now: world.wall), options: options)
    round = current
    nextPage()
  }

  func nextPage() {
    guard let scope = round?.scope, var walk = round?.walk else { return }
    let step = walk.next(now: world.wall)
    round?.walk = walk
    guard case .ask(let request) = step else {
      if let end = walk.end {
        walkEnds[scope] = end
        world.note("\(name) ends \(scope): \(end)")
      }
      return nextWalk()
    }
    let id = takeAskID()
    round?.pages[id] = WalkRound.Page(
      request: request, tally: request.tally(now: world.wall), askedAt: world.steps)
    take(.ask(id, request))
  }

  func takeAskID() -> AskID {
    defer { askNext += 1 }
    return AskID(askNext)
  }

  func answered(_ id: AskID, _ end: PageEnd) {
    if let look = looks.removeValue(forKey: id) {
      var isThere: Bool? = look.isThere ? true : nil
      if case .complete = end { isThere = look.isThere }
      return pump(.looked(look.event, isThere: isThere))
    }
    guard var page = round?.pages.removeValue(forKey: id), let scope = round?.scope,
      var walk = round?.walk
    else { return }
    var findings = walk.received(page.tally, end)
    if end == .disconnected {
      round?.disconnects += 1
      if round?.disconnects ?? 0 > 20 { findings = walk.stop(.disconnected, why: "lost too often") }
    }
    round?.walk = walk
    pageShown = max(pageShown, walk.pageShown)
    if settings.flaw == .losesEvents, !page.events.isEmpty { page.events.removeLast() }
    hold(page.events)
    disk.commit(page.events, findings, of: scope, at: world.wall)
    if settings.flaw == .provesTooMuch { overclaim(findings, of: scope) }
    for span in findings.proofs {
      Checkers.proof(span, of: scope, askedAt: page.askedAt, by: self)
    }
    nextPage()
  }

  func overclaim(_ findings: HistoryWalk.Findings, of scope: Scope) {
    for span in findings.proofs where span.from > 0 {
      let below = CoverageInterval(
        from: span.from - 1, to: span.from - 1, provedAt: world.wall, method: .paging)
      disk.claim(below, of: scope)
      Checkers.proof(
        HistoryWalk.Span(from: below.from, to: below.to), of: scope, askedAt: world.steps, by: self)
    }
  }
}

/// One pass over a client's scopes, one walk at a time.
struct WalkRound {
  struct Page {
    let request: HistoryWalk.Request
    var tally: PageTally
    /// The world's step at which it was asked for first.
    let askedAt: Int
    var events: [Event] = []
  }

  /// What is still to be walked, the last one next.
  var scopes: [Scope]
  let isFull: Bool
  var scope: Scope?
  var walk: HistoryWalk?
  var pages: [AskID: Page] = [:]
  var disconnects = 0

  init(_ scopes: [Scope], isFull: Bool) {
    self.scopes = scopes.reversed()
    self.isFull = isFull
  }

  /// The page begins anew, because it was asked for again.
  mutating func restart(_ id: AskID, now: Timestamp) {
    guard let page = pages[id] else { return }
    pages[id]?.tally = page.request.tally(now: now)
    pages[id]?.events = []
  }
}
