import Nostr
import SyncCore
import Testing

/// Kinds, groups and relays so few that proofs and filters often meet.
private struct World {
  let random: SeededRandom
  private static let groups: [Text] = ["kitchen", "garden", "attic"]
  private static let kinds: [EventKind] = [5, 7, 9, 11]

  init(_ seed: UInt64) { random = SeededRandom(seed) }

  private func some<Value>(_ values: [Value]) -> [Value]? {
    if random.chance(0.4) { return nil }
    let chosen = values.filter { _ in random.chance(0.5) }
    return chosen.isEmpty ? [values[random.below(values.count)]] : chosen
  }

  func filter() -> Filter {
    var filter = Filter(kinds: some(Self.kinds))
    if let groups = some(Self.groups) { filter.tags[UInt8(ascii: "h")] = groups }
    if random.chance(0.2) { filter.tags[UInt8(ascii: "p")] = ["me"] }
    return filter
  }

  /// A filter that asks for a part of what `outer` asks for.
  func part(of outer: Filter) -> Filter {
    var filter = outer
    let other = self.filter()
    filter.kinds = narrowed(outer.kinds, other.kinds)
    for (letter, values) in other.tags {
      filter.tags[letter] = narrowed(outer.tags[letter], values)
    }
    return filter
  }

  private func narrowed<Value: Equatable>(_ outer: [Value]?, _ inner: [Value]?) -> [Value]? {
    guard let outer else { return inner }
    guard let inner else { return outer }
    let both = outer.filter(inner.contains)
    return both.isEmpty ? outer : both
  }

  func second() -> Timestamp { Timestamp(Int64(random.below(100))) }

  func interval() -> CoverageInterval {
    let (from, to) = (random.chance(0.6) ? 0 : second(), second())
    let upper = max(from, to)
    let asked = random.chance(0.6) ? upper : upper + Int64(random.below(40))
    return CoverageInterval(from: from, to: upper, provedAt: asked, method: .paging)
  }
}

@Suite struct ProvedScopesTests {
  private static let home = RelayURL("ws://relay.example:1")
  private static let replica = RelayURL("ws://replica.example:1")

  private func row(
    _ filter: Filter, _ spans: [(from: Int64, to: Int64, asked: Int64)],
    at relay: RelayURL? = home
  ) throws -> ProvedScopes.Row {
    ProvedScopes.Row(
      relay: try #require(relay), scope: Scope(filter),
      intervals: spans.map {
        CoverageInterval(
          from: Timestamp($0.from), to: Timestamp($0.to), provedAt: Timestamp($0.asked),
          method: .paging)
      })
  }

  private func whole(_ filter: Filter, upTo: Int64 = 900) throws -> ProvedScopes.Row {
    try row(filter, [(0, upTo, upTo)])
  }

