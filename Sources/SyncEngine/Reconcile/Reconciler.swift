import EventLog
import Nostr
import NostrCrypto
import SyncCore

/// Brings one relay's history over, scope by scope, and writes down what that proves.
///
/// Which filters, which spans, which page next and what it proves are decided elsewhere
/// (`SyncScopes`, `SyncPlan`, `HistoryWalk`); here they are asked, stored and counted.
struct Reconciler: Sendable {
  let connection: RelayConnection
  let intake: Intake
  let desk: LogDesk
  let ports: Ports
  let limits: Limits
  /// The key that the relay knows us by, if any.
  let me: PublicKey?
  let tally: RoundTally

  private var relay: RelayURL { connection.url }

  /// Runs a plan to its end, or until the task is cancelled or the store fails.
  func run(_ plan: SyncPlan) async {
    // Asked once and before everything: every scope goes the one way or the other by it.
    _ = await connection.servesNegentropy()
    await introduce()
    switch plan.extent {
    case .everything: await runEverything(plan)
    case .community: await runCommunity(plan)
    case .groups(let groups):
      await walk(groups.flatMap(SyncScopes.group), plan)
      await walkProfiles(of: groups, plan)
    }
  }

  private func runEverything(_ plan: SyncPlan) async {
    let end = await walk(SyncScopes.everything, plan, isTrial: true)
    guard case .refused = end, await tally.keyNeeded == nil else { return }
    // A filter without kinds is refused, or answered with nothing: every kind that is known, in
    // classes, and every group.
    await walk(SyncScopes.everyKind(me: me), plan)
    await runCommunity(plan)
  }

  private func runCommunity(_ plan: SyncPlan) async {
    // The list is walked whole each time: it is short, and it says what else there is to walk.
    var whole = plan
    whole.isFull = true
    await walk([SyncScopes.groupList], whole)
    let known = await desk.groups(now: ports.clock.now())
    let groups = Set(await tally.groupsListed).union(known).sorted().prefix(limits.groupsMax)
    await walk(groups.flatMap(SyncScopes.group), plan)
    await walkProfiles(of: Array(groups), plan)
  }

  private func walkProfiles(of groups: [Text], _ plan: SyncPlan) async {
    if await connection.servesNegentropy() {
      let now = ports.clock.now()
      // Where the cache cannot tell, those of this round are asked for.
      let known = try? await desk.people(
        of: groups, since: now - limits.recentWindow, now: now, limit: limits.profilesMax)
      await tally.learn(groups: [], people: known ?? [])
    }
    let people = await tally.takePeople()
    let batches = stride(from: 0, to: people.count, by: limits.profilesPerRequest).map { start in
      Array(people[start..<min(start + limits.profilesPerRequest, people.count)])
    }
    var whole = plan
    whole.isFull = true
    whole.since = nil
    await walk(batches.map(SyncScopes.profiles), whole, isRecorded: false)
  }

  /// Walks several scopes, a few at a time.
  private func walk(_ scopes: [Scope], _ plan: SyncPlan, isRecorded: Bool = true) async {
    await tally.planned(scopes.count)
    await withTaskGroup(of: Void.self) { group in
      for (index, scope) in scopes.enumerated() {
        if index >= limits.walksMax { await group.next() }
        if await isOver { break }
        group.addTask { _ = await walk(scope, plan, isRecorded: isRecorded) }
      }
    }
  }

  private var isOver: Bool {
    get async { if Task.isCancelled { true } else { await tally.failure != nil } }
  }

  /// Some relays say `restricted` to whoever has not answered their challenge.
  private func asksForKey(_ refusal: Text) async -> Bool {
    switch RefusalClass(refusal) {
    case .authRequired: true
    case .restricted: await connection.machine.isChallenged
    default: false
    }
  }

  /// Without a key, asks for any one event first: a relay that shows a stranger something means an
  /// empty answer to say that there is nothing.
  private func introduce() async {
    guard me == nil, await !tally.hasDelivered(relay) else { return }
    do throws(LogError) {
      if try await desk.hasCoverage(of: relay) { return }
    } catch {
      return await tally.failed(error)
    }
    for filter in [Filter(limit: 1), Filter(kinds: [.groupMetadata, .message, .note], limit: 1)] {
      let page = await connection.fetch(HistoryWalk.Request(filter: filter)) { _, _ in }
      if page.tally.delivered > 0 { return await tally.delivered(by: relay, pageShown: 0) }
    }
  }

