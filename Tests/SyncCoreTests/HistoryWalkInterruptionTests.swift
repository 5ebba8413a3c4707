import Nostr
import SyncCore
import Testing

/// Relays whose connections end amid answers.
@Suite struct HistoryWalkInterruptionTests {
  private func relay(_ count: Int) -> ModelRelay {
    var relay = ModelRelay()
    relay.stored = (0..<count).map { ModelRelay.position(Int64($0 * 3), $0) }
    return relay
  }

  @Test func `a relay that loses every connection amid its answer is given up`() {
    var relay = relay(1200)
    relay.cap = 100
    relay.losesAfter = { _, rows in rows / 2 }
    let run = WalkRun(&relay)
    #expect(run.end == .disconnected)
    #expect(run.asked == Limits().walkDisconnectsMax)
    #expect(run.proofs.isEmpty && run.isGap(0) && run.isGap(3000))
    #expect(run.gaps.allSatisfy { $0.why == "the connection was lost" })
  }

  @Test(arguments: [2, 3, 40, 120])
  func `a relay that cannot deliver a large answer is read in small ones`(bound: Int) {
    var relay = relay(1000)
    relay.losesAfter = { _, rows in rows > bound ? bound : nil }
    let run = WalkRun(&relay)
    #expect(run.end == .drained)
    #expect(run.held.count == 1000 && run.gaps.isEmpty && run.lies.isEmpty)
  }

  @Test(arguments: [5, 20, 200])
  func `a relay that loses large answers before anything of them comes is read in small ones`(
    bound: Int
  ) {
    var relay = relay(600)
    relay.losesAfter = { _, rows in rows > bound ? 0 : nil }
    let run = WalkRun(&relay)
    #expect(run.end == .drained)
    #expect(run.held.count == 600 && run.gaps.isEmpty && run.lies.isEmpty)
  }

  @Test func `a second that does not go into small answers is asked for whole once more`() {
    var relay = relay(400)
    relay.stored += ModelRelay.burst(600, 60, from: 5000)
    relay.losesAfter = { number, rows in number < 3 && rows > 10 ? 10 : nil }
    let run = WalkRun(&relay)
    #expect(run.end == .drained && run.held.count == 460)
    #expect(run.gaps.isEmpty && run.isProved(600))
    // The twin: where it is cut off again, it is a gap, and what is below it is read.
    var weak = self.relay(400)
    weak.stored += ModelRelay.burst(600, 60, from: 5000)
    weak.losesAfter = { _, rows in rows > 10 ? 10 : nil }
    let lost = WalkRun(&weak)
    #expect(lost.end == .drained && lost.lies.isEmpty)
    #expect(lost.gaps.map(\.span) == [HistoryWalk.Span(from: 600, to: 600)])
    #expect(lost.isProved(0) && lost.isProved(1197))
  }

  @Test func `a gauge whose connections end is given up with its second alone`() {
    var relay = ModelRelay()
    relay.cap = 6
    relay.stored = ModelRelay.burst(1000, 6) + [ModelRelay.position(500, 50)]
    relay.others = (0..<20).map { ModelRelay.position(Int64(5000 + $0), 100 + $0) }
    relay.losesGauges = true
    let run = WalkRun(&relay)
    #expect(run.lies.isEmpty)
    #expect(run.end == .drained || run.end == .disconnected)
    #expect(!run.isProved(1000) && run.isGap(1000))
    #expect(run.asked < 30)
  }

  @Test func `a connection that is lost now and then costs that answer and no smaller ones`() {
    var relay = relay(5000)
    relay.losesAfter = { number, _ in number % 3 == 0 ? 7 : nil }
    let run = WalkRun(&relay)
    #expect(run.end == .drained && run.held.count == 5000)
    #expect(run.asked < 25)
  }

  @Test func `after many whole answers more is asked for again`() {
    var relay = relay(20_000)
    relay.losesAfter = { number, _ in number < 3 ? 7 : nil }
    let run = WalkRun(&relay)
    #expect(run.end == .drained && run.held.count == 20_000)
    #expect(run.asked < 250)
  }

  @Test(arguments: Seeds.kept)
  func `a walk whose connections end claims only what it read`(seed: UInt64) {
    let random = SeededRandom(seed)
    var relay = HistoryWalkPropertyTests.relay(random)
    // Small answers take many requests.
    relay.stored = Array(relay.stored.prefix(300))
    var options = HistoryWalk.Options(limits: Limits())
    options.hasKeysetCursor = random.chance(0.5)
    options.pageShown = random.chance(0.5) ? random.below(relay.cap + 1) : 0
    relay.servesKeyset = options.hasKeysetCursor
    relay.isUntilExclusive = random.chance(0.2)
    relay.isSinceExclusive = random.chance(0.2)
    let bound = 1 + random.below(60)
    let share = random.chance(0.5) ? 0.3 : 0
    relay.losesAfter = { _, rows in
      if rows > bound { return bound }
      return random.chance(share) ? random.below(rows + 1) : nil
    }
    let run = WalkRun(&relay, options: options)
    let hint: Comment = "seed \(seed)"
    #expect(run.end == .drained || run.end == .disconnected, hint)
    #expect(run.lies.isEmpty, hint)
    for position in relay.stored where !run.held.contains(position) {
      #expect(!run.isProved(position.createdAt) && run.isGap(position.createdAt), hint)
    }
  }
}
