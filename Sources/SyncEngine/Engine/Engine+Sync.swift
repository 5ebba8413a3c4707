import EventLog
import Nostr
import NostrCrypto
public import SyncCore

extension Engine {
  /// Reconciles once with every relay that can be reached, settles the outbox as far as it goes,
  /// and says what came of it.
  ///
  /// It works beside `start` as well as without: then the connections are left open.
  public func syncOnce(_ plan: SyncPlan) async throws(EngineError) -> SyncSummary {
    guard await prepare() else { throw .stopped }
    guard !relays.isEmpty else { throw .noRelay }
    let before = await outboxEnds()
    let deadline = ports.clock.uptime() + plan.failAfter
    let opened = try await reachRelays(until: deadline)
    rounds = [:]
    var tallies: [(relay: RelayURL, tally: RoundTally)] = []
    for relay in opened { tallies.append((relay: relay, tally: tally(for: relay))) }
    let isSilent = await runRounds(plan.provingAll, tallies, heardBy: deadline)
    for (_, tally) in tallies { if let failure = await tally.failure { throw .store(failure) } }
    if let failure = storeFailure { throw .store(failure) }
    try await checkForKey(tallies)
    if Task.isCancelled || isStopped { throw .stopped }
    let reached = await reached(among: opened)
    if isSilent || reached.isEmpty { throw .noRelayReached(await reasons()) }
    await settleOutbox(at: reached)
    var summary = SyncSummary()
    var proofs: [RoundProof] = []
    for (_, tally) in tallies {
      summary.add(await tally.summary)
      proofs.append(await tally.proof)
    }
    summary.isComplete = RoundProof.isComplete(proofs)
    await count(&summary, since: before)
    for relay in relays where !reached.contains(relay) {
      summary.relays[relay] = await reason(of: relay)
      // A replica may lag behind; what the home has taken in since only the home can tell.
      if relay == relays.first { summary.isComplete = false }
    }
    for relay in reached { summary.relays[relay] = Text?.none }
    await store.caughtUp()
    if let damage = await store.logDamage() { throw .store(damage) }
    if summary.isComplete { try await confirmSound() }
    return summary
  }

  private enum Watched { case round, silence, talk }

  /// Runs a round at each relay, and ends them all where by a deadline none of them has said anything.
  ///
  /// - Returns: Whether they were ended so.
  private func runRounds(
    _ plan: SyncPlan, _ tallies: [(relay: RelayURL, tally: RoundTally)], heardBy deadline: Duration
  ) async -> Bool {
    await withTaskGroup(of: Watched.self) { group in
      for (relay, tally) in tallies {
        group.addTask {
          await self.runRound(plan, relay, tally)
          return .round
        }
      }
      group.addTask {
        _ = await self.wait(until: deadline) { false }
        return await self.hasSpoken(tallies.map(\.relay)) ? .talk : .silence
      }
      var running = tallies.count
      var isSilent = false
      while running > 0, !isSilent, let ended = await group.next() {
        switch ended {
        case .round: running -= 1
        case .silence: isSilent = true
        case .talk: break
        }
      }
      group.cancelAll()
      return isSilent
    }
  }

  /// Whether one of them has said anything at all.
  private func hasSpoken(_ relays: [RelayURL]) async -> Bool {
    for relay in relays where await links[relay]?.connection.machine.hasSpoken == true {
      return true
    }
    return false
  }

  /// Those that have not left everything unanswered. That a socket opens says little.
  private func reached(among opened: [RelayURL]) async -> [RelayURL] {
    var reached: [RelayURL] = []
    for relay in opened where await links[relay]?.connection.machine.isMute == false {
      reached.append(relay)
    }
    return reached
  }

  /// Why each relay was not reached.
  private func reasons() async -> [(relay: RelayURL, why: Text)] {
    var reasons: [(relay: RelayURL, why: Text)] = []
    for relay in relays { reasons.append((relay: relay, why: await reason(of: relay))) }
    return reasons
  }

  private func reason(of relay: RelayURL) async -> Text {
    await links[relay]?.connection.machine.whyUnreached ?? "no answer"
  }

  /// What is damaged is not complete, whatever was brought over.
  private func confirmSound() async throws(EngineError) {
    do throws(LogError) {
      try await store.confirmSound()
    } catch {
      throw error == .closed ? .stopped : .store(error)
    }
  }