  /// Whether the relay has asked who we are, got no answer, and has shown nothing yet: some show a
  /// stranger nothing, and say so with an empty page.
  private func isStranger(_ coverage: CoverageMap) async -> Bool {
    guard me == nil, coverage.isEmpty, await !tally.hasDelivered(relay) else {
      return false
    }
    return await connection.machine.isChallenged
  }

  // MARK: One scope

  /// - Parameter isTrial: Whether a refusal is an answer and no gap.
  @discardableResult
  private func walk(
    _ scope: Scope, _ plan: SyncPlan, isRecorded: Bool = true, isTrial: Bool = false
  ) async -> HistoryWalk.End {
    if isTrial { await tally.planned(1) }
    do throws(LogError) {
      let coverage =
        isRecorded
        ? try await desk.coverage(relay: relay, scope: scope, asOf: ports.clock.now())
        : CoverageMap()
      var isUnserved = isTrial && coverage.isEmpty
      var isStranger = await isStranger(coverage)
      let now = ports.clock.now()
      var legs = plan.legs(over: coverage, now: now)
      let hasNegentropy = await connection.servesNegentropy()
      if hasNegentropy {
        let windows = WindowRun(
          scope: scope, isRecorded: isRecorded, floor: plan.since ?? 0, ceiling: plan.until,
          needsSight: isUnserved || isStranger, reconciler: self)
        let outcome = try await windows.run(plan.windows(over: coverage, now: now))
        if outcome.isSeen { (isUnserved, isStranger) = (false, false) }
        legs = SyncPlan.legs(legs, within: outcome.left)
      }
      let options = HistoryWalk.Options(
        limits: limits, information: await connection.machine.information,
        hasNegentropy: hasNegentropy, pageShown: await tally.pageShown(by: relay))
      let walk = HistoryWalk(scope.filter, legs: legs, options: options)
      let run = WalkRun(
        scope: scope, isRecorded: isRecorded, isTrial: isUnserved, isStranger: isStranger,
        floor: walk.floor, ceiling: walk.ceiling, reconciler: self)
      let end = try await run.run(walk)
      if case .refused(let text) = end, me == nil, await asksForKey(text) {
        await tally.needsKey(text)
      }
      var isWhole = end == .drained
      if isTrial, case .refused = end { isWhole = true }
      await tally.ended(scope, isWhole)
      return end
    } catch {
      await tally.failed(error)
      return .cancelled
    }
  }
}

/// One walk at one relay: the next page is asked for while the last one is being stored.
private struct WalkRun {
  let scope: Scope
  let isRecorded: Bool
  /// Whether it is not known yet that the relay serves this filter: then a refusal is no gap, and
  /// an answer without any event is taken for a silent refusal.
  let isTrial: Bool
  /// Whether an answer without any event may be meant for strangers only.
  let isStranger: Bool
  /// Events outside were asked for only because not every relay reads bounds as NIP-01 does.
  let floor: Timestamp
  let ceiling: Timestamp?
  let reconciler: Reconciler

  private static let silentlyRefused = HistoryWalk.End.refused(
    "no event for a filter without kinds")

  private var relay: RelayURL { reconciler.connection.url }

  func run(_ start: HistoryWalk) async throws(LogError) -> HistoryWalk.End {
    let outcome = await withTaskGroup(of: LogError?.self) { group in
      var walk = start
      var disconnects = 0
      var failure: LogError?
      var isStoring = false
      var isServed = !isTrial && !isStranger
      while failure == nil {
        if Task.isCancelled { _ = walk.stop(.cancelled, why: "stopped before the end") }
        let step = walk.next(now: reconciler.ports.clock.now())
        if case .reconcile(let second) = step {
          let findings = walk.reconciled(await hasCompared(second))
          failure = await reconciler.store(batch(nil, findings))
          continue
        }
        guard case .ask(let request) = step else { break }
        let page = await fetch(request)
        var findings = walk.received(page.tally, page.end)
        if page.tally.delivered > 0 {
          await reconciler.tally.delivered(by: relay, pageShown: walk.pageShown)
        }
        if page.end == .disconnected {
          disconnects = page.tally.delivered > 0 ? 0 : disconnects + 1
          if disconnects >= reconciler.limits.walkDisconnectsMax {
            findings = walk.stop(.disconnected, why: "the connection was lost")
          }
        }
        // At most one page is being stored while the next one comes in.
        if isStoring, let error = await group.next() { failure = error }
        isServed = isServed || page.tally.delivered > 0
        if !isServed {
          // Nothing is proved by a filter that may not be served at all.
          findings.proofs = []
        }
        if !isServed, isTrial {
          if walk.end == .drained { return (end: Self.silentlyRefused, failure: failure) }
          if case .refused(let why) = walk.end { return (end: .refused(why), failure: failure) }
        }
        let batch = batch(page, findings)
        isStoring = true
        group.addTask { await reconciler.store(batch) }
      }
      if isStoring, let error = await group.next(), failure == nil { failure = error }
      return (end: walk.end ?? HistoryWalk.End.cancelled, failure: failure)
    }
    if let failure = outcome.failure { throw failure }
    return outcome.end
  }

