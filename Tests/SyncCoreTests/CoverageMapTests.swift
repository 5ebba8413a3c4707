import Nostr
import SyncCore
import Testing

/// What the map says, second by second, over a short span of time.
private struct BitModel {
  var proofs: [CoverageInterval?]

  init(seconds: Int) { proofs = Array(repeating: nil, count: seconds) }

  mutating func insert(_ proof: CoverageInterval) {
    for second in Int(proof.from.seconds)...Int(proof.to.seconds) {
      if let old = proofs[second], old.provedAt > proof.provedAt { continue }
      proofs[second] = proof
    }
  }

  mutating func subtract(_ from: Int, _ to: Int) {
    for second in from...to { proofs[second] = nil }
  }
}

/// A small generator of its own, so that a failure can be seen again from its seed.
private struct Dice: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  mutating func roll(_ count: Int) -> Int { Int(next() % UInt64(count)) }
}

private func proof(
  _ from: Int, _ to: Int, at time: Int = 0, method: ProofMethod = .paging
) -> CoverageInterval {
  CoverageInterval(
    from: Timestamp(Int64(from)), to: Timestamp(Int64(to)), provedAt: Timestamp(Int64(time)),
    method: method)
}

@Suite struct CoverageMapTests {
  @Test(arguments: 0..<200 as Range<UInt64>)
  func `the map covers exactly the seconds that were proved and not taken away`(seed: UInt64) {
    // Times of proof so far apart that none are joined, and so close that many are.
    checkRun(seed: seed, timeStep: 10_000)
    checkRun(seed: seed, timeStep: 3000)
  }

  private func checkRun(seed: UInt64, timeStep: Int) {
    var dice = Dice(state: seed)
    var map = CoverageMap()
    var model = BitModel(seconds: 64)
    for _ in 0..<60 {
      let from = dice.roll(64)
      let to = from + dice.roll(64 - from)
      if dice.roll(5) == 0 {
        map.subtract(from: Timestamp(Int64(from)), to: Timestamp(Int64(to)))
        model.subtract(from, to)
      } else {
        let added = proof(
          from, to, at: dice.roll(4) * timeStep, method: ProofMethod.allCases[dice.roll(3)])
        map.insert(added)
        model.insert(added)
      }
      check(map, model, isExact: timeStep > 3600, seed: seed)
    }
  }

  private func check(_ map: CoverageMap, _ model: BitModel, isExact: Bool, seed: UInt64) {
    for (second, known) in model.proofs.enumerated() {
      let time = Timestamp(Int64(second))
      let found = map.interval(at: time)
      #expect((found != nil) == (known != nil), "seed \(seed), second \(second)")
      #expect(map.contains(time) == (known != nil))
      if let found, let known {
        #expect(found.provedAt <= known.provedAt, "seed \(seed), second \(second)")
        if isExact {
          #expect(found.provedAt == known.provedAt, "seed \(seed), second \(second)")
          #expect(found.method == known.method, "seed \(seed), second \(second)")
        }
      }
    }
    for (left, right) in zip(map.intervals, map.intervals.dropFirst()) {
      #expect(left.to < right.from, "seed \(seed)")
    }
    let open = model.proofs.indices.filter { model.proofs[$0] == nil }
    let told = map.gaps(from: 0, to: 63)
      .flatMap { Int($0.lowerBound.seconds)...Int($0.upperBound.seconds) }
    #expect(told == open, "seed \(seed)")
  }

  @Test func `pages of one walk become one interval, under the earliest time`() {
    var map = CoverageMap()
    for page in 0..<1000 { map.insert(proof(10_000 - page * 10 - 9, 10_000 - page * 10, at: page)) }
    #expect(map.intervals == [proof(1, 10_000, at: 0)])
  }

  @Test func `a span held live for long stays few intervals`() {
    var map = CoverageMap()
    for minute in 1...10_000 {
      map.insert(proof(minute * 60 - 59, minute * 60, at: minute * 60, method: .live))
    }
    #expect(map.contains(from: 1, to: 600_000))
    #expect(map.intervals.count <= 600_000 / 3600 + 1)
  }

  @Test func `a chosen end never becomes the moment of asking`() {
    // Read to a chosen end at 100, and from there to another one much later.
    let bounded = CoverageMap([proof(0, 80, at: 90), proof(81, 100, at: 300)])
    #expect(bounded.intervals.allSatisfy { !$0.isUpToItsProof })
    #expect(bounded.contains(from: 0, to: 100))
    let open = CoverageMap([
      proof(0, 80, at: 90), proof(200, 300, at: 300), proof(81, 199, at: 301),
    ])
    #expect(open.intervals == [proof(0, 300, at: 90)])
    #expect(open.intervals.allSatisfy { $0.isUpToItsProof })
  }

  @Test func `the newer proof holds where two overlap, whichever came first`() {
    let old = proof(0, 100, at: 10)
    let new = proof(50, 70, at: 100_000)
    let both = [proof(0, 49, at: 10), new, proof(71, 100, at: 10)]
    #expect(CoverageMap([old, new]).intervals == both)
    #expect(CoverageMap([new, old]).intervals == both)
  }

  @Test func `a span proved too long ago counts as a gap for whoever asks so`() {
    let map = CoverageMap([proof(0, 9, at: 10), proof(10, 19, at: 100_000)])
    #expect(map.gaps(from: 0, to: 19).isEmpty)
    #expect(map.gaps(from: 0, to: 19, provedSince: 11) == [0...9])
    #expect(map.provedAt(from: 5, to: 15) == 10)
    #expect(map.provedAt(from: 12, to: 15) == 100_000)
    #expect(map.provedAt(from: 12, to: 20) == nil)
  }

  @Test func `the ends of time are seconds like others`() {
    var map = CoverageMap()
    let last = Timestamp(.max)
    map.insert(CoverageInterval(from: 5, to: last, provedAt: 1, method: .paging))
    map.insert(CoverageInterval(from: 0, to: 4, provedAt: 1, method: .paging))
    #expect(map.intervals.count == 1)
    #expect(map.contains(from: 0, to: last))
    map.subtract(from: last, to: last)
    #expect(map.gaps(from: 0, to: last) == [last...last])
  }
}

@Suite struct GapMapTests {
  private func gap(_ from: Int64, _ to: Int64, _ why: Text = "dense") -> GapMap.Entry {
    GapMap.Entry(from: Timestamp(from), to: Timestamp(to), why: why)
  }

  @Test func `the reason given last holds where two gaps overlap`() {
    #expect(
      GapMap([gap(0, 100), gap(40, 60, "restricted")]).entries == [
        gap(0, 39), gap(40, 60, "restricted"), gap(61, 100),
      ])
  }

  @Test func `neighbours with one reason are one gap`() {
    #expect(GapMap([gap(0, 4), gap(10, 14), gap(5, 9)]).entries == [gap(0, 14)])
    #expect(GapMap([gap(0, 4), gap(5, 9, "restricted")]).entries.count == 2)
  }

  @Test func `a proof takes away what it covers and leaves the rest`() {
    var map = GapMap([gap(0, 100)])
    map.subtract(from: 10, to: 20)
    #expect(map.entries == [gap(0, 9), gap(21, 100)])
    map.subtract(from: 0, to: 1000)
    #expect(map.entries.isEmpty)
  }
}