  private func verdict(
    _ rows: [ProvedScopes.Row], gaps: [CoverageGap] = [], on filter: Filter
  ) throws -> ProvedScopes.Verdict {
    ProvedScopes(rows, gaps: gaps, relays: [try #require(Self.home)])
      .verdict(on: filter, now: 1000)
  }

  // MARK: What contains what

  @Test func `a wider filter than what was asked for is not complete`() throws {
    let kitchen = try whole(.group("kitchen"))
    let id = try #require(EventID(hex: String(repeating: "1", count: 64)))
    #expect(try verdict([kitchen], on: .group("kitchen")).isComplete)
    #expect(try verdict([kitchen], on: .group("kitchen", kinds: [9])).isComplete)
    for filter in [
      Filter.group("garden"), Filter(kinds: [9]), Filter(),
      Filter(ids: [id]),
    ] {
      let told = try verdict([kitchen], on: filter)
      #expect(!told.isComplete, "\(Scope(filter))")
      #expect(told.gaps.map(\.scope) == [Scope(filter)])
      #expect(told.gaps.map { [$0.from, $0.to] } == [[0, 1000]])
      #expect(told.asOf == nil)
    }
  }

  @Test func `scopes prove a filter together, and only the part never asked for is a gap`() throws {
    let groups: Filter = Filter(tags: [UInt8(ascii: "h"): ["kitchen", "garden", "attic"]])
    var rows = [try whole(.group("kitchen")), try whole(.group("garden"), upTo: 800)]
    let told = try verdict(rows, on: groups)
    #expect(told.gaps.map(\.scope) == [Scope(.group("attic"))])
    rows.append(try whole(.group("attic", kinds: [9, 7])))
    #expect(!(try verdict(rows, on: groups).isComplete))
    var kinds = groups
    kinds.kinds = [7, 9]
    #expect(try verdict(rows, on: kinds) == .init(isComplete: true, gaps: [], asOf: 800))
    kinds.kinds = [7, 9, 11]
    let rest = try verdict(rows, on: kinds)
    #expect(rest.gaps.map(\.scope) == [Scope(.group("attic", kinds: [11]))])
  }

  @Test func `all known kinds of a group are not all of it`() throws {
    let classes = SyncScopes.groupClasses("kitchen").map(\.filter)
    let rows = try classes.map { try whole($0) }
    #expect(try verdict(rows, on: .group("kitchen", kinds: [9, 7, 9000])).isComplete)
    #expect(!(try verdict(rows, on: .group("kitchen")).isComplete))
  }

  @Test func `a filter that asks for nothing is complete, and nothing proved proves nothing else`()
    throws
  {
    #expect(try verdict([], on: Filter(kinds: [])).isComplete)
    #expect(try verdict([], on: Filter(since: 10, until: 9)).isComplete)
    #expect(!(try verdict([], on: Filter(kinds: [9])).isComplete))
  }

  @Test func `without a relay it is said that there is none`() {
    let told = ProvedScopes([], gaps: [], relays: []).verdict(on: Filter(), now: 1000)
    #expect(told.gaps.map(\.relay) == [nil])
    #expect(told.gaps.map { [$0.from, $0.to] } == [[0, 1000]])
  }

  // MARK: Time

  @Test func `what was read to a chosen end is not proved after it`() throws {
    let rows = [try row(Filter(), [(300, 600, 950)])]
    #expect(
      try verdict(rows, on: Filter()).gaps.map { [$0.from, $0.to] } == [[0, 299], [601, 1000]])
    let newer = try verdict(rows, on: Filter(since: 601))
    #expect(newer.gaps.map { [$0.from, $0.to] } == [[601, 1000]])
    #expect(!(try verdict(rows, on: Filter(since: 601, until: 700)).isComplete))
    #expect(try verdict(rows, on: Filter(since: 300, until: 600)).isComplete)
    #expect(!(try verdict(rows, on: Filter(since: 300)).isComplete))
    // Read on later to the moment of asking, it is.
    let on = [try row(Filter(), [(300, 600, 950), (601, 960, 960)])]
    #expect(try verdict(on, on: Filter(since: 300)) == .init(isComplete: true, gaps: [], asOf: 960))
  }

  @Test func `what is newer than the last time of asking is not proved`() throws {
    let rows = [try whole(Filter())]
    #expect(try verdict(rows, on: Filter(since: 900)).isComplete)
    #expect(!(try verdict(rows, on: Filter(since: 901)).isComplete))
    #expect(!(try verdict(rows, on: Filter(until: 901)).isComplete))
  }

  @Test func `a later attempt that failed takes the last word from the proof before it`() throws {
    let home = try #require(Self.home)
    let gap = CoverageGap(
      relay: home, scope: Scope(.group("kitchen")), from: 901, to: 950, why: "restricted")
    let rows = [try whole(.group("kitchen"))]
    #expect(try verdict(rows, gaps: [gap], on: .group("kitchen")).gaps == [OpenSpan(gap)])
    // Another relay that was asked since then has the last word.
    let other = try row(.group("kitchen"), [(0, 960, 960)], at: Self.replica)
    #expect(try verdict(rows + [other], gaps: [gap], on: .group("kitchen")).isComplete)
    let late = CoverageGap(
      relay: try #require(Self.replica), scope: gap.scope, from: 0, to: 960, why: "down")
    #expect(try verdict(rows, gaps: [late], on: .group("kitchen")).isComplete)
  }

  @Test func `a gap that two relays share is told with the reasons of both, and others' is closed`()
    throws
  {
    let home = try #require(Self.home)
    let replica = try #require(Self.replica)
    let scope = Scope(.group("kitchen"))
    let rows = try [Self.home, Self.replica].map { relay in
      try row(.group("kitchen"), [(0, 100, 100)], at: relay)
    }
    func gap(_ relay: RelayURL, _ why: Text) -> CoverageGap {
      CoverageGap(relay: relay, scope: scope, from: 10, to: 20, why: why)
    }
    let gaps = [gap(home, "cut short"), gap(replica, "restricted")]
    let proved = ProvedScopes(rows, gaps: gaps, relays: [home, replica])
    #expect(proved.left(of: gaps[0]) == [gaps[0]])
    #expect(proved.verdict(on: .group("kitchen"), now: 100).gaps == gaps.map { OpenSpan($0) })
    let one = ProvedScopes(rows, gaps: [gaps[0]], relays: [home, replica])
    #expect(one.left(of: gaps[0]) == [])
    #expect(one.verdict(on: .group("kitchen"), now: 100).isComplete)
  }

  @Test func `a refused group is told with the relay's reason alone`() throws {
    let gap = CoverageGap(
      relay: try #require(Self.home), scope: Scope(.group("attic")), from: 0, to: 950,
      why: "restricted: not a member")
    #expect(try verdict([], gaps: [gap], on: .group("attic")).gaps == [OpenSpan(gap)])
  }

  // MARK: Properties

  /// Whether every second of a span is covered by the intervals, the slow way.
  private func covers(_ rows: [ProvedScopes.Row], _ second: Timestamp) -> Bool {
    rows.contains { $0.intervals.contains { $0.from <= second && second <= $0.to } }
  }

  @Test(arguments: 1...300 as ClosedRange<UInt64>)
  func `what lies within a complete filter is complete, and nothing unproved is`(seed: UInt64)
    throws
  {
    let world = World(seed)
    let home = try #require(Self.home)
    let replica = try #require(Self.replica)
    let rows = (0..<(1 + world.random.below(8))).map { _ in
      ProvedScopes.Row(
        relay: world.random.chance(0.7) ? home : replica, scope: Scope(world.filter()),
        intervals: CoverageMap((0...world.random.below(3)).map { _ in world.interval() }).intervals)
    }
    let gaps = (0..<world.random.below(3)).map { _ in
      let (from, to) = (world.second(), world.second())
      return CoverageGap(
        relay: home, scope: world.random.chance(0.5) ? rows[0].scope : Scope(world.filter()),
        from: min(from, to), to: max(from, to), why: "stopped")
    }
    let proved = ProvedScopes(rows, gaps: gaps, relays: [home, replica])
    for _ in 0..<30 {
      var outer = world.filter()
      if world.random.chance(0.5) { outer.since = world.second() }
      if world.random.chance(0.5) { outer.until = world.second() }
      let verdict = proved.verdict(on: outer, now: 200)
      #expect(verdict.isComplete == verdict.gaps.isEmpty)
      guard verdict.isComplete, let asOf = verdict.asOf else { continue }
      checkParts(of: outer, upTo: asOf, proved, world, seed)
      checkSeconds(of: outer, upTo: asOf, rows, seed)
    }
  }

  private func checkParts(
    of outer: Filter, upTo asOf: Timestamp, _ proved: ProvedScopes, _ world: World, _ seed: UInt64
  ) {
    for _ in 0..<10 {
      var inner = world.part(of: outer)
      let (first, second) = (world.second(), world.second())
      inner.since = max(outer.since ?? 0, min(first, second))
      inner.until = world.random.chance(0.5) ? min(asOf, max(first, second)) : outer.until
      if inner.until == nil, inner.since ?? 0 > asOf { continue }
      #expect(
        proved.verdict(on: inner, now: 200).isComplete,
        "seed \(seed): \(Scope(inner)) in \(Scope(outer)), up to \(asOf)")
    }
  }

  /// Each pair of a group and a kind was asked for in each second, or a pair of any and any.
  private func checkSeconds(
    of filter: Filter, upTo asOf: Timestamp, _ rows: [ProvedScopes.Row], _ seed: UInt64
  ) {
    let letter = UInt8(ascii: "h")
    let from = filter.since ?? 0
    guard from <= asOf else { return }
    // A kind and a group that no list names stand for all of which nothing is known.
    for kind in filter.kinds ?? [999] {
      for group in filter.tags[letter] ?? ["elsewhere"] {
        let holding = rows.filter { row in
          let scope = row.scope.filter
          return scope.kinds?.contains(kind) ?? true && scope.tags[letter]?.contains(group) ?? true
            && (scope.tags[UInt8(ascii: "p")] == nil || filter.tags[UInt8(ascii: "p")] != nil)
        }
        for second in from.seconds...asOf.seconds {
          #expect(covers(holding, Timestamp(second)), "seed \(seed): \(Scope(filter)) at \(second)")
        }
      }
    }
  }
}
