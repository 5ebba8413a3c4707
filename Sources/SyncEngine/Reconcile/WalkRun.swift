import EventLog
import Nostr
import NostrCrypto
import SyncCore

/// One walk at one relay: the next page is asked for while the last one is being stored.
struct WalkRun {
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
  /// What was proved before.
  let coverage: CoverageMap
  let reconciler: Reconciler

  static let silentlyRefused = HistoryWalk.End.refused(
    "no event for a filter without kinds")
  static let leftUnanswered = HistoryWalk.End.refused(
    "no answer to a filter without kinds")

  private var relay: RelayURL { reconciler.connection.url }

  /// Asks nothing, because the relay does not answer, and names what was to be read as gaps.
  func skip(_ start: HistoryWalk, _ why: Text) async throws(LogError) -> HistoryWalk.End {
    var walk = start
    _ = walk.next(now: reconciler.ports.clock.now())
    let findings = walk.stop(.timedOut, why: why)
    if let error = await reconciler.store(batch(nil, findings, walk), told: told(findings)) {
      throw error
    }
    return .timedOut
  }

  func run(_ start: HistoryWalk) async throws(LogError) -> HistoryWalk.End {
    let outcome = await withTaskGroup(of: LogError?.self) { group in
      var walk = start
      var failure: LogError?
      var isStoring = false
      var isServed = !isTrial && !isStranger
      var isAnswered = false
      var isOneWhole = false
      while failure == nil {
        if Task.isCancelled { _ = walk.stop(.cancelled) }
        let step = walk.next(now: reconciler.ports.clock.now())
        if case .reconcile(let second) = step {
          let findings = walk.reconciled(await hasCompared(second))
          failure = await reconciler.store(batch(nil, findings, walk), told: told(findings))
          continue
        }
        guard case .ask(let request) = step else { break }
        var page = await fetch(request)
        var findings = walk.received(page.tally, page.end)
        if page.isAnswer {
          await reconciler.tally.answered(page.end, by: relay)
          isAnswered = true
        }
        if page.tally.delivered > 0 {
          await reconciler.tally.delivered(by: relay, pageShown: walk.pageShown)
        }
        if case .complete = page.end { isOneWhole = true }
        if !isOneWhole, walk.end == .disconnected {
          await reconciler.tally.lost(HistoryWalk.End.disconnected.words, by: relay)
        }
        if !isAnswered, let why = walk.end?.silence {
          await reconciler.tally.unanswered(why, isSilent: walk.end == .timedOut, by: relay)
        }
        // At most one page is being stored while the next one comes in.
        if isStoring, let error = await group.next() { failure = error }
        if request.isGauge {
          (page.events, page.rejected) = ([], [])
        } else {
          if isTrial, !isServed, page.tally.delivered > 0 {
            // Told at once: another group may be judged by it before this one is read to its end.
            await reconciler.tally.servesKindless(relay)
          }
          isServed = isServed || page.tally.delivered > 0
        }
        if !isServed {
          // Nothing is proved by a filter that may not be served at all.
          findings.proofs = []
        }
        if !isServed, isTrial {
          if walk.end == .drained { return (end: Self.silentlyRefused, failure: failure) }
          if case .refused(let why) = walk.end { return (end: .refused(why), failure: failure) }
          if walk.end == .timedOut { return (end: Self.leftUnanswered, failure: failure) }
        }
        let (batch, told) = (batch(page, findings, walk), told(findings))
        isStoring = true
        group.addTask { await reconciler.store(batch, told: told) }
      }
      if isStoring, let error = await group.next(), failure == nil { failure = error }
      return (end: walk.end ?? HistoryWalk.End.cancelled, failure: failure)
    }
    if let failure = outcome.failure { throw failure }
    return outcome.end
  }

  /// Whether a second too dense for pages was read whole by NIP-77.
  private func hasCompared(_ second: Timestamp) async -> Bool {
    // It may have been given up since this walk began.
    guard await reconciler.connection.servesNegentropy() else { return false }
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
      // The events of a gauge are nobody's wish.
      guard !request.isGauge else { return }
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

  private func batch(
    _ page: FetchedPage?, _ findings: HistoryWalk.Findings, _ walk: HistoryWalk
  ) -> IngestBatch {
    var findings = findings
    if walk.end?.isWorthAnotherTry == true {
      // What was proved before stays proved: an attempt that failed teaches nothing about it.
      findings.gaps = findings.gaps.flatMap { gap in
        coverage.gaps(from: gap.span.from, to: gap.span.to).map { span in
          HistoryWalk.Gap(span: .init(from: span.lowerBound, to: span.upperBound), why: gap.why)
        }
      }
    }
    return reconciler.batch(
      wanted(page?.events ?? []), page?.rejected ?? [], findings, scope, askedAt: walk.askedAt,
      isRecorded: isRecorded)
  }

  /// Everything that this walk could not prove, as its summary tells it.
  private func told(_ findings: HistoryWalk.Findings) -> [CoverageGap] {
    findings.gaps.map { gap in
      CoverageGap(relay: relay, scope: scope, from: gap.span.from, to: gap.span.to, why: gap.why)
    }
  }
}

extension FetchedPage {
  /// Whether the relay has answered at all, be it without an end.
  var isAnswer: Bool {
    switch end {
    case .complete, .refused: true
    case .noticed, .timedOut, .disconnected, .cancelled: tally.delivered > 0
    }
  }
}

extension HistoryWalk.End {
  /// Whether the same walk may end better soon. What the relay refuses it will refuse again.
  var isWorthAnotherTry: Bool {
    switch self {
    case .timedOut, .disconnected, .cancelled: true
    case .drained, .unpageable, .refused, .unreadable: false
    }
  }

  /// Why nothing came, where it may be that nothing ever comes.
  fileprivate var silence: Text? {
    switch self {
    case .timedOut, .refused: words
    case .drained, .unpageable, .disconnected, .unreadable, .cancelled: nil
    }
  }
}