  /// Throws where there is no key and every relay wants one; one that does without is enough.
  private func checkForKey(
    _ tallies: [(relay: RelayURL, tally: RoundTally)]
  ) async throws(EngineError) {
    var refusal: EngineError?
    var received = 0
    var isOneOpen = false
    for (relay, tally) in tallies {
      received += await tally.progress.received
      if let why = await tally.keyNeeded {
        refusal = refusal ?? .keyNeeded(relay, why)
      } else {
        isOneOpen = true
      }
    }
    if isOneOpen && received > 0 { return }
    if received == 0, refusal == nil, let relay = try await challenger(among: tallies) {
      refusal = .keyNeeded(relay, "it asks for AUTH and shows nothing without")
    }
    if let refusal { throw refusal }
  }

  /// Waits until relays that were reached have nothing more to take; the others are not waited for.
  /// However many messages there are: it ends before only when none has come to its end for a while.
  private func settleOutbox(at reached: [RelayURL]) async {
    var before = await outboxEnds()
    while true {
      let deadline = ports.clock.uptime() + limits.settlePatience
      let known = before
      let hasMoved = await wait(until: deadline) {
        if await self.isOutboxAtRest(at: reached) { return true }
        return await self.outboxEnds() != known
      }
      before = await outboxEnds()
      guard hasMoved, before != known, await !isOutboxAtRest(at: reached) else { return }
    }
  }

  /// A relay that has asked who we are and shown nothing, where there is no key to say it with.
  ///
  /// A relay of which something was proved before does serve strangers.
  private func challenger(
    among tallies: [(relay: RelayURL, tally: RoundTally)]
  ) async throws(EngineError) -> RelayURL? {
    guard me == nil else { return nil }
    do throws(LogError) {
      for (relay, tally) in tallies where try await !desk.hasCoverage(of: relay) {
        guard await !tally.hasDelivered(relay) else { continue }
        if await links[relay]?.connection.machine.isChallenged == true { return relay }
      }
    } catch {
      throw .store(error)
    }
    return nil
  }

  /// - Returns: The relays that are usable now; waits for the first of them, and for the others
  ///   no longer than it takes to see that they are not there.
  private func reachRelays(until deadline: Duration) async throws(EngineError) -> [RelayURL] {
    if !isOnline { await goOnline() }
    _ = await wait(until: deadline) {
      relays.allSatisfy { isReady($0) || isRefused($0) }
        || relays.contains(where: isReady)
          && relays.allSatisfy { isReady($0) || hasFailed($0) }
    }
    let reached = relays.filter(isReady)
    if !reached.isEmpty {
      await waitForInformation(reached, until: deadline)
      return reached
    }
    if Task.isCancelled || isStopped { throw .stopped }
    throw .noRelayReached(await reasons())
  }

  private func isReady(_ relay: RelayURL) -> Bool { links[relay]?.state == .ready }

  private func isRefused(_ relay: RelayURL) -> Bool {
    if case .refused = links[relay]?.state { true } else { false }
  }

  private func hasFailed(_ relay: RelayURL) -> Bool {
    if case .backingOff = links[relay]?.state { true } else { isRefused(relay) }
  }

  /// Hints make walks shorter; a relay without a document is not waited for.
  private func waitForInformation(_ reached: [RelayURL], until deadline: Duration) async {
    let deadline = min(deadline, ports.clock.uptime() + limits.challengeGrace)
    _ = await wait(until: deadline) { reached.allSatisfy { links[$0]?.hasAsked == true } }
  }

  func reconciler(_ relay: RelayURL, _ tally: RoundTally) -> Reconciler? {
    guard let link = links[relay] else { return nil }
    var intake = intake
    intake.onNew = { [weak self] in await self?.found($0, at: relay) }
    var reconciler = Reconciler(
      connection: link.connection, intake: intake, desk: desk, ports: ports, limits: limits,
      me: me, tally: tally)
    if isFollowing {
      // Live before history: what is said while history is read is heard at once.
      reconciler.onGroups = { [weak self] in await self?.wantFeeds(relay, listed: $0) }
    }
    return reconciler
  }

  private func tally(for relay: RelayURL) -> RoundTally {
    RoundTally(limits: limits) { [weak self] in await self?.advanced($0, at: relay) }
  }

  private func advanced(_ round: SyncProgress, at relay: RelayURL) {
    rounds[relay] = round
    progress = rounds.values.reduce(into: SyncProgress()) { $0.add($1) }
    changed(.progress(progress))
  }

  // MARK: The outbox in a summary

