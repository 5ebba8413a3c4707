import Nostr
import SyncCore

/// A relay as far as paging goes: a set of positions, a cap, and habits that can be switched on.
struct ModelRelay {
  var stored: [EventPosition] = []
  var cap = 500
  /// Positions whose events fail verification.
  var forged: Set<EventID> = []
  var ignoresUntil = false
  var ignoresSince = false
  var isOldestFirst = false
  var servesKeyset = false
  var saysFinish = false
  /// An `until` of 0 is read as no bound at all.
  var readsZeroAsNoBound = false
  /// An event of the second `until` itself is not served, as `nostr-relay` does over SQLite.
  var isUntilExclusive = false
  /// An event of the second `since` itself is not served, as `nostr-relay` does over LMDB.
  var isSinceExclusive = false
  /// Of the second `until` only the event with the lowest id is served (`nostr-relay` over LMDB).
  var servesOneOfUntil = false
  /// Without a lower or without an upper bound above 0 a filter matches nothing, nor with an upper
  /// one beyond 2037 (`nostr-relay` over LMDB).
  var needsBothBounds = false
  /// Of kinds that no walk asks for, newer than all others.
  var others: [EventPosition] = []
  /// Accepted amid the next answers: sent among the stored events where they match the request,
  /// and stored from then on.
  var arrivals: (Int) -> [(place: Int, EventPosition)] = { _ in [] }
  private(set) var requests: [HistoryWalk.Request] = []
  /// The connection ends after so many events of an answer; nil where it lasts.
  var losesAfter: (_ request: Int, _ rows: Int) -> Int? = { _, _ in nil }
  /// The connection ends with each request that only gauges.
  var losesGauges = false
  /// Requests with a larger limit are refused.
  var limitMax: Int?
  /// What it held when the last request came.
  private(set) var storedBefore: Set<EventPosition> = []

  mutating func answer(_ request: HistoryWalk.Request, now: Timestamp) -> (PageTally, PageEnd) {
    requests.append(request)
    storedBefore = Set(stored)
    if let limitMax, request.filter.limit ?? 0 > limitMax {
      delivered = []
      return (request.tally(now: now), .refused("invalid: limit too large"))
    }
    var until = request.filter.until
    if readsZeroAsNoBound, until == 0 { until = nil }
    if isUntilExclusive { until = until.map { $0 - 1 } }
    let isUnbounded = (request.filter.since ?? 0) == 0 || (request.filter.until ?? 0) == 0
    let untilIsTooLate = request.filter.until.map { $0 >= 2_145_934_800 } ?? false
    let bare = (request.isGauge ? others + stored : stored).filter { position in
      if isSinceExclusive, position.createdAt == request.filter.since { return false }
      if needsBothBounds, isUnbounded || untilIsTooLate { return false }
      if let until, !ignoresUntil, position.createdAt > until { return false }
      if let since = request.filter.since, !ignoresSince, position.createdAt < since {
        return false
      }
      return true
    }
    let kept = bare.filter { $0.createdAt == request.filter.until }.map(\.id).min()
    let served = bare.filter { position in
      !servesOneOfUntil || position.createdAt != request.filter.until || position.id == kept
    }
    // Newest first, ids ascending inside a second.
    var rows = served.sorted { left, right in
      left.createdAt != right.createdAt ? left.createdAt > right.createdAt : left.id < right.id
    }
    if servesKeyset, let after = request.beforeID, let until {
      rows = rows.filter { $0.createdAt < until || $0.id > after }
    }
    let size = min(cap, request.filter.limit ?? cap)
    let isWhole = rows.count <= size
    rows = Array(rows.prefix(size))
    if isOldestFirst { rows.reverse() }
    for (place, event) in arrivals(requests.count) {
      stored.append(event)
      let isAsked =
        (request.filter.until.map { event.createdAt <= $0 } ?? true)
        && (request.filter.since.map { event.createdAt >= $0 } ?? true)
      if isAsked { rows.insert(event, at: min(place, rows.count)) }
    }
    let lasting = request.isGauge && losesGauges ? 0 : losesAfter(requests.count, rows.count)
    if let lasting { rows = Array(rows.prefix(lasting)) }
    var tally = request.tally(now: now)
    for row in rows {
      if let bound = request.filter.until, row.createdAt > bound {
        tally.addAboveUntil(row)
      } else if let bound = request.filter.since, row.createdAt < bound {
        tally.addBelowSince(row)
      } else if forged.contains(row.id) {
        tally.addInvalid(row, isDated: true)
      } else {
        tally.addVerified(row)
      }
    }
    delivered = rows
    if lasting != nil { return (tally, .disconnected) }
    return (tally, .complete(saysFinish && isWhole ? .finish : .none))
  }

  /// The rows of the last answer.
  private(set) var delivered: [EventPosition] = []

  static func position(_ seconds: Int64, _ number: Int) -> EventPosition {
    var bytes = [UInt8](repeating: 0, count: 32)
    for index in 0..<8 { bytes[index] = UInt8(truncatingIfNeeded: number >> (56 - 8 * index)) }
    return EventPosition(
      createdAt: Timestamp(seconds), id: EventID(Bytes32(bytes) ?? .zero))
  }

  static func burst(_ seconds: Int64, _ count: Int, from: Int = 0) -> [EventPosition] {
    (0..<count).map { position(seconds, from + $0) }
  }
}

/// Runs a walk against a model relay and keeps what it learned.
struct WalkRun {
  var held: Set<EventPosition> = []
  var proofs: [HistoryWalk.Span] = []
  var gaps: [HistoryWalk.Gap] = []
  var end: HistoryWalk.End?
  var asked = 0
  /// Events that the relay held when it was asked for a page that proves their second, and that
  /// were not held when it did.
  var lies: [EventPosition] = []

  init(
    _ relay: inout ModelRelay, legs: [HistoryWalk.Leg] = [HistoryWalk.Leg()],
    now: Timestamp = 1_000_000, options: HistoryWalk.Options? = nil,
    scope: Filter = Filter(kinds: [9]), fault: (Int) -> PageEnd? = { _ in nil }
  ) {
    var walk = HistoryWalk(
      scope, legs: legs, options: options ?? HistoryWalk.Options(limits: Limits()))
    let floor = walk.floor
    let ceiling = walk.ceiling ?? Timestamp(.max)
    while end == nil, asked < 20_000 {
      switch walk.next(now: now) {
      case .ended(let reason): end = reason
      case .reconcile: take(walk.reconciled(false))
      case .ask(let request):
        asked += 1
        let (tally, answer) = relay.answer(request, now: now)
        if let broken = fault(asked) {
          take(walk.received(request.tally(now: now), broken))
          continue
        }
        for row in relay.delivered where !request.isGauge && !relay.forged.contains(row.id) {
          if floor <= row.createdAt, row.createdAt <= ceiling { held.insert(row) }
        }
        let findings = walk.received(tally, answer)
        for span in findings.proofs {
          lies += relay.storedBefore.filter {
            span.from <= $0.createdAt && $0.createdAt <= span.to && !held.contains($0)
          }
        }
        take(findings)
      }
    }
  }

  private mutating func take(_ findings: HistoryWalk.Findings) {
    proofs += findings.proofs
    gaps += findings.gaps
  }

  func isProved(_ time: Timestamp) -> Bool { proofs.contains { $0.from <= time && time <= $0.to } }

  func isGap(_ time: Timestamp) -> Bool {
    gaps.contains { $0.span.from <= time && time <= $0.span.to }
  }
}
