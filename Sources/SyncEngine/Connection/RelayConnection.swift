import EventLog
import Nostr
import NostrCrypto
import SyncCore

/// The connection to one relay: it feeds a `ConnectionMachine` with frames and time and performs
/// what that decides.
///
/// Frames are pulled a few at a time. What they bring is verified beside what is still coming, and
/// no more is pulled while the buffer of a page is full; so the store sets the pace of the socket.
actor RelayConnection {
  nonisolated let url: RelayURL
  let ports: Ports
  let signer: (any Signer)?
  let verifier: Verifier
  private let sink: any RelayReportSink
  let limits: Limits
  private(set) var machine: ConnectionMachine

  private var link: (any TransportLink)?
  private var writer: FrameWriter?
  /// Counts connections, so that what belongs to an earlier one is told apart.
  private var generation = 0
  private var opening: (any SpawnedTask)?
  private var reading: (any SpawnedTask)?
  private var writing: (any SpawnedTask)?
  private var isInformed = false
  /// A frame is being taken over; while the store holds that up, silence is not the relay's.
  private var isBusy = false
  private var alarm = Alarm()
  private var flushAlarm = Alarm()
  private var faultAlarm = Alarm()
  private var ledger: FaultLedger
  /// Of the lessons of this run, how many were told, and when the next may be.
  private var lessonsTold = 0
  private var lessonsDue: Duration = .zero
  private var askNext: UInt64 = 1
  var negotiations: [AskID: OpenNegotiation] = [:]
  var negentropy = NegentropySupport.unknown
  var windows = WindowSupport.unknown
  var pages: [AskID: OpenPage] = [:]
  private var liveEvents: [Event] = []
  private var liveRejects: [Reject] = []

  init(
    _ url: RelayURL, ports: Ports, signer: (any Signer)?, verifier: Verifier,
    sink: any RelayReportSink, limits: Limits, lessons: RelayLessons = RelayLessons()
  ) {
    self.url = url
    self.ports = ports
    self.signer = signer
    self.verifier = verifier
    self.sink = sink
    self.limits = limits
    ledger = FaultLedger(interval: limits.faultInterval)
    machine = ConnectionMachine(
      limits: limits, canSign: signer != nil, at: ports.clock.uptime())
    machine.recall(lessons, at: ports.clock.uptime(), wall: ports.clock.now())
  }

  // MARK: What the engine wants

  func start() async { await take(.start) }

  func stop() async {
    await take(.stop)
    alarm.cancel()
    flushAlarm.cancel()
    opening?.cancel()
    await reading?.finished()
    await writing?.finished()
    await reportFaults()
    if machine.lessonsCount > lessonsTold { await reportLessons() }
  }

  func suspend() async { await take(.suspend) }

  func resume() async { await take(.resume) }

  func want(_ feeds: [(SubscriptionName, [Filter])], isPinned: Bool = false) async {
    for (name, filters) in feeds { await take(.want(name, filters, isPinned: isPinned)) }
  }

  func unwant(_ name: SubscriptionName) async { await take(.unwant(name)) }

  func renew(_ name: SubscriptionName) async { await take(.renew(name)) }

  func readmit(_ name: SubscriptionName) async { await take(.readmit(name)) }

  /// Makes good for an alarm that never rang.
  func supervise() async {
    guard let due = machine.deadline, ports.clock.uptime() >= due + limits.watchInterval else {
      return
    }
    alarm.cancel()
    await take(.tick)
  }

  func publish(_ event: Event) async { await take(.publish(event)) }

  func nextAsk() -> AskID {
    defer { askNext += 1 }
    return AskID(askNext)
  }

  func cancel(_ id: AskID) async { await take(.cancel(id)) }

  // MARK: The machine

  func step(_ input: ConnectionMachine.Input) -> [ConnectionMachine.Effect] {
    let effects = machine.handle(input, at: ports.clock.uptime(), using: ports.random)
    if let due = ledger.due(machine.faults) {
      faultAlarm.set(due, "relay faults", ports) { [weak self] in await self?.faultsDue() }
    }
    // Events only move deadlines away: an alarm that rings too early does no harm.
    if case .received(.event) = input { return effects }
    alarm.set(machine.deadline, "relay alarm", ports) { [weak self] in await self?.tick() }
    return effects
  }

  func take(_ input: ConnectionMachine.Input) async {
    // The machine has moved before the first suspension: an input that arrives while an effect is
    // running meets a settled state.
    for effect in step(input) { await perform(effect) }
    if machine.lessonsCount > lessonsTold, ports.clock.uptime() >= lessonsDue {
      await reportLessons()
    }
  }

  private func tick() async {
    alarm.rang()
    if isBusy { await take(.heard) }
    await take(.tick)
  }

  /// Performs effects from a place that must not wait. Frames leave in order, because they are
  /// queued before this returns.
  func performLater(_ effects: [ConnectionMachine.Effect]) {
    var rest: [ConnectionMachine.Effect] = []
    for effect in effects {
      if case .send(let frame) = effect { writer?.send(frame) } else { rest.append(effect) }
    }
    guard !rest.isEmpty else { return }
    let left = rest
    _ = ports.tasks.spawn("relay effects") { [weak self] in await self?.perform(left) }
  }

  private func perform(_ effects: [ConnectionMachine.Effect]) async {
    for effect in effects { await perform(effect) }
  }

  private func perform(_ effect: ConnectionMachine.Effect) async {
    switch effect {
    case .open: open()
    case .close: drop { $0.close(code: 1000) }
    case .abandon: drop { $0.abandon() }
    case .send(let frame): writer?.send(frame)
    case .ping: ping()
    case .sign(let challenge, let shape): sign(challenge, shape)
    case .measureClock: readClock()
    case .event(.ask(let id), let event, let fit): await add(event, fit, to: id)
    case .event(.live, let event, _): await addLive(event)
    case .unreadable(.ask(let id), let error): await add(error.reject, to: id)
    case .unreadable(.live, let error): addLive(error.reject)
    case .restarted(let id): restart(id)
    case .answered(let id, let end): answered(id, end)
    case .subscription(let name, let state):
      await flushLive()
      await report(.subscription(name, state))
    case .resumed(let name): await report(.resumed(name))
    case .verdict(let id, let isAccepted, let text):
      await report(.verdict(id, accepted: isAccepted, text))
    case .unanswered(let id, let isHanded, let why):
      await report(.unanswered(id, isHanded: isHanded, why))
    case .negotiated(let id, let message): await negotiated(id, message)
    case .negotiationEnded(let id, let end): finishNegotiation(id, .ended(end))
    case .state(let state): await report(.state(state))
    case .notice(let text): await report(.notice(text))
    }
  }

  private func report(_ report: RelayReport) async { await sink.take(report, from: url) }

  private func faultsDue() async {
    faultAlarm.rang()
    await reportFaults()
  }

  /// Reports what the relay did wrong and was not reported yet, whether or not it is due.
  func reportFaults() async {
    faultAlarm.cancel()
    let faults = ledger.take(machine.faults, at: ports.clock.uptime())
    if !faults.isEmpty { await report(.faults(faults)) }
  }

  /// Reports what the relay's refusals taught: the first at once, then once an interval, so that a
  /// relay that only refuses does not wear the disk.
  private func reportLessons() async {
    let now = ports.clock.uptime()
    lessonsTold = machine.lessonsCount
    lessonsDue = now + limits.faultInterval
    await report(.lessons(machine.lessons(at: now, wall: ports.clock.now())))
  }

  // MARK: The socket

  private func open() {
    generation += 1
    let mine = generation
    let (transport, url, size) = (ports.transport, url, limits.frameBytesMax)
    opening = ports.tasks.spawn("relay opener") { [weak self] in
      do throws(TransportError) {
        let link = try await transport.open(url, frameBytesMax: size)
        guard let self else { return link.abandon() }
        await self.opened(link, mine)
      } catch {
        await self?.ended(error, mine)
      }
    }
    inform()
  }

  private func opened(_ link: any TransportLink, _ mine: Int) async {
    guard mine == generation, case .connecting = machine.state else { return link.abandon() }
    self.link = link
    let writer = FrameWriter()
    self.writer = writer
    writing = ports.tasks.spawn("relay writer") { await writer.run(link) }
    reading = ports.tasks.spawn("relay reader") { [weak self] in
      while let self, await self.readSome(link, mine) {}
      // It ends with the connection; where it was lost alone, the connection is of no use.
      await self?.ended(.closed(code: 1006, reason: "nobody reads it"), mine)
    }
    await take(.opened)
  }

  private func readSome(_ link: any TransportLink, _ mine: Int) async -> Bool {
    do throws(TransportError) {
      for frame in try await link.receive(upTo: limits.framesAtOnce) {
        guard mine == generation else { return false }
        isBusy = true
        await received(frame)
        isBusy = false
      }
      return true
    } catch {
      await ended(error, mine)
      return false
    }
  }

  private func ended(_ error: TransportError, _ mine: Int) async {
    guard mine == generation else { return }
    await flushLive()
    await take(.ended(Text(error.description)))
  }

  private func received(_ frame: InboundFrame) async {
    switch frame {
    case .pong: await take(.heard)
    case .tooLarge: await take(.oversized)
    case .message(let bytes):
      do throws(FrameError) {
        await take(.received(try RelayMessage.parse(bytes)))
      } catch {
        await take(.malformed(error))
      }
    }
  }

  private func drop(_ end: (any TransportLink) -> Void) {
    // What a lost connection still had buffered was received in full and is kept.
    generation += 1
    writer?.end()
    opening?.cancel()
    if let link { end(link) }
    link = nil
    writer = nil
    guard !liveEvents.isEmpty || !liveRejects.isEmpty else { return }
    _ = ports.tasks.spawn("relay flush") { [weak self] in await self?.flushLive() }
  }

  private func ping() {
    guard let link else { return }
    _ = ports.tasks.spawn("relay ping") {
      // A ping that cannot be sent is a connection that ends, which its reader hears of.
      try? await link.ping()
    }
  }

  /// Fetches the relay's document once; what it says is no more than a hint.
  private func inform() {
    guard !isInformed else { return }
    let (fetcher, url) = (ports.relayInformation, url)
    _ = ports.tasks.spawn("relay document") { [weak self] in
      // Why there is no document makes no difference: then there are no hints.
      let answer = try? await fetcher.answer(of: url)
      if let date = answer?.date { await self?.readClock(date) }
      await self?.informed(answer?.document.flatMap { RelayInformation(document: $0) })
    }
  }

  private func readClock() {
    let (fetcher, url) = (ports.relayInformation, url)
    _ = ports.tasks.spawn("relay clock") { [weak self] in
      // Without an answer the difference stays unknown.
      if let date = try? await fetcher.answer(of: url).date { await self?.readClock(date) }
    }
  }

  private func readClock(_ date: Timestamp) async {
    await take(.clock(skew: date.seconds - ports.clock.now().seconds))
  }

  private func informed(_ information: RelayInformation?) async {
    guard !isInformed else { return }
    isInformed = information != nil
    await take(.information(information))
    await report(.information(information))
  }

  private func sign(_ challenge: Text, _ shape: AuthShape) {
    guard let signer else { return }
    let draft = EventDraft(
      createdAt: shape.date(at: ports.clock.now()), kind: .relayAuth,
      tags: Tags([["relay", shape.text(of: url)], ["challenge", challenge]]), content: .empty)
    _ = ports.tasks.spawn("relay auth") { [weak self] in
      do throws(SignerError) {
        let event = try await signer.sign(draft)
        await self?.take(.signed(event.event, challenge: challenge))
      } catch {
        await self?.take(.signingFailed(Text(error.description), challenge: challenge))
      }
    }
  }

  // MARK: Live events

  private func addLive(_ reject: Reject) {
    if liveRejects.count < limits.chunkEventsMax { liveRejects.append(reject) }
  }

  private func addLive(_ event: Event) async {
    liveEvents.append(event)
    if liveEvents.count >= limits.liveBatch { return await flushLive() }
    flushAlarm.set(ports.clock.uptime() + limits.liveFlushDelay, "relay flush", ports) {
      [weak self] in await self?.flushDue()
    }
  }

  private func flushDue() async {
    flushAlarm.rang()
    await flushLive()
  }

  private func flushLive() async {
    guard !liveEvents.isEmpty || !liveRejects.isEmpty else { return }
    let events = liveEvents
    var rejects = liveRejects
    liveEvents = []
    liveRejects = []
    var verified: [VerifiedEvent] = []
    for (event, verdict) in zip(events, await verifier.verify(events, on: ports.work)) {
      switch verdict {
      case .success(let event): verified.append(event)
      case .failure(let failure):
        rejects.append(Reject(id: Text(event.id.hex), reason: failure.reason))
      }
    }
    await report(.live(verified, rejects))
  }
}
