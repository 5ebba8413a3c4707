import EventLog
import HotCache
import Nostr
import SyncCore
import SyncEngine

/// What `sync` and `mirror` share: one run, or following until a signal comes.
struct SyncRun {
  let community: RunningCommunity
  let context: Context
  /// Whether the community was not known before this run.
  var isNew = false

  static let options: [OptionSpec] = [
    .value("group", "ID", "only this group; may be given again", repeats: true),
    .flag("once", "end when everything is brought over and sent; this is usual"),
    .flag("follow", "go on until a signal comes"),
    .flag("full", "walk everything again, whatever was proved before"),
    .value("fail-after", "D", "give up when no relay has answered for so long; 30s otherwise"),
  ]

  /// Runs as the command line says and closes the community.
  func run(_ plan: SyncPlan) async throws -> ExitCode {
    let code: ExitCode
    do {
      code = context.invocation.has("follow") ? try await follow(plan) : try await once(plan)
    } catch {
      await community.close(isNew: isNew)
      if let code = context.stop.code { return code }
      throw error
    }
    await community.close(isNew: isNew)
    return context.stop.code ?? code
  }

  static func plan(_ context: Context, _ extent: SyncPlan.Extent) throws -> SyncPlan {
    if context.invocation.has("once") && context.invocation.has("follow") {
      throw context.usage("--once and --follow exclude each other")
    }
    var plan = SyncPlan(extent)
    plan.isFull = context.invocation.has("full")
    if let patience = try context.duration("fail-after") { plan.failAfter = patience }
    return plan
  }

  // MARK: Once

  private func once(_ plan: SyncPlan) async throws -> ExitCode {
    let shown = showProgress()
    let result: Result<SyncSummary, EngineError>
    do throws(EngineError) {
      result = .success(try await community.engine.syncOnce(plan))
    } catch {
      result = .failure(error)
    }
    shown.cancel()
    context.talk.endProgress()
    for relay in await community.engine.status().relays {
      guard let skew = relay.skewWords else { continue }
      context.talk.say("\(SafeText.line(relay.url.description, cells: 60)): \(skew)")
    }
    switch result {
    case .failure(let error):
      try await reportFailure(error, plan)
      if case .keyNeeded(let relay, _) = error, community.keyProblem != nil {
        throw needsKey(relay)
      }
      throw Failure(error)
    case .success(let summary):
      try report(summary, unknownGroups: try nameUnknownGroups())
      if try nameUnsent(summary) { return .partial }
      return summary.isComplete ? .done : .unproved
    }
  }

  /// There is a key, and the run had to go on without it.
  private func needsKey(_ relay: RelayURL) -> Failure {
    let why = community.keyProblem.map { Failure($0).message } ?? "there is no key"
    return Failure(.key, "\(relay) asks who you are: \(why)")
  }

  /// A group that no relay has heard of is complete without a message, which a slip of the finger
  /// must not look like.
  ///
  /// - Returns: The ids of those groups.
  private func nameUnknownGroups() throws -> [Text] {
    guard let wanted = try context.groups() else { return [] }
    var unknown: [Text] = []
    let time = context.clock.now()
    for id in wanted {
      let isKnown = try community.store.views.read { view throws(CacheError) -> Bool in
        if try view.group(id, now: time) != nil { return true }
        return try !view.query([Filter.group(id)], now: time, limit: 1).isEmpty
      }
      if !isKnown {
        unknown.append(id)
        context.talk.say(
          "no relay knows a group “\(SafeText.line(id, cells: 60))”: is its id right?")
      }
    }
    return unknown
  }

  private static let unsentShownMax = 20

  /// Says of what was not sent why.
  ///
  /// - Parameter namesWaiting: Whether what may still be sent is named and counted too: a run that ends
  ///   leaves it unsent, whatever it waits for.
  /// - Returns: Whether there is any, however well the rest went.
  private func nameUnsent(_ summary: SyncSummary, namesWaiting: Bool = true) throws -> Bool {
    let isWaiting = namesWaiting && summary.queued > 0
    guard isWaiting || summary.failed > 0 else { return false }
    let unsent = try community.store.reader.deliveries(includingSent: false)
    if isWaiting { name(unsent.filter(\.state.isOpen), "waits: ") }
    guard summary.failed > 0 else { return isWaiting }
    name(unsent.filter { !$0.state.isOpen }, "not sent: ")
    context.talk.say(
      "“skep outbox retry ID” tries such a message again, “skep outbox discard ID” gives it up")
    return true
  }

