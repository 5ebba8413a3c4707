package import Nostr
package import NostrCrypto
import RelayServer
package import SyncCore

/// A client in a world: the machines that ship, a disk that survives crashes, and the little that
/// joins them, which here is done step by step on one thread.
package final class SimulatedClient {
  /// What a client that must be caught does wrong.
  package enum Flaw: String, Sendable, CaseIterable {
    /// It claims the second below each proof.
    case provesTooMuch = "proves-too-much"
    /// It drops one event of a page and keeps the proof.
    case losesEvents = "loses-events"
    /// It calls a message sent as soon as it was handed over.
    case believesTooEarly = "believes-too-early"
  }

  package struct Settings {
    package var scopes: [Scope] = []
    /// Live feeds, one REQ each.
    package var feeds: [Scope] = []
    package var limits = Limits()
    /// How often everything is walked again; nil for once at each connection.
    package var fullRoundEvery: Duration?
    package var flaw: Flaw?

    package init() {}
  }

  package let name: String
  package let key: SecretKey
  package var disk = ClientDisk()
  package private(set) var walkEnds: [Scope: HistoryWalk.End] = [:]
  package private(set) var largestDelivery = 0
  package private(set) var isRunning = false
  package private(set) var roundsDone = 0
  let world: World
  package let relay: SimulatedRelay
  let settings: Settings
  let random: SeededRandom
  private let relayURL: RelayURL
  private let plan: () -> FaultPlan
  private var choices: SplitMix64

  // What a crash takes away.
  var machine: ConnectionMachine
  var policy: OutboxPolicy
  private var link: SimulatedLink?
  private var life = 0
  private var linkCount = 0
  private var inputs: [ConnectionMachine.Input] = []
  private var isStepping = false
  private var outboxInputs: [OutboxPolicy.Input] = []
  private var isPumping = false
  private var alarmDue: Duration?
  private var outboxAlarmDue: Duration?
  private var askNext: UInt64 = 1
  private var round: WalkRound?
  private var looks: [AskID: (event: EventID, isThere: Bool)] = [:]

  package init(
    _ name: String, at relay: SimulatedRelay, in world: World, settings: Settings,
    plan: @escaping () -> FaultPlan
  ) {
    self.name = name
    self.relay = relay
    self.world = world
    self.settings = settings
    self.plan = plan
    key = SimulationKeys.key("client \(name)")
    choices = world.generator("choices of \(name)")
    random = SeededRandom(seed: choices.next())
    guard let url = RelayURL("ws://\(relay.name)") else {
      preconditionFailure("a relay's name is a host")
    }
    relayURL = url
    machine = ConnectionMachine(limits: settings.limits, canSign: true, at: world.now)
    policy = OutboxPolicy(limits: settings.limits, isRedating: true)
  }

  // MARK: Life

  package func start() {
    life += 1
    isRunning = true
    machine = ConnectionMachine(limits: settings.limits, canSign: true, at: world.now)
    policy = OutboxPolicy(limits: settings.limits, isRedating: true)
    world.note("\(name) starts")
    let information = RelayInformation(document: relay.document)
    pump(.dateWindow(information?.createdAtLowerLimit))
    for item in disk.openItems { pump(.added(item)) }
    take(.information(information))
    for feed in settings.feeds {
      var filter = feed.filter
      filter.limit = settings.limits.liveLimit
      take(.want(feed.key, [filter]))
    }
    take(.start)
    scheduleFullRounds(life)
  }

  /// The process ends where it stands; the disk is all that is left.
  package func crash() {
    world.note("\(name) crashes")
    life += 1
    isRunning = false
    link?.closeFromClient()
    link = nil
    inputs = []
    outboxInputs = []
    alarmDue = nil
    outboxAlarmDue = nil
    round = nil
    looks = [:]
  }

  /// Writes a message, connected or not.
  package func write(_ text: String, in group: Text) {
    let draft = EventDraft(
      createdAt: world.wall, kind: .message, tags: Tags([["h", group]]), content: Text(text))
    let event = SimulationKeys.sign(draft, with: key)
    world.note("\(name) writes \(event.id.hex.prefix(8))")
    let item = disk.enqueue(event, to: relayURL)
    if isRunning { pump(.added(item)) }
  }

  // MARK: The connection

  func take(_ input: ConnectionMachine.Input) {
    inputs.append(input)
    guard !isStepping else { return }
    isStepping = true
    while isRunning, !inputs.isEmpty {
      let input = inputs.removeFirst()
      for effect in machine.handle(input, at: world.now, using: random) where isRunning {
        perform(effect)
      }
    }
    isStepping = false
    armAlarm()
  }

  private func perform(_ effect: ConnectionMachine.Effect) {
    switch effect {
    case .open: open()
    case .close, .abandon:
      link?.closeFromClient()
      link = nil
    case .send(let frame): link?.sendUp(frame)
    case .ping: link?.ping()
    case .sign(let challenge): sign(challenge)
    case .event(.ask(let id), let event, let fit): add(event, fit, to: id)
    case .event(.live, let event, _): addLive(event)
    case .unreadable(.ask(let id), _): round?.pages[id]?.tally.addUnreadable()
    case .unreadable(.live, _): break
    case .restarted(let id): round?.restart(id, now: world.wall)
    case .answered(let id, let end): answered(id, end)
    case .verdict(let id, let isAccepted, let text):
      pump(.verdict(id, accepted: isAccepted, text))
    case .unanswered(let id, let isHanded, let why):
      pump(.unanswered(id, isHanded: isHanded, why))
    case .state(let state): entered(state)
    case .subscription, .notice: break
    }
  }

  private func entered(_ state: ConnectionState) {
    world.note("\(name) is \(state.name)")
    guard case .ready = state else { return pump(.disconnected) }
    pump(.connected)
    if round == nil { startRound(isFull: false) }
  }

  private func open() {
    linkCount += 1
    let mine = life
    let label = "\(name)-\(linkCount)"
    let isRefused = choices.chance(plan().refusedPercent)
    world.after(plan().latency) { [weak self] in
      guard let self, self.life == mine else { return }
      if isRefused { self.world.count(fault: "refused-connection") }
      guard self.relay.isUp, !isRefused else {
        return self.take(.ended("connection refused"))
      }
      self.connect(label, mine)
    }
  }

  private func connect(_ label: String, _ mine: Int) {
    let link = SimulatedLink(
      label, to: relay, in: world, plan: plan,
      ends: SimulatedLink.Ends(
        received: { [weak self] frame in self?.receive(frame, mine) },
        ponged: { [weak self] in if self?.life == mine { self?.take(.heard) } },
        ended: { [weak self] why in self?.ended(label, why, mine) }))
    self.link = link
    openLabel = label
    take(.opened)
    link.open()
  }

  private var openLabel = ""

  private func ended(_ label: String, _ why: String, _ mine: Int) {
    guard life == mine, openLabel == label else { return }
    take(.ended(Text(why)))
  }

  private func receive(_ frame: [UInt8], _ mine: Int) {
    guard life == mine else { return }
    do throws(FrameError) {
      take(.received(try RelayMessage.parse(frame)))
    } catch {
      take(.malformed(error))
    }
  }

  private func sign(_ challenge: Text) {
    let mine = life
    let draft = EventDraft(
      createdAt: world.wall, kind: .relayAuth,
      tags: Tags([["relay", Text(relayURL.description)], ["challenge", challenge]]), content: .empty
    )
    let event = SimulationKeys.sign(draft, with: key)
    world.after(.milliseconds(choices.number(in: 1..<500))) { [weak self] in
      guard let self, self.life == mine else { return }
      self.take(.signed(event, challenge: challenge))
    }
  }

  private func armAlarm() {
    guard isRunning, let due = machine.deadline, alarmDue.map({ due < $0 }) ?? true else { return }
    alarmDue = due
    let mine = life
    world.after(due - world.now) { [weak self] in
      guard let self, self.life == mine, self.alarmDue == due else { return }
      self.alarmDue = nil
      self.take(.tick)
    }
  }

  // MARK: Events

  private func add(_ event: Event, _ fit: ConnectionMachine.Fit, to id: AskID) {
    if looks[id]?.event == event.id && world.verdicts.isValid(event) {
      looks[id]?.isThere = true
      return
    }
    switch fit {
    case .aboveUntil: round?.pages[id]?.tally.addAboveUntil()
    case .belowSince: round?.pages[id]?.tally.addBelowSince()
    case .inside:
      if world.verdicts.isValid(event) {
        round?.pages[id]?.tally.addVerified(event.position)
        round?.pages[id]?.events.append(event)
      } else {
        round?.pages[id]?.tally.addInvalid(event.createdAt)
      }
    }
  }

  private func addLive(_ event: Event) {
    guard world.verdicts.isValid(event) else { return }
    hold([event])
  }

  /// Everything that comes onto the disk from a relay comes through here.
  private func hold(_ events: [Event]) {
    for event in events {
      Checkers.origin(of: event, at: relay, in: world, for: name)
      disk.hold(event)
      pump(.echoed(event.id))
    }
  }

  // MARK: Rounds

  private func scheduleFullRounds(_ mine: Int) {
    guard let every = settings.fullRoundEvery else { return }
    world.after(every) { [weak self] in
      guard let self, self.life == mine else { return }
      if case .ready = self.machine.state, self.round == nil { self.startRound(isFull: true) }
      self.scheduleFullRounds(mine)
    }
  }

  private func startRound(isFull: Bool) {
    guard !settings.scopes.isEmpty else { return }
    round = WalkRound(settings.scopes, isFull: isFull)
    nextWalk()
  }

  private func nextWalk() {
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
      limits: settings.limits, information: machine.information, largestDelivery: largestDelivery)
    current.scope = scope
    current.walk = HistoryWalk(
      scope.filter, legs: plan.legs(over: coverage, now: world.wall), options: options)
    round = current
    nextPage()
  }

  private func nextPage() {
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

  private func takeAskID() -> AskID {
    defer { askNext += 1 }
    return AskID(askNext)
  }

  private func answered(_ id: AskID, _ end: PageEnd) {
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
    largestDelivery = max(largestDelivery, page.tally.delivered)
    if settings.flaw == .losesEvents, !page.events.isEmpty { page.events.removeLast() }
    hold(page.events)
    disk.commit(page.events, findings, of: scope, at: world.wall)
    if settings.flaw == .provesTooMuch { overclaim(findings, of: scope) }
    for span in findings.proofs {
      Checkers.proof(span, of: scope, askedAt: page.askedAt, by: self)
    }
    nextPage()
  }

  private func overclaim(_ findings: HistoryWalk.Findings, of scope: Scope) {
    for span in findings.proofs where span.from > 0 {
      let below = CoverageInterval(
        from: span.from - 1, to: span.from - 1, provedAt: world.wall, method: .paging)
      disk.claim(below, of: scope)
      Checkers.proof(
        HistoryWalk.Span(from: below.from, to: below.to), of: scope, askedAt: world.steps, by: self)
    }
  }

  // MARK: The outbox

  func pump(_ input: OutboxPolicy.Input) {
    outboxInputs.append(input)
    guard !isPumping else { return }
    isPumping = true
    while isRunning, !outboxInputs.isEmpty {
      let input = outboxInputs.removeFirst()
      let effects = policy.handle(input, at: world.now, wall: world.wall, using: random)
      for effect in effects where isRunning { perform(effect) }
    }
    isPumping = false
    armOutboxAlarm()
  }

  private func perform(_ effect: OutboxPolicy.Effect) {
    switch effect {
    case .record(let delivery): record(delivery)
    case .publish(let message, let id):
      guard let event = disk.messages[message], event.id == id else {
        return outboxInputs.append(.unanswered(id, isHanded: false, "the event is missing"))
      }
      take(.publish(event))
    case .look(let id):
      let ask = takeAskID()
      looks[ask] = (id, false)
      take(.ask(ask, HistoryWalk.Request(filter: Filter(ids: [id], kinds: [.message], limit: 1))))
    case .redate(let id): redate(id)
    }
  }

  private func record(_ delivery: Delivery) {
    var delivery = delivery
    if settings.flaw == .believesTooEarly, delivery.state == .sending { delivery.state = .sent }
    disk.record(delivery)
    world.note("\(name) records \(delivery.message): \(delivery.state)")
    if delivery.state == .sent { Checkers.sent(delivery, by: self) }
  }

  private func redate(_ id: MessageID) {
    guard let old = disk.messages[id] else { return }
    let draft = EventDraft(
      createdAt: world.wall, kind: old.kind, tags: old.tags, content: old.content)
    let event = SimulationKeys.sign(draft, with: key)
    world.note("\(name) re-dates \(id) as \(event.id.hex.prefix(8))")
    guard let item = disk.redate(id, as: event) else { return }
    outboxInputs.append(.redated(item))
  }

  private func armOutboxAlarm() {
    guard isRunning, let due = policy.deadline, outboxAlarmDue.map({ due < $0 }) ?? true else {
      return
    }
    outboxAlarmDue = due
    let mine = life
    world.after(due - world.now) { [weak self] in
      guard let self, self.life == mine, self.outboxAlarmDue == due else { return }
      self.outboxAlarmDue = nil
      self.pump(.tick)
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