  private func outboxEnds() async -> (sent: Int, failed: Int) {
    var ends = (sent: 0, failed: 0)
    for relay in relays {
      guard let pump = links[relay]?.pump else { continue }
      ends.sent += await pump.sent
      ends.failed += await pump.failed
    }
    return ends
  }

  private func count(
    _ summary: inout SyncSummary, since before: (sent: Int, failed: Int)
  ) async {
    let after = await outboxEnds()
    summary.sent = after.sent - before.sent
    for (state, count) in outboxCounts {
      if state.isOpen { summary.queued += count } else { summary.failed += count }
    }
  }

  // MARK: Following

  func wantFeeds() async {
    for relay in relays { await wantFeeds(relay) }
  }

  /// Tells a connection what is wanted live. Wanting what is wanted already changes nothing.
  ///
  /// - Parameter listed: Groups that the relay has named and that the copy may not know yet.
  private func wantFeeds(_ relay: RelayURL, listed: [Text] = []) async {
    guard let connection = links[relay]?.connection else { return }
    if options.isEverything {
      return await want([SyncScopes.liveEverything(limit: limits.liveLimit)], connection, true)
    }
    let groups: [Text]
    if let named = options.groups {
      groups = named
    } else {
      groups = Set(await desk.groups(now: ports.clock.now())).union(listed).sorted()
    }
    // A channel may have to take turns; what tells of new channels may not.
    await want(SyncScopes.liveGlobals(me: me, limit: limits.liveLimit), connection, true)
    await want(
      groups.prefix(limits.groupsMax).map { SyncScopes.liveGroup($0, limit: limits.liveLimit) },
      connection, false)
  }

  private func want(
    _ feeds: [(SubscriptionName, [Filter])], _ connection: RelayConnection, _ isPinned: Bool
  ) async {
    for (name, filters) in feeds { links[connection.url]?.feeds.want(name, filters) }
    await connection.want(feeds, isPinned: isPinned)
  }

  private var followedExtent: SyncPlan.Extent {
    if options.isEverything { return .everything }
    return options.groups.map { .groups($0) } ?? .community
  }

  /// Reconciles a relay whenever it has become ready, when something calls for it, and on a timer.
  func follow(_ relay: RelayURL) async {
    var reconciledAt: Duration?
    while !Task.isCancelled, !isStopped, storeFailure == nil {
      guard await wait(until: nil, { isReady(relay) || storeFailure != nil }),
        storeFailure == nil
      else { return }
      let reading = links[relay]?.readings ?? 0
      links[relay]?.isDue = false
      links[relay]?.groupsDue = []
      let isFirst = reconciledAt == nil
      var plan = SyncPlan(
        followedExtent, recentWindow: isFirst ? limits.recentWindow : limits.resumeOverlap)
      plan.provesAll = isFirst
      plan.schedule = ReconcileSchedule()
      reconciledAt = ports.clock.uptime()
      let unsettled = await runRound(plan, relay)
      // Taken before anybody can hear that the round is over.
      let endedAt = ports.clock.uptime()
      links[relay]?.unsettled = unsettled
      // A group that was found in this round is live only with a feed of its own.
      await wantFeeds(relay)
      // A round through which the connection did not hold, or in which the relay left something
      // unanswered, has caught up with nothing.
      if links[relay]?.readings == reading, isReady(relay), unsettled == nil {
        links[relay]?.caughtUp = reading
      }
      changed(.relay(relay))
      await waitForRound(relay, reading, after: endedAt)
    }
  }

  /// Waits until all of a relay is to be reconciled again; groups that may have missed something
  /// are looked after meanwhile.
  ///
  /// - Parameter endedAt: When the last round was over.
  private func waitForRound(
    _ relay: RelayURL, _ reading: Int, after endedAt: Duration
  ) async {
    let isDeaf = links[relay]?.feeds.isDeaf(at: ports.clock.now()) == true
    let isUnsettled = links[relay]?.unsettled != nil
    var pause = isDeaf ? limits.deafInterval : limits.reconcileInterval
    if isUnsettled { pause = min(pause, limits.unsettledInterval) }
    let end = endedAt + pause
    while !Task.isCancelled, !isStopped {
      let isWoken = await wait(until: end) {
        links[relay]?.isDue == true || isReady(relay) && links[relay]?.readings != reading
          || links[relay]?.groupsDue.isEmpty == false || storeFailure != nil
      }
      let groups = links[relay]?.groupsDue.sorted() ?? []
      guard isWoken, links[relay]?.isDue == false, links[relay]?.readings == reading,
        storeFailure == nil, !groups.isEmpty, !options.isEverything
      else { return }
      links[relay]?.groupsDue = []
      _ = await runRound(SyncPlan(.groups(groups), recentWindow: limits.resumeOverlap), relay)
    }
  }

