import Nostr
import SyncCore
import Testing

/// What must hold for any set of events, any cap and any faults.
@Suite struct HistoryWalkPropertyTests {
  @Test(arguments: Seeds.kept)
  func `a walk claims only what it read, and reads all that it does not name as a gap`(seed: UInt64)
  {
    let random = SeededRandom(seed)
    var relay = Self.relay(random)
    let faults = random.chance(0.5) ? 0.15 : 0
    var options = HistoryWalk.Options(limits: Limits())
    options.hasKeysetCursor = random.chance(0.5)
    relay.servesKeyset = options.hasKeysetCursor && random.chance(0.7)
    relay.ignoresSince = random.chance(0.15)
    relay.saysFinish = random.chance(0.2)
    relay.isUntilExclusive = random.chance(0.2)
    relay.servesOneOfUntil = !relay.isUntilExclusive && random.chance(0.2)
    relay.isSinceExclusive = random.chance(0.2)
    if random.chance(0.3) {
      relay.forged = Set(relay.stored.filter { _ in random.chance(0.3) }.map(\.id))
    }
    var limits = Limits()
    limits.walkRetriesMax = 1000
    options.limits = limits
    let run = WalkRun(&relay, options: options) { _ in random.chance(faults) ? .timedOut : nil }

    let hint: Comment = "seed \(seed)"
    #expect(run.end == .drained, hint)
    #expect(run.lies.isEmpty, hint)
    let real = relay.stored.filter { !relay.forged.contains($0.id) }
    for position in real where run.isProved(position.createdAt) {
      #expect(run.held.contains(position), hint)
    }
    for position in real where !run.held.contains(position) {
      #expect(run.isGap(position.createdAt), hint)
    }
    #expect(Self.isWhole(run), hint)
  }

  @Test(arguments: Seeds.kept)
  func `what arrives amid pages is never taken for their end`(seed: UInt64) {
    let random = SeededRandom(seed)
    var relay = Self.relay(random)
    relay.ignoresSince = random.chance(0.15)
    relay.isUntilExclusive = random.chance(0.2)
    relay.servesOneOfUntil = !relay.isUntilExclusive && random.chance(0.2)
    var options = HistoryWalk.Options(limits: Limits())
    options.hasKeysetCursor = random.chance(0.5)
    relay.servesKeyset = options.hasKeysetCursor
    let share = random.chance(0.5) ? 0.2 : 0.9
    relay.arrivals = { number in
      guard number < 60, random.chance(share) else { return [] }
      // After the last stored event, newest first, as an upload of older history would come; or
      // anywhere and in any order.
      let isUpload = random.chance(0.6)
      let times = (0..<random.below(8)).map { _ in Int64(random.below(3500)) }
      return (isUpload ? times.sorted(by: >) : times).enumerated().map { index, time in
        let event = ModelRelay.position(time, 1 << 40 + number * 100 + index)
        return (place: isUpload ? .max : random.below(400), event)
      }
    }
    let run = WalkRun(&relay, options: options)
    let hint: Comment = "seed \(seed)"
    #expect(run.end == .drained, hint)
    #expect(run.lies.isEmpty, hint)
    #expect(Self.isWhole(run), hint)
    // It takes more pages than in quiet, and not many more.
    #expect(run.asked < 20_000, hint)
  }

  /// The twin: a walk that trusted the limit it asked for would miss what this one finds.
  @Test(arguments: Seeds.kept.prefix(20))
  func `a walk that stops at a page below its limit misses events`(seed: UInt64) {
    let random = SeededRandom(seed)
    var relay = ModelRelay(
      stored: (0..<400).map { ModelRelay.position(Int64(random.below(5000)), $0) },
      cap: 2 + random.below(200))
    let (_, end) = relay.answer(
      HistoryWalk(Filter(), options: .init(limits: Limits())).firstRequest, now: 1_000_000)
    #expect(end == .complete(.none))
    #expect(relay.delivered.count < 400)
    let run = WalkRun(&relay)
    #expect(run.held.count == 400 || !run.gaps.isEmpty)
  }

  static func relay(_ random: SeededRandom) -> ModelRelay {
    var relay = ModelRelay()
    relay.cap = 2 + random.below(random.chance(0.5) ? 20 : 499)
    let span = 1 + random.below(3000)
    var number = 0
    for _ in 0..<random.below(400) {
      let count = random.chance(0.05) ? random.below(relay.cap * 2) : 1
      let time = Int64(random.below(span))
      for _ in 0..<count {
        relay.stored.append(ModelRelay.position(time, number &* 0x9e37_79b9 & 0xffff_ffff))
        number += 1
      }
    }
    return relay
  }

  /// Every second up to now is either proved or named as a gap.
  private static func isWhole(_ run: WalkRun) -> Bool {
    var map = CoverageSpans()
    for span in run.proofs + run.gaps.map(\.span) { map.insert(span) }
    return map.isOneSpan(from: 0, to: 1_000_000)
  }
}

private struct CoverageSpans {
  private var spans: [HistoryWalk.Span] = []

  mutating func insert(_ span: HistoryWalk.Span) { spans.append(span) }

  func isOneSpan(from: Timestamp, to: Timestamp) -> Bool {
    var next = from
    for span in spans.sorted(by: { $0.from < $1.from }) {
      if span.from > next { return false }
      next = max(next, span.to + 1)
    }
    return next > to
  }
}

extension HistoryWalk {
  /// The request that a fresh walk begins with.
  fileprivate var firstRequest: Request {
    var copy = self
    guard case .ask(let request) = copy.next(now: 1_000_000) else {
      return Request(filter: Filter(), beforeID: nil)
    }
    return request
  }
}
