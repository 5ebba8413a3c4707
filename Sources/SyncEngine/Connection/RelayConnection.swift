import EventLog
import Nostr
import NostrCrypto
import SyncCore

/// The connection to one relay: it feeds a `ConnectionMachine` with frames and time and performs
/// what that decides.
///
/// Frames are pulled one by one, and everything that one of them brings is verified and taken over
/// before the next is pulled once a small buffer is full; so the store sets the pace of the socket.
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
  private var askNext: UInt64 = 1
  var negotiations: [AskID: OpenNegotiation] = [:]
  var negentropy = NegentropySupport.unknown
  var windows = WindowSupport.unknown
  private var pages: [AskID: OpenPage] = [:]
  private var liveEvents: [Event] = []
  private var liveRejects: [Reject] = []

  private struct OpenPage {
    let tally: @Sendable () -> PageTally
    let overflow: PageOverflow
    var page: FetchedPage
    var unverified: [Event] = []
    /// Before which of those something came that could not be read.
    var unreadable: [Int] = []
    /// Changes when the page begins anew, so that a late verdict is not counted twice.
    var edition = 0
    let continuation: CheckedContinuation<FetchedPage, Never>
  }

  init(
    _ url: RelayURL, ports: Ports, signer: (any Signer)?, verifier: Verifier,
    sink: any RelayReportSink, limits: Limits
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

  /// Asks for one page of stored events and returns when it has ended, one way or another.
  func fetch(
    _ request: HistoryWalk.Request, overflow: @escaping PageOverflow = { _, _ in }
  ) async -> FetchedPage {
    let id = nextAsk()
    let now = ports.clock.now()
    let tally: @Sendable () -> PageTally = { request.tally(now: now) }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        pages[id] = OpenPage(
          tally: tally, overflow: overflow, page: FetchedPage(tally: tally(), end: .cancelled),
          continuation: continuation)
        let effects = step(Task.isCancelled ? .cancel(id) : .ask(id, request))
        if pages[id] != nil, Task.isCancelled { finish(id, .cancelled) }
        performLater(effects)
      }
    } onCancel: {
      _ = ports.tasks.spawn("cancel request") { [weak self] in await self?.cancel(id) }
    }
  }

  func nextAsk() -> AskID {
    defer { askNext += 1 }
    return AskID(askNext)
  }

  private func cancel(_ id: AskID) async { await take(.cancel(id)) }

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
    case .unreadable(let target, let error): await addUnreadable(target, error)
    case .restarted(let id): restart(id)
    case .answered(let id, let end): await answered(id, end)
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
      while let self, await self.readOne(link, mine) {}
      // It ends with the connection; where it was lost alone, the connection is of no use.
      await self?.ended(.closed(code: 1006, reason: "nobody reads it"), mine)
    }
    await take(.opened)
  }

  private func readOne(_ link: any TransportLink, _ mine: Int) async -> Bool {
    do throws(TransportError) {
      let frame = try await link.receive()
      guard mine == generation else { return false }
      isBusy = true
      await received(frame)
      isBusy = false
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

  // MARK: Pages

  private func add(_ event: Event, _ fit: ConnectionMachine.Fit, to id: AskID) async {
    switch fit {
    case .aboveUntil: pages[id]?.page.tally.addAboveUntil(event.position)
    case .belowSince: pages[id]?.page.tally.addBelowSince(event.position)
    case .inside:
      pages[id]?.unverified.append(event)
      guard let count = pages[id]?.unverified.count, count >= limits.verifyBatch else { return }
      await verify(id)
    }
  }

  private func verify(_ id: AskID) async {
    guard var open = pages[id], !open.unverified.isEmpty || !open.unreadable.isEmpty else { return }
    let (events, unreadable) = (open.unverified, open.unreadable)
    let edition = open.edition
    pages[id]?.unverified = []
    pages[id]?.unreadable = []
    let verdicts = await verifier.verify(events, on: ports.work)
    // The page may have ended or begun anew meanwhile.
    guard pages[id]?.edition == edition else { return }
    open = pages[id] ?? open
    pages[id] = nil
    Self.take(verdicts, of: events, unreadable: unreadable, into: &open.page)
    let spills = open.page.events.count >= limits.chunkEventsMax
    let (events1, rejected) = (open.page.events, open.page.rejected)
    if spills {
      open.page.events = []
      open.page.rejected = []
    }
    pages[id] = open
    if spills { await open.overflow(events1, rejected) }
  }

  /// - Parameter unreadable: Before which of the events something came that could not be read; its
  ///   place among its neighbours tells which span it leaves in doubt.
  private static func take(
    _ verdicts: [Result<VerifiedEvent, VerifyFailure>], of events: [Event], unreadable: [Int],
    into page: inout FetchedPage
  ) {
    var places = unreadable[...]
    for (index, (event, verdict)) in zip(events, verdicts).enumerated() {
      while places.first == index {
        places.removeFirst()
        page.tally.addUnreadable()
      }
      switch verdict {
      case .success(let verified):
        page.tally.addVerified(event.position)
        page.events.append(verified)
      case .failure(let failure):
        page.tally.addInvalid(event.position, isDated: failure == .signature)
        page.rejected.append(Reject(id: Text(event.id.hex), reason: failure.reason))
      }
    }
    for _ in places { page.tally.addUnreadable() }
  }

  private func addUnreadable(_ target: ConnectionMachine.Target, _ error: ScanError) async {
    let reject = Reject(reason: error.reason, detail: Text(error.description))
    switch target {
    case .live: if liveRejects.count < limits.chunkEventsMax { liveRejects.append(reject) }
    case .ask(let id):
      pages[id]?.page.rejected.append(reject)
      guard let open = pages[id] else { return }
      pages[id]?.unreadable.append(open.unverified.count)
      if open.unreadable.count >= limits.verifyBatch { await verify(id) }
    }
  }

  private func restart(_ id: AskID) {
    guard let open = pages[id] else { return }
    pages[id]?.page = FetchedPage(tally: open.tally(), end: .cancelled)
    pages[id]?.unverified = []
    pages[id]?.unreadable = []
    pages[id]?.edition += 1
  }

  private func answered(_ id: AskID, _ end: PageEnd) async {
    await verify(id)
    finish(id, end)
  }

  private func finish(_ id: AskID, _ end: PageEnd) {
    guard var open = pages.removeValue(forKey: id) else { return }
    open.page.end = end
    open.continuation.resume(returning: open.page)
  }

  // MARK: Live events

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