  /// - Returns: Why something has not been read, where asking again soon may help.
  private func runRound(_ plan: SyncPlan, _ relay: RelayURL) async -> Text? {
    let tally = tally(for: relay)
    await runRound(plan, relay, tally)
    if let failure = await tally.failure { storeFailed(failure) }
    return await tally.unsettled
  }

  /// Runs one round at one relay. What was proved is what the relay served to one key: for another
  /// key all of it is proved anew.
  private func runRound(_ plan: SyncPlan, _ relay: RelayURL, _ tally: RoundTally) async {
    guard let reconciler = reconciler(relay, tally) else { return }
    let reader = Array((me?.hex ?? "nobody").utf8)
    let setting = "sync.reader \(relay)"
    do throws(LogError) {
      let before = try await desk.setting(setting)
      var plan = plan
      if let before, before != reader { plan.isFull = true }
      await reconciler.run(plan)
      if before != reader, !Task.isCancelled, await tally.failure == nil {
        try await store.log.setSetting(setting, reader)
      }
    } catch {
      await tally.failed(error)
    }
  }

  // MARK: Waiting

  /// Waits until nothing is queued or being sent.
  public func waitOutbox(for patience: Duration) async -> WaitOutcome {
    guard await prepare() else { return .impossible("stopped") }
    let deadline = ports.clock.uptime() + patience
    let isReached = await wait(until: deadline) { await self.isOutboxAtRest(at: relays) }
    if let failure = storeFailure { return .impossible(Text(failure.description)) }
    if isReached { return .reached }
    return isOnline ? .timedOut : .impossible("offline")
  }

  private func isOutboxAtRest(at relays: [RelayURL]) async -> Bool {
    if storeFailure != nil { return true }
    for relay in relays {
      if let pump = links[relay]?.pump, await !pump.isAtRest { return false }
    }
    return true
  }

  /// Waits until every wanted feed is live and caught up.
  public func waitLive(for patience: Duration) async -> WaitOutcome {
    guard await prepare() else { return .impossible("stopped") }
    if relays.isEmpty { return .impossible("the community has no relay") }
    if !isOnline { return .impossible("offline") }
    let deadline = ports.clock.uptime() + patience
    let isReached = await wait(until: deadline) {
      if storeFailure != nil || relays.allSatisfy(isRefused) { return true }
      return await status().isLive
    }
    if let failure = storeFailure { return .impossible(Text(failure.description)) }
    if relays.allSatisfy(isRefused), let home = relays.first,
      case .refused(let why) = links[home]?.state
    {
      return .impossible(why)
    }
    return isReached ? .reached : .timedOut
  }

  private func heardAt(_ machine: ConnectionMachine) -> Timestamp? {
    guard machine.state == .ready else { return nil }
    let silence = ports.clock.uptime() - machine.lastHeard
    return ports.clock.now() - max(silence.components.seconds, 0)
  }

  /// What the engine is doing now.
  public func status() async -> EngineStatus {
    var statuses: [RelayStatus] = []
    for relay in relays {
      guard let connection = links[relay]?.connection else { continue }
      let machine = await connection.machine
      guard let link = links[relay] else { continue }
      statuses.append(
        RelayStatus(
          url: relay, state: machine.state, since: link.since,
          wasReached: link.wasReached || machine.state.isAnswer, lastError: machine.lastError,
          isAuthenticated: machine.isAuthenticated, information: machine.information,
          faults: machine.faults,
          subscriptions: machine.wanted.compactMap { name in
            machine.subscription(name).map { SubscriptionStatus(name: name, state: $0) }
          },
          isCaughtUp: link.caughtUp == link.readings && link.readings > 0,
          unsettled: link.unsettled, notice: link.notice, offeredSelf: link.offeredSelf,
          heardAt: heardAt(machine), clockSkew: machine.clockSkew,
          frameRate: machine.budget.rate,
          whyUnreached: machine.state == .ready && !machine.isMute ? nil : machine.whyUnreached))
    }
    return EngineStatus(
      isOnline: isOnline, relays: statuses, outbox: outboxCounts, progress: progress)
  }
}