  private func name(_ deliveries: [Delivery], _ prefix: String) {
    for delivery in deliveries.prefix(Self.unsentShownMax) {
      context.talk.say(prefix + Rows.deliveryLine(delivery, isAtWork: true))
    }
    if deliveries.count > Self.unsentShownMax {
      context.talk.say(
        "… and \(deliveries.count - Self.unsentShownMax) more; “skep outbox” names each")
    }
  }

  /// Shows how far the engine has come until it is cancelled.
  private func showProgress() -> Task<Void, Never> {
    let line = ProgressLine(total: nil, isQuiet: context.invocation.has("quiet"))
    let changes = community.engine.changes
    return Task {
      for await change in changes {
        guard case .progress(let progress) = change else { continue }
        line.show("received", done: progress.received)
      }
      line.end()
    }
  }

  private func report(_ summary: SyncSummary, unknownGroups: [Text] = []) throws {
    if context.wantsJSON {
      return try context.out.write(row: Rows.summary(summary, unknownGroups: unknownGroups))
    }
    for line in Rows.summaryLines(summary) { try context.out.write(line: line) }
    for (relay, why) in summary.relays.sorted(by: { $0.key < $1.key }) {
      guard let why else { continue }
      context.talk.say("\(relay) was not reached: \(SafeText.line(why, cells: 200))")
    }
    for line in try CommunitySettings(community.store.reader).offerLines { context.talk.say(line) }
  }

  /// A run that came to nothing ends with a summary too: nothing of what was asked is proved.
  private func reportFailure(_ error: EngineError, _ plan: SyncPlan) async throws {
    guard context.wantsJSON else { return }
    let reasons: [(relay: RelayURL, why: Text)]
    switch error {
    case .noRelayReached(let relays): reasons = relays
    case .keyNeeded(let relay, let why): reasons = [(relay: relay, why: why)]
    case .stopped: reasons = community.engine.relays.map { (relay: $0, why: "stopped") }
    default: return
    }
    let status = await community.engine.status()
    var summary = SyncSummary(status.progress)
    summary.isComplete = false
    // A relay that was at work when the signal came is not one that was not reached.
    let wasStopped = if case .stopped = error { true } else { false }
    let reached = status.relays.filter { wasStopped && $0.state == .ready }.map(\.url)
    try countOutbox(in: &summary)
    let (from, to) = (plan.since ?? 0, plan.until ?? context.clock.now())
    let scopes = try context.groups()?.map { Scope(Filter.group($0)) } ?? [Scope(Filter())]
    for (relay, why) in reasons {
      summary.relays[relay] = reached.contains(relay) ? Text?.none : why
      summary.gaps += scopes.map {
        CoverageGap(relay: relay, scope: $0, from: from, to: to, why: why)
      }
    }
    try report(summary)
  }

  private func countOutbox(in summary: inout SyncSummary) throws {
    for delivery in try community.store.reader.deliveries(includingSent: false) {
      if delivery.state.isOpen { summary.queued += 1 } else { summary.failed += 1 }
    }
  }

  // MARK: Following

  private func follow(_ plan: SyncPlan) async throws -> ExitCode {
    let patience = try context.duration("fail-after")
    let engine = community.engine
    await engine.start()
    let shown = showProgress()
    defer { shown.cancel() }
    let clock = ContinuousClock()
    var reachedAt = clock.now
    while !context.stop.isRequested {
      let status = await engine.status()
      if status.relays.contains(where: { $0.whyUnreached == nil }) { reachedAt = clock.now }
      if let patience, reachedAt.duration(to: clock.now) > patience {
        let reasons = status.relays.map { (relay: $0.url, why: $0.whyUnreached ?? "no answer") }
        try await reportFailure(.noRelayReached(reasons), plan)
        throw Failure(
          .noRelay,
          "no relay was reached for \(Progress.time(Progress.seconds(patience))): "
            + SafeText.line(
              reasons.map { "\($0.relay): \($0.why)" }.joined(separator: "; "), cells: 300))
      }
      // A cancelled sleep is the signal that ends the loop.
      try? await Task.sleep(for: .seconds(1))
    }
    let status = await engine.status()
    var summary = SyncSummary(status.progress)
    for relay in status.relays {
      summary.relays[relay.url] = relay.whyUnreached
    }
    summary.queued = status.outbox.reduce(0) { $0 + ($1.key.isOpen ? $1.value : 0) }
    summary.failed = status.outbox.reduce(0) { $0 + ($1.key.isOpen ? 0 : $1.value) }
    summary.gaps = try community.store.reader.gaps()
    summary.isComplete =
      status.isLive && summary.gaps.isEmpty && community.store.log.isSound
    try report(summary)
    return try nameUnsent(summary, namesWaiting: false) ? .partial : .done
  }
}
