import EventLog
import Nostr
import NostrCrypto
import SyncCore

/// One scope brought over by NIP-77: sessions with the relay over copies of what is here, and
/// requests for what they find missing.
struct WindowRun: Sendable {
  let scope: Scope
  let isRecorded: Bool
  /// Events outside are not wanted, whatever the relay lists.
  let floor: Timestamp
  let ceiling: Timestamp?
  let needsSight: Bool
  let reconciler: Reconciler

  struct Outcome: Sendable {
    /// What was not compared to the end, and is to be walked by pages.
    var left: [HistoryWalk.Leg] = []
    /// Whether the relay showed that it holds any event.
    var isSeen = false
    var hasGaps = false

    var isProved: Bool { left.isEmpty && !hasGaps }
  }

  private var connection: RelayConnection { reconciler.connection }

  private var limits: Limits { reconciler.limits }

  private var items: RelayItems {
    RelayItems(
      relay: connection.url, store: reconciler.intake.store, desk: reconciler.desk,
      clock: reconciler.ports.clock)
  }

  func run(_ windows: [HistoryWalk.Leg]) async throws(LogError) -> Outcome {
    let result = await withTaskGroup(of: LogError?.self) { group in
      var machine = ReconciliationMachine(
        scope.filter, windows: windows,
        options: .init(limits: limits, floor: floor, ceiling: ceiling, needsSight: needsSight))
      var outcome = Outcome()
      var failure: LogError?
      var isStoring = false
      while failure == nil {
        var chunk = Chunk()
        var findings: HistoryWalk.Findings
        switch machine.next(now: reconciler.ports.clock.now()) {
        case .ended(let left):
          outcome.left = left
          // Else each of many groups would cost as many connections.
          if machine.isLost { await connection.refusedNegentropy(.failed(Self.lost)) }
          if isStoring, let error = await group.next() { failure = error }
          return (outcome: outcome, failure: failure)
        case .compare(let filter):
          // Stored first, so that nothing that was fetched is listed again.
          if isStoring, let error = await group.next() { failure = error }
          isStoring = false
          let comparison = await compare(filter)
          if case .done(_, true, _) = comparison { outcome.isSeen = true }
          findings = machine.compared(comparison)
        case .fetch(let ids):
          chunk = await fetch(ids)
          findings = machine.fetched(chunk.delivered, doubts: chunk.doubts, chunk.end)
          // At most one chunk is being stored while the next one comes in.
          if isStoring, let error = await group.next() { failure = error }
        }
        outcome.hasGaps = outcome.hasGaps || !findings.gaps.isEmpty
        if !isRecorded { findings.gaps = [] }
        let batch = reconciler.batch(
          chunk.events.filter { isWanted($0.event) }, chunk.rejected, findings, scope,
          askedAt: machine.askedAt, isRecorded: isRecorded, by: .negentropy)
        isStoring = true
        group.addTask { await reconciler.store(batch, via: .negentropy) }
      }
      return (outcome: outcome, failure: failure)
    }
    if let failure = result.failure { throw failure }
    return result.outcome
  }

  private func isWanted(_ event: Event) -> Bool {
    floor <= event.createdAt && ceiling.map { event.createdAt <= $0 } ?? true
  }

  // MARK: Comparing

  private static let lost = HistoryWalk.End.disconnected.words

  /// From so many items on, where they lie tells where the relay's lie.
  private static let tellingCount = 256

  private func compare(_ filter: Filter) async -> ReconciliationMachine.Comparison {
    do throws(ItemsError) {
      switch try await items.items(filter, limit: limits.reconcileItemsMax) {
      case .tooMany(let middle): return .tooManyHere(middle: middle)
      case .all(let set):
        let outcome = await connection.negotiate(
          filter, over: set, openMax: limits.negotiationOpenMax)
        return try await comparison(outcome, over: set)
      }
    } catch {
      // Without a copy to compare there are still pages.
      return .ended(.refused(.unsupported(Text("\(error)"))))
    }
  }

  private func comparison(
    _ outcome: NegotiationOutcome, over set: NegentropySet
  ) async throws(ItemsError) -> ReconciliationMachine.Comparison {
    switch outcome {
    case .compared(let listed, let lacking, let isWhole):
      return .done(
        missing: try await items.missing(listed),
        isSeen: !listed.isEmpty || lacking < set.count, isWhole: isWhole)
    case .ended(let end):
      switch end {
      case .refused(.tooMany): return .tooManyThere(middle: Self.middle(of: set))
      case .disconnected: return .cutOff(middle: Self.middle(of: set))
      case .refused(.silent), .refused(.unsupported):
        if case .refused(let refusal) = end { await connection.refusedNegentropy(refusal) }
      case .refused, .cancelled: break
      }
      return .ended(end)
    }
  }

  private static func middle(of set: NegentropySet) -> Timestamp? {
    set.count >= tellingCount ? set[set.count / 2].createdAt : nil
  }

  // MARK: Fetching

  fileprivate struct Chunk: Sendable {
    var events: [VerifiedEvent] = []
    var rejected: [Reject] = []
    var delivered: Set<EventID> = []
    var doubts: [PageTally.Doubt] = []
    var end = PageEnd.complete(.none)
  }

  /// Asks for ids in requests of a bounded size, several at once.
  private func fetch(_ ids: [EventID]) async -> Chunk {
    let size = await requestSize(ids.count)
    return await withTaskGroup(of: FetchedPage.self) { group in
      for start in stride(from: 0, to: ids.count, by: size) {
        let some = Array(ids[start..<min(start + size, ids.count)])
        group.addTask {
          await connection.fetch(
            HistoryWalk.Request(filter: Filter(ids: some, limit: some.count)))
        }
      }
      var chunk = Chunk()
      for await page in group { chunk.add(page) }
      return chunk
    }
  }

  /// How many ids go into one request: no more than the relay gives in a page, and than its longest
  /// message has room for.
  private func requestSize(_ count: Int) async -> Int {
    let information = await connection.machine.information
    let room = (information?.messageBytesMax ?? 65_536) - 256
    let most = min(
      limits.idsPerRequest, information?.limitMax ?? limits.idsPerRequest, room / 67)
    // A chunk that was made smaller is spread no wider than before.
    return max(1, min(most, max(1, count)))
  }
}

extension WindowRun.Chunk {
  /// Takes one request's page; of several ends the worst one counts.
  fileprivate mutating func add(_ page: FetchedPage) {
    for event in page.events where delivered.insert(event.event.id).inserted {
      events.append(event)
    }
    rejected += page.rejected
    doubts += page.tally.doubts
    for reject in page.rejected {
      if let id = reject.id.flatMap({ EventID(hex: $0.string) }) { delivered.insert(id) }
    }
    if Self.rank(page.end) > Self.rank(end) { end = page.end }
  }

  private static func rank(_ end: PageEnd) -> Int {
    switch end {
    case .complete: 0
    case .refused, .noticed: 1
    case .timedOut: 2
    case .disconnected: 3
    case .cancelled: 4
    }
  }
}
