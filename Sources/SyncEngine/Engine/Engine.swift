import EventLog
public import Nostr
public import NostrCrypto
import Platform
public import SyncCore

/// One community at work: its connections, its reconciliation and its outbox.
///
/// Reading goes to the store's views and needs no engine. The engine brings in what relays have,
/// and sends what was written here, now or as soon as it can.
public actor Engine: RelayReportSink {
  /// Where everything is kept.
  public nonisolated let store: CommunityStore
  /// The first is the home, to which everything is written.
  public nonisolated let relays: [RelayURL]
  public nonisolated let options: EngineOptions
  /// What changes, as it does; the newest `Limits.changesMax` are kept for a slow reader.
  public nonisolated let changes: AsyncStream<EngineChange>

  let ports: Ports
  let signer: (any Signer)?
  let limits: Limits
  let desk: LogDesk
  let intake: Intake
  private let verifier: Verifier
  private let bell: AsyncStream<EngineChange>.Continuation

  var me: PublicKey?
  var links: [RelayURL: Link] = [:]
  var followers: [any SpawnedTask] = []
  var watcher: (any SpawnedTask)?
  /// Whether every relay is to be followed.
  var isFollowing = false
  var isStarted = false
  var isStopped = false
  var isOnline = false
  var progress = SyncProgress()
  /// What the rounds that run, or ran last, have done, by relay.
  var rounds: [RelayURL: SyncProgress] = [:]
  /// Keys that documents name and on which no verdict was given yet, at most one a document read.
  var selvesHeard: [(relay: RelayURL, key: PublicKey)] = []
  var isJudgingSelf = false
  var storeFailure: LogError?
  var outboxCounts: [DeliveryState: Int] = [:]
  /// The dates of the versions of one's own events that this process has written last.
  var versionDates: VersionDates
  private var waiters = Waiters()
  private var waitAlarm = Alarm()

  /// One relay's part.
  struct Link {
    let connection: RelayConnection
    let pump: OutboxPump?
    var state = ConnectionState.stopped
    var since: Timestamp
    /// Whether it was ready once or refused the key, whatever came later.
    var wasReached = false
    var information: RelayInformation?
    /// Whether its document was asked for and came or did not.
    var hasAsked = false
    var notice: Text?
    /// A key that its document names and that is not the accepted one.
    var offeredSelf: PublicKey?
    /// Counts the times it became ready.
    var readings = 0
    /// The one up to which everything wanted was reconciled.
    var caughtUp = 0
    /// Why the last round did not catch up.
    var unsettled: Text?
    /// Something happened that makes reconciling worthwhile now.
    var isDue = false
    /// Groups of which something may have been missed.
    var groupsDue: Set<Text> = []
    var feeds = FeedWatch()
    var isFollowed = false
  }

  /// - Parameters:
  ///   - relays: The community's; the first is its home.
  ///   - signer: Answers challenges and signs what is written; nil for reading alone.
  ///   - executor: Runs reads that may wait for the disk; nil makes a thread for them.
  ///   - verifier: Vouches for what relays send.
  public init(
    store: CommunityStore, relays: [RelayURL], ports: Ports, signer: (any Signer)?,
    options: EngineOptions = EngineOptions(), executor: (any SerialExecutor)? = nil,
    verifier: Verifier = Verifier()
  ) {
    self.verifier = verifier
    self.store = store
    self.relays = relays
    self.ports = ports
    self.signer = signer
    self.options = options
    var limits = options.limits
    // Where nothing is ever written no quota has to be kept for it.
    if options.isReadOnly { limits.budgetPatience = .zero }
    self.limits = limits
    versionDates = VersionDates(countMax: limits.versionDatesMax)
    desk = LogDesk(
      reader: store.reader, views: store.views, executor: executor ?? ThreadExecutor())
    intake = Intake(store: store, clock: ports.clock, limits: options.limits)
    (changes, bell) = AsyncStream.makeStream(
      bufferingPolicy: .bufferingNewest(options.limits.changesMax))
  }

  // MARK: Start and end

  /// Connects, follows every relay, and sends what waits. Does nothing when it runs already.
  public func start() async {
    guard await prepare() else { return }
    guard !isFollowing, !isStopped else { return }
    isFollowing = true
    await wantFeeds()
    for relay in relays { startFollowing(relay) }
  }

  /// Ends everything and waits for it; the engine cannot be used again.
  public func stop() async {
    guard !isStopped else { return }
    isStopped = true
    wake()
    for follower in followers { follower.cancel() }
    watcher?.cancel()
    for relay in relays { await links[relay]?.pump?.stop() }
    for relay in relays { await links[relay]?.connection.stop() }
    for follower in followers { await follower.finished() }
    await watcher?.finished()
    waitAlarm.cancel()
    followers = []
    bell.finish()
  }

  /// Drops every connection until `goOnline`; writing goes on into the outbox.
  public func goOffline() async {
    isOnline = false
    for relay in relays { await links[relay]?.connection.suspend() }
    changed(nil)
  }

  /// Connects again.
  public func goOnline() async {
    guard !isStopped else { return }
    isOnline = true
    for relay in relays {
      await links[relay]?.connection.start()
      await links[relay]?.connection.resume()
    }
    changed(nil)
  }

  /// The machine woke or the network came back: connections are tried and checked at once.
  public func networkChanged() async {
    for relay in relays where isOnline { await links[relay]?.connection.resume() }
  }

  /// Makes the connections and loads the outbox, once.
  ///
  /// - Returns: Whether the engine can be used.
  func prepare() async -> Bool {
    if isStopped { return false }
    if isStarted { return true }
    isStarted = true
    // A signer that does not say who it is cannot answer a challenge either.
    me = try? await signer?.publicKey()
    var lessons: [RelayURL: RelayLessons] = [:]
    for relay in relays {
      do throws(LogError) {
        lessons[relay] = try await desk.lessons(of: relay)
      } catch {
        storeFailure = error
      }
    }
    // All at once: whoever asks meanwhile sees none of them or all.
    for relay in relays { links[relay] = link(relay, lessons[relay] ?? RelayLessons()) }
    for relay in relays {
      do throws(LogError) {
        try await links[relay]?.pump?.load()
      } catch {
        storeFailure = error
      }
    }
    watcher = ports.tasks.spawn("engine watch") { [weak self] in await self?.watch() }
    isOnline = !options.isOffline
    guard isOnline else { return true }
    for relay in relays { await links[relay]?.connection.start() }
    return true
  }

  private func link(_ relay: RelayURL, _ lessons: RelayLessons) -> Link {
    let connection = RelayConnection(
      relay, ports: ports, signer: signer, verifier: verifier, sink: self, limits: limits,
      lessons: lessons)
    var pump: OutboxPump?
    if !options.isReadOnly {
      pump = OutboxPump(
        connection: connection, store: store, desk: desk, ports: ports,
        redater: signer.map {
          Redater(store: store, desk: desk, signer: $0, clock: ports.clock, limits: limits)
        }, limits: limits, isRedating: options.isRedating
      ) { [weak self] in await self?.outboxChanged() }
    }
    return Link(connection: connection, pump: pump, since: ports.clock.now())
  }

  // MARK: What connections report

  func take(_ report: RelayReport, from relay: RelayURL) async {
    switch report {
    case .state(let state): await entered(state, relay)
    case .information(let information): await informed(information, relay)
    case .subscription(let name, let state): feedChanged(name, state, relay)
    case .resumed(let name): feedResumed(name, relay)
    case .live(let events, let rejected): await arrived(events, rejected, relay)
    case .verdict(let id, let isAccepted, let text):
      await links[relay]?.pump?.take(.verdict(id, accepted: isAccepted, text))
    case .unanswered(let id, let isHanded, let why):
      await links[relay]?.pump?.take(.unanswered(id, isHanded: isHanded, why))
    case .notice(let text):
      links[relay]?.notice = text
      changed(.relay(relay))
    case .faults(let counts): await note(counts, of: relay)
    case .lessons(let lessons): await keep(lessons, of: relay)
    }
  }

  private func note(
    _ faults: [(reason: PeerFaults.Reason, count: Int)], of relay: RelayURL
  ) async {
    do throws(LogError) {
      try await store.log.addFaults(
        faults.map { (reason: $0.reason.rawValue, count: $0.count) }, of: relay)
    } catch {
      storeFailed(error)
    }
  }

  private func keep(_ lessons: RelayLessons, of relay: RelayURL) async {
    do throws(LogError) {
      try await store.log.setLessons(lessons, of: relay)
    } catch {
      storeFailed(error)
    }
  }

  /// Writes down what relays did wrong so far, so that the log tells all of it.
  public func settleFaults() async {
    for relay in relays { await links[relay]?.connection.reportFaults() }
  }

  private func entered(_ state: ConnectionState, _ relay: RelayURL) async {
    let wasReady = links[relay]?.state == .ready
    links[relay]?.state = state
    links[relay]?.since = ports.clock.now()
    if state.isAnswer { links[relay]?.wasReached = true }
    if state == .ready {
      links[relay]?.readings += 1
      await links[relay]?.pump?.take(.connected)
    } else if wasReady {
      await links[relay]?.pump?.take(.disconnected)
    }
    changed(.relay(relay))
  }

  private func informed(_ information: RelayInformation?, _ relay: RelayURL) async {
    links[relay]?.information = information
    links[relay]?.hasAsked = true
    guard let information else { return changed(.relay(relay)) }
    await links[relay]?.pump?.take(.dateWindow(information.dateWindow))
    if let key = information.selfKey { await heard(key, from: relay) }
    changed(.relay(relay))
  }

  private func arrived(
    _ events: [VerifiedEvent], _ rejected: [Reject], _ relay: RelayURL
  ) async {
    do throws(LogError) {
      let result = try await intake.store(
        IngestBatch(
          events: events, rejected: rejected, source: relay, receivedAt: ports.clock.now()))
      if result.appended > 0 { changed(.log(result.head)) }
      await react(to: events, result, relay)
    } catch {
      storeFailed(error)
    }
  }

  private func react(
    to events: [VerifiedEvent], _ result: IngestResult, _ relay: RelayURL
  ) async {
    var fresh: [Event] = []
    for (verified, admission) in zip(events, result.admissions) {
      let event = verified.event
      if event.pubkey == me { await links[relay]?.pump?.take(.echoed(event.id)) }
      guard case .appended = admission else { continue }
      fresh.append(event)
      switch event.kind {
      case .memberAdded, .memberRemoved, .groupMetadata: links[relay]?.isDue = true
      default: break
      }
    }
    await readmit(by: fresh, at: relay)
    wake()
  }

  private func outboxChanged() async {
    var counts: [DeliveryState: Int] = [:]
    for relay in relays {
      guard let pump = links[relay]?.pump else { continue }
      if let error = await pump.failure { storeFailed(error) }
      for delivery in await pump.policy.deliveries where delivery.state != .sent {
        counts[delivery.state, default: 0] += 1
      }
    }
    outboxCounts = counts
    changed(.outbox)
  }

  func storeFailed(_ error: LogError) {
    storeFailure = storeFailure ?? error
    wake()
  }

  // MARK: Changes

  func changed(_ change: EngineChange?) {
    if let change { bell.yield(change) }
    wake()
  }

  func wake() { waiters.releaseAll() }

  /// Waits for the next change of anything, at most until `deadline`; may return earlier.
  func nextChange(until deadline: Duration?) async {
    if Task.isCancelled || isStopped { return }
    if let deadline {
      // One for all who wait: a sleep that is cancelled keeps its memory until it would have ended,
      // and whoever follows a relay begins a long one at each change.
      waitAlarm.set(deadline, "engine wait", ports) { [weak self] in await self?.waitDue() }
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let id = waiters.add(continuation)
        if Task.isCancelled { waiters.release(id) }
      }
    } onCancel: {
      _ = ports.tasks.spawn("engine wait ends") { [weak self] in await self?.wake() }
    }
  }

  private func waitDue() {
    waitAlarm.rang()
    wake()
  }

  /// Waits until `isTrue`, at most until `deadline`.
  ///
  /// - Returns: Whether it became true.
  func wait(until deadline: Duration?, _ isTrue: () async -> Bool) async -> Bool {
    while true {
      if await isTrue() { return true }
      if Task.isCancelled || isStopped { return false }
      if let deadline, ports.clock.uptime() >= deadline { return false }
      await nextChange(until: deadline)
    }
  }
}