  /// Whether a second too dense for pages was read whole by NIP-77.
  private func hasCompared(_ second: Timestamp) async -> Bool {
    let run = WindowRun(
      scope: scope, isRecorded: false, floor: floor, ceiling: ceiling, needsSight: true,
      reconciler: reconciler)
    // What goes wrong with the store is told to the tally, which ends the walk.
    let outcome = try? await run.run([HistoryWalk.Leg(from: second, to: second)])
    return outcome?.isProved ?? false
  }

  private func fetch(_ request: HistoryWalk.Request) async -> FetchedPage {
    var page = await fetchOnce(request)
    // Nothing is missing where the genuine event is held, whoever served it.
    var held: Set<EventID> = []
    for id in page.tally.doubts.compactMap(\.id).prefix(reconciler.limits.pageLimit) {
      // A log that cannot be read leaves the doubt.
      if (try? await reconciler.desk.event(id)) != nil { held.insert(id) }
    }
    page.tally.dismissDoubts(held)
    return page
  }

  private func fetchOnce(_ request: HistoryWalk.Request) async -> FetchedPage {
    await reconciler.connection.fetch(request) { events, rejected in
      // A page beyond what is kept in memory is stored as it comes; it proves nothing before EOSE.
      _ = await reconciler.store(
        IngestBatch(
          events: wanted(events), rejected: rejected, source: relay,
          receivedAt: reconciler.ports.clock.now()))
    }
  }

  private func wanted(_ events: [VerifiedEvent]) -> [VerifiedEvent] {
    guard floor > 0 || ceiling != nil else { return events }
    return events.filter { verified in
      let date = verified.event.createdAt
      return floor <= date && ceiling.map { date <= $0 } ?? true
    }
  }

  private func batch(_ page: FetchedPage?, _ findings: HistoryWalk.Findings) -> IngestBatch {
    reconciler.batch(
      wanted(page?.events ?? []), page?.rejected ?? [], findings, scope, isRecorded: isRecorded)
  }
}

extension Reconciler {
  /// Events with what their arrival proved about a scope.
  func batch(
    _ events: [VerifiedEvent], _ rejected: [Reject], _ findings: HistoryWalk.Findings,
    _ scope: Scope, isRecorded: Bool, by method: ProofMethod = .paging
  ) -> IngestBatch {
    let now = ports.clock.now()
    let gaps = findings.gaps.map { gap in
      CoverageGap(
        relay: relay, scope: scope, from: gap.span.from, to: gap.span.to, why: gap.why)
    }
    let proofs = findings.proofs.map { span in
      CoverageProof(
        relay: relay, scope: scope,
        interval: CoverageInterval(from: span.from, to: span.to, provedAt: now, method: method))
    }
    return IngestBatch(
      events: events, rejected: rejected, source: relay, receivedAt: now,
      proofs: isRecorded ? proofs : [], gaps: gaps)
  }

  /// Stores a batch and counts it.
  ///
  /// - Returns: What went wrong with the store.
  func store(_ batch: IngestBatch, via method: ProofMethod = .paging) async -> LogError? {
    await tally.learn(
      groups: batch.events.compactMap { verified in
        verified.event.kind == .groupMetadata ? verified.event.tags.firstValue("d")?.owned() : nil
      },
      people: Self.people(in: batch.events))
    if batch.events.isEmpty, batch.rejected.isEmpty, batch.proofs.isEmpty, batch.gaps.isEmpty {
      return nil
    }
    do throws(LogError) {
      await tally.stored(batch, try await intake.store(batch), via: method)
      return nil
    } catch {
      await tally.failed(error)
      return error
    }
  }

  /// Who wrote, and who is on a roster.
  private static func people(in events: [VerifiedEvent]) -> [PublicKey] {
    var people: Set<PublicKey> = []
    for verified in events {
      people.insert(verified.event.pubkey)
      guard verified.event.kind == .groupMembers || verified.event.kind == .groupAdmins else {
        continue
      }
      for tag in verified.event.tags where tag.letter == UInt8(ascii: "p") {
        if let key = tag.bytes32(1) { people.insert(PublicKey(key)) }
      }
    }
    return people.sorted()
  }
}
