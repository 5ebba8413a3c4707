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
  package internal(set) var walkEnds: [Scope: HistoryWalk.End] = [:]
  package internal(set) var pageShown = 0
  package internal(set) var isRunning = false
  package internal(set) var roundsDone = 0
  let world: World
  package let relay: SimulatedRelay
  let settings: Settings
  let random: SeededRandom
  let relayURL: RelayURL
  let plan: () -> FaultPlan
  var choices: SplitMix64

  // What a crash takes away.
  var machine: ConnectionMachine
  var policy: OutboxPolicy
  var link: SimulatedLink?
  var life = 0
  var linkCount = 0
  /// The name of the link that is, or was last, the connection.
  var openLabel = ""
  var inputs: [ConnectionMachine.Input] = []
  var isStepping = false
  var outboxInputs: [OutboxPolicy.Input] = []
  var isPumping = false
  var alarmDue: Duration?
  var outboxAlarmDue: Duration?
  var askNext: UInt64 = 1
  var round: WalkRound?
  var looks: [AskID: (event: EventID, isThere: Bool)] = [:]

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

  func perform(_ effect: ConnectionMachine.Effect) {
    switch effect {
    case .open: open()
    case .close, .abandon:
      link?.closeFromClient()
      link = nil
    case .send(let frame): link?.sendUp(frame)
    case .ping: link?.ping()
    case .sign(let challenge, _): sign(challenge)
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
    case .subscription, .resumed, .measureClock, .notice, .negotiated, .negotiationEnded: break
    }
  }

  func entered(_ state: ConnectionState) {
    world.note("\(name) is \(state.name)")
    guard case .ready = state else { return pump(.disconnected) }
    pump(.connected)
    if round == nil { startRound(isFull: false) }
  }

  func open() {
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

  func connect(_ label: String, _ mine: Int) {
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

  func ended(_ label: String, _ why: String, _ mine: Int) {
    guard life == mine, openLabel == label else { return }
    take(.ended(Text(why)))
  }

  func receive(_ frame: [UInt8], _ mine: Int) {
    guard life == mine else { return }
    do throws(FrameError) {
      take(.received(try RelayMessage.parse(frame)))
    } catch {
      take(.malformed(error))
    }
  }

  func sign(_ challenge: Text) {
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

  func armAlarm() {
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

  func add(_ event: Event, _ fit: ConnectionMachine.Fit, to id: AskID) {
    if looks[id]?.event == event.id && world.verdicts.isValid(event) {
      looks[id]?.isThere = true
      return
    }
    switch fit {
    case .aboveUntil: round?.pages[id]?.tally.addAboveUntil(event.position)
    case .belowSince: round?.pages[id]?.tally.addBelowSince(event.position)
    case .inside:
      if world.verdicts.isValid(event) {
        round?.pages[id]?.tally.addVerified(event.position)
        round?.pages[id]?.events.append(event)
      } else {
        round?.pages[id]?.tally.addInvalid(event.position, isDated: false)
      }
    }
  }

  func addLive(_ event: Event) {
    guard world.verdicts.isValid(event) else { return }
    hold([event])
  }

  /// Everything that comes onto the disk from a relay comes through here.
  func hold(_ events: [Event]) {
    for event in events {
      Checkers.origin(of: event, at: relay, in: world, for: name)
      disk.hold(event)
      pump(.echoed(event.id))
    }
  }
}
