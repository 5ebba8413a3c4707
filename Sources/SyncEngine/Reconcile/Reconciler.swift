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
  /// Hears which groups there are, before any of their history is asked for.
  var onGroups: (@Sendable ([Text]) async -> Void)?

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
      await walkGroups(groups, plan)
      await walkProfiles(of: groups, plan)
    }
  }

  private func runEverything(_ plan: SyncPlan) async {
    let end = await walk(SyncScopes.everything, plan, isTrial: true)
    guard case .refused = end, await tally.keyNeeded == nil else {
      // Within bounds, what is said of the groups and the people of those events may be missing.
      if plan.isBounded, end == .drained { await walkProfiles(of: walkGroupStates(plan), plan) }
      return
    }
    // A filter without kinds is refused, or answered with nothing: every kind that is known, in
    // classes, and every group.
    await walk(SyncScopes.everyKind(me: me), plan)
    await runCommunity(plan)
  }

  private func runCommunity(_ plan: SyncPlan) async {
    let groups = await walkGroupList(plan)
    await onGroups?(groups)
    await walkGroups(groups, plan)
    await walkProfiles(of: groups, plan)
  }

  /// - Returns: The groups that the relay lists or that are known.
  private func walkGroupList(_ plan: SyncPlan) async -> [Text] {
    // The list is walked whole each time: it is short, and it says what else there is to walk.
    var whole = plan.unbounded
    whole.isFull = true
    await walk([SyncScopes.groupList], whole)
    let known = await desk.groups(now: ports.clock.now())
    let all = Set(await tally.groupsListed).union(known).sorted()
    return Array(all.prefix(limits.groupsMax))
  }

  /// Brings over what the relay says of each group, whenever it said so.
  private func walkGroupStates(_ plan: SyncPlan) async -> [Text] {
    let groups = await walkGroupList(plan)
    await walk(groups.map(SyncScopes.groupState), plan.unbounded)
    return groups
  }

  /// Brings over what the relay says of each group and everything that is in it. A relay that takes
  /// no filter without kinds is asked for those that are known, in classes.
  private func walkGroups(_ groups: [Text], _ plan: SyncPlan) async {
    await walk(groups.map(SyncScopes.groupState), plan.unbounded)
    await forEach(groups) { await walkGroup($0, plan) }
  }

  private func walkGroup(_ group: Text, _ plan: SyncPlan) async {
    var refusal: HistoryWalk.End?
    if await !tally.needsKinds(relay) {
      let end = await walk(SyncScopes.wholeGroup(group), plan, isTrial: true)
      guard case .refused = end else { return }
      refusal = end
    }
    var isServed = false
    for scope in SyncScopes.groupClasses(group) {
      if await isOver { return }
      await tally.planned(1)
      if await walk(scope, plan) == .drained { isServed = true }
    }
    if refusal == WalkRun.leftUnanswered {
      await leaveUnproved(SyncScopes.wholeGroup(group), plan, WalkRun.leftUnanswered.words)
    }
    // Nothing at all may mean an empty group. Else, where the classes are served, it was the filter
    // that was refused, and not the group.
    guard isServed, let refusal, refusal != WalkRun.silentlyRefused else { return }
    await tally.refusesKindless(relay)
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
    var whole = plan.unbounded
    whole.isFull = true
    await walk(batches.map(SyncScopes.profiles), whole, isRecorded: false)
  }

  /// Walks several scopes, a few at a time.
  private func walk(_ scopes: [Scope], _ plan: SyncPlan, isRecorded: Bool = true) async {
    await tally.planned(scopes.count)
    await forEach(scopes) { _ = await walk($0, plan, isRecorded: isRecorded) }
  }

  /// Does several things, a few at a time: one by one until the relay has answered anything, because
  /// a NOTICE tells only where a single request can be meant.
  private func forEach<Item: Sendable>(
    _ items: [Item], _ body: @escaping @Sendable (Item) async -> Void
  ) async {
    await withTaskGroup(of: Void.self) { group in
      var running = 0
      for item in items {
        let most = await tally.watch(of: relay).hasAnswered ? limits.walksMax : 1
        while running >= most {
          await group.next()
          running -= 1
        }
        if await isOver { break }
        running += 1
        group.addTask { await body(item) }
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
    var isSilent = true
    for filter in [Filter(limit: 1), Filter(kinds: [.groupMetadata, .message, .note], limit: 1)] {
      let page = await connection.fetch(HistoryWalk.Request(filter: filter)) { _, _ in }
      if page.isAnswer { await tally.answered(page.end, by: relay) }
      if page.tally.delivered > 0 { return await tally.delivered(by: relay, pageShown: 0) }
      if case .noticed(let why) = page.end {
        await tally.unanswered(why, isSilent: false, by: relay)
      }
      isSilent = isSilent && page.end == .timedOut
    }
    // One filter may be passed over in silence, two of different kinds are not.
    if isSilent {
      await tally.unanswered(HistoryWalk.End.timedOut.words, isSilent: true, by: relay)
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
      let watch = await tally.watch(of: relay)
      let isGivenUp = watch.givenUp != nil
      let hasNegentropy = isGivenUp ? false : await connection.servesNegentropy()
      if hasNegentropy {
        let windows = WindowRun(
          scope: scope, isRecorded: isRecorded, floor: plan.since ?? 0, ceiling: plan.until,
          needsSight: isUnserved || isStranger, reconciler: self)
        let outcome = try await windows.run(plan.windows(over: coverage, now: now))
        if outcome.isSeen { (isUnserved, isStranger) = (false, false) }
        legs = SyncPlan.legs(legs, within: outcome.left)
      } else if isRecorded, !isGivenUp, !isStranger {
        let windows = ChannelWindowRun(
          scope: scope, floor: plan.since ?? 0, reconciler: self)
        let outcome = try await windows.run(legs, isFirst: coverage.isEmpty)
        if outcome.isSeen { isUnserved = false }
        legs = outcome.left
      }
      var limits = limits
      // What may be left unanswered for its shape is asked in another one soon.
      limits.walkRetriesMax = isUnserved && watch.hasAnswered ? 1 : watch.retriesMax
      let options = HistoryWalk.Options(
        limits: limits, information: await connection.machine.information,
        hasNegentropy: hasNegentropy, pageShown: await tally.pageShown(by: relay))
      let walk = HistoryWalk(scope.filter, legs: legs, options: options)
      let run = WalkRun(
        scope: scope, isRecorded: isRecorded, isTrial: isUnserved, isStranger: isStranger,
        floor: walk.floor, ceiling: walk.ceiling, coverage: coverage, reconciler: self)
      let end =
        if let why = watch.givenUp { try await run.skip(walk, why) } else {
          try await run.run(walk)
        }
      if case .refused(let text) = end, me == nil, await asksForKey(text) {
        await tally.needsKey(text)
      }
      if isTrial, case .refused = end {
        await tally.passedOver()
      } else {
        if isTrial, end == .drained { await tally.servesKindless(relay) }
        await tally.ended(
          scope, end == .drained,
          unsettled: end.isWorthAnotherTry ? watch.givenUp ?? end.words : nil)
      }
      return end
    } catch {
      await tally.failed(error)
      return .cancelled
    }
  }
}

extension Reconciler {
  /// Names as a gap what a relay left unanswered that answers the same filter elsewhere: then its
  /// silence was not about the filter, and what is asked in its place is not all of it.
  private func leaveUnproved(_ scope: Scope, _ plan: SyncPlan, _ why: Text) async {
    guard await tally.hasServedKindless(relay) else { return }
    let to = plan.until ?? ports.clock.now()
    await tally.note([
      CoverageGap(relay: relay, scope: scope, from: plan.since ?? 0, to: to, why: why)
    ])
  }

  /// Events with what their arrival proved about a scope.
  ///
  /// - Parameter askedAt: When the relay was asked for them: its answer speaks of no later time.
  func batch(
    _ events: [VerifiedEvent], _ rejected: [Reject], _ findings: HistoryWalk.Findings,
    _ scope: Scope, askedAt: Timestamp, isRecorded: Bool, by method: ProofMethod = .paging
  ) -> IngestBatch {
    let now = ports.clock.now()
    let gaps = findings.gaps.map { gap in
      CoverageGap(
        relay: relay, scope: scope, from: gap.span.from, to: gap.span.to, why: gap.why)
    }
    let proofs = findings.proofs.map { span in
      CoverageProof(
        relay: relay, scope: scope,
        interval: CoverageInterval(
          from: span.from, to: span.to, provedAt: askedAt, method: method))
    }
    // Where we end the walk ourselves, what was not reached stays unproved; that says nothing of
    // the relay, and takes nothing from what it proved before.
    return IngestBatch(
      events: events, rejected: rejected, source: relay, receivedAt: now,
      proofs: isRecorded ? proofs : [], gaps: Task.isCancelled ? [] : gaps)
  }

  /// Stores a batch and counts it.
  ///
  /// - Parameter told: What the round's summary names as gaps, where that is more than is recorded.
  /// - Returns: What went wrong with the store.
  func store(
    _ batch: IngestBatch, told: [CoverageGap]? = nil, via method: ProofMethod = .paging
  ) async -> LogError? {
    await tally.note(told ?? batch.gaps)
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
