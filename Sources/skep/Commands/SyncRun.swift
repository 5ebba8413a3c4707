import EventLog
import Nostr
import SyncCore
import SyncEngine

/// What `sync` and `mirror` share: one run, or following until a signal comes.
struct SyncRun {
  let community: RunningCommunity
  let context: Context

  static let options: [OptionSpec] = [
    .value("group", "ID", "only this group; may be given again", repeats: true),
    .flag("once", "end when everything is brought over and sent; this is usual"),
    .flag("follow", "go on until a signal comes"),
    .flag("full", "walk everything again, whatever was proved before"),
    .value("fail-after", "D", "give up when no relay was reached for so long; 30s otherwise"),
  ]

  /// Runs as the command line says and closes the community.
  func run(_ plan: SyncPlan) async throws -> ExitCode {
    let code: ExitCode
    do {
      code = context.invocation.has("follow") ? try await follow() : try await once(plan)
    } catch {
      await community.close()
      if let code = context.stop.code { return code }
      throw error
    }
    await community.close()
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

  static func groups(_ context: Context) -> [Text]? {
    let words = context.invocation.values("group")
    return words.isEmpty ? nil : words.map { Text($0) }
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
    case .failure(.keyNeeded(let relay, _)) where community.keyProblem != nil:
      throw needsKey(relay)
    case .failure(let error): throw Failure(error)
    case .success(let summary):
      try report(summary)
      return summary.isComplete ? .done : .unproved
    }
  }

  /// There is a key, and the run had to go on without it.
  private func needsKey(_ relay: RelayURL) -> Failure {
    let why = community.keyProblem.map { Failure($0).message } ?? "there is no key"
    return Failure(.key, "\(relay) asks who you are: \(why)")
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

  private func report(_ summary: SyncSummary) throws {
    if context.wantsJSON { return try context.out.write(row: Rows.summary(summary)) }
    for line in Rows.summaryLines(summary) { try context.out.write(line: line) }
    for (relay, why) in summary.relays.sorted(by: { $0.key < $1.key }) {
      guard let why else { continue }
      context.talk.say("\(relay) was not reached: \(SafeText.line(why, cells: 200))")
    }
    for line in try CommunitySettings(community.store.reader).offerLines { context.talk.say(line) }
  }

  // MARK: Following

  private func follow() async throws -> ExitCode {
    let patience = try context.duration("fail-after")
    let engine = community.engine
    await engine.start()
    let shown = showProgress()
    defer { shown.cancel() }
    let clock = ContinuousClock()
    var reachedAt = clock.now
    while !context.stop.isRequested {
      let status = await engine.status()
      if status.relays.contains(where: { $0.state == .ready }) { reachedAt = clock.now }
      if let patience, reachedAt.duration(to: clock.now) > patience {
        let reasons = status.relays.map { "\($0.url): \($0.lastError ?? "no answer")" }
        throw Failure(
          .noRelay,
          "no relay was reached for \(Progress.time(Progress.seconds(patience))): "
            + SafeText.line(reasons.joined(separator: "; "), cells: 300))
      }
      // A cancelled sleep is the signal that ends the loop.
      try? await Task.sleep(for: .seconds(1))
    }
    let status = await engine.status()
    var summary = SyncSummary()
    summary.stored = status.progress.stored
    summary.duplicates = status.progress.duplicates
    summary.queued = status.outbox.reduce(0) { $0 + ($1.key.isOpen ? $1.value : 0) }
    summary.failed = status.outbox.reduce(0) { $0 + ($1.key.isOpen ? 0 : $1.value) }
    summary.gaps = try community.store.reader.gaps()
    summary.isComplete = status.isLive && summary.gaps.isEmpty
    try report(summary)
    return .done
  }
}
