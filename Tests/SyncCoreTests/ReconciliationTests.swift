import Nostr
import Testing

@testable import SyncCore

/// A relay that does NIP-77 over a set of positions, and a log beside it.
private struct Peers {
  var relay: [EventPosition] = []
  var log: Set<EventID> = []
  /// What of the log the relay should hold.
  var offered: [EventPosition] = []
  var cap: Int?
  /// A relay whose cap is one lower than it says.
  var isCapShort = false
  var withheld: Set<EventID> = []
  var refusal: NegotiationRefusal?
  var itemsMax = 1_000_000
  var listedMax = 1_000_000
  var isUntilExclusive = false

  private(set) var comparisons = 0
  private(set) var filters: [Filter] = []
  private(set) var transferred = 0
  private(set) var findings = HistoryWalk.Findings()

  /// Runs a machine to its end and returns what it leaves to pages.
  mutating func run(_ machine: inout ReconciliationMachine, now: Timestamp = 10_000) throws
    -> [HistoryWalk.Leg]
  {
    for _ in 0..<20_000 {
      switch machine.next(now: now) {
      case .ended(let left): return left
      case .compare(let filter):
        comparisons += 1
        filters.append(filter)
        take(machine.compared(try compare(filter)))
      case .fetch(let ids):
        let asked = Set(ids)
        let got = relay.filter { asked.contains($0.id) && !withheld.contains($0.id) }
        transferred += got.count
        log.formUnion(got.map(\.id))
        offered += got
        take(machine.fetched(Set(got.map(\.id)), .complete(.none)))
      }
    }
    Issue.record("it does not end")
    return []
  }

  private mutating func take(_ found: HistoryWalk.Findings) {
    findings.proofs += found.proofs
    findings.gaps += found.gaps
  }

  private func compare(_ filter: Filter) throws -> ReconciliationMachine.Comparison {
    if let refusal { return .ended(.refused(refusal)) }
    let here = offered.filter { isInside($0, filter) }
    if here.count > itemsMax {
      return .tooManyHere(middle: here.map(\.createdAt).sorted()[here.count / 2])
    }
    let there = relay.filter {
      isInside($0, filter) && !(isUntilExclusive && $0.createdAt == filter.until)
    }
    if let cap, there.count > cap || isCapShort && there.count == cap {
      let dates = here.map(\.createdAt).sorted()
      return .tooManyThere(middle: dates.count < 256 ? nil : dates[dates.count / 2])
    }
    let client = NegentropyMachine(
      set: NegentropySet(here), isClient: true, frameBytesMax: 4096)
    let server = NegentropyMachine(
      set: NegentropySet(there), isClient: false, frameBytesMax: 4096)
    var listed: [EventID] = []
    var lacking = 0
    var question: [UInt8]? = client.opening()
    while let message = question, listed.count < listedMax {
      let step = try client.receive(try #require(try server.receive(message).answer))
      listed += step.need
      lacking += step.have.count
      question = step.answer
    }
    return .done(
      missing: listed.filter { !log.contains($0) },
      isSeen: !listed.isEmpty || lacking < here.count, isWhole: question == nil)
  }

  private func isInside(_ position: EventPosition, _ filter: Filter) -> Bool {
    filter.since.map { $0 <= position.createdAt } ?? true
      && filter.until.map { position.createdAt <= $0 } ?? true
  }
}

@Suite struct ReconciliationTests {
  private func machine(
    _ windows: [HistoryWalk.Leg] = [HistoryWalk.Leg()],
    _ change: (inout ReconciliationMachine.Options) -> Void = { _ in }
  ) -> ReconciliationMachine {
    var options = ReconciliationMachine.Options(limits: Limits())
    change(&options)
    return ReconciliationMachine(Filter(kinds: [9]), windows: windows, options: options)
  }

  private func positions(_ count: Int, seconds: Int64, from: Int64 = 1000) -> [EventPosition] {
    (0..<count).map { ModelRelay.position(from + Int64($0) % seconds, $0) }
  }

  private func ids(_ positions: [EventPosition]) -> Set<EventID> { Set(positions.map(\.id)) }

  @Test func `what the relay has and the log lacks is fetched, and then all of it is proved`()
    throws
  {
    var peers = Peers()
    peers.relay = positions(6000, seconds: 900)
    peers.offered = Array(peers.relay.prefix(100)) + [ModelRelay.position(5, 9_999_999)]
    peers.log = ids(peers.offered)
    var run = machine()
    #expect(try peers.run(&run) == [])
    #expect(peers.log.isSuperset(of: ids(peers.relay)))
    #expect(peers.transferred == 5900)
    #expect(peers.findings.proofs == [HistoryWalk.Span(from: 0, to: 10_000)])
    #expect(peers.findings.gaps == [])
    var again = machine()
    #expect(try peers.run(&again) == [])
    #expect(peers.transferred == 5900)
  }

  @Test func `nothing is proved before the last missing event has come`() throws {
    let relay = positions(5000, seconds: 900)
    var run = machine()
    guard case .compare = run.next(now: 10_000) else {
      Issue.record("nothing is compared")
      return
    }
    let found = run.compared(.done(missing: relay.map(\.id), isSeen: true, isWhole: true))
    #expect(found.proofs == [])
    var chunks = 0
    while case .fetch(let ids) = run.next(now: 10_000) {
      chunks += 1
      let found = run.fetched(Set(ids), .complete(.none))
      let isLast = run.next(now: 10_000) == .ended([])
      #expect(found.proofs.isEmpty != isLast)
    }
    #expect(chunks == 3)
  }

  // F173: superseded and deleted events are in the log and not offered.
  @Test func `what the log holds is not fetched again although it is not offered`() throws {
    var peers = Peers()
    peers.relay = positions(200, seconds: 50)
    peers.log = ids(peers.relay)
    peers.offered = Array(peers.relay.dropFirst(30))
    var run = machine()
    #expect(try peers.run(&run) == [])
    #expect(peers.transferred == 0)
    #expect(peers.findings.proofs.count == 1)
  }

  // F171.
  @Test func `a set over the relay's cap is compared in windows, and all is found`() throws {
    var peers = Peers()
    peers.relay = positions(4000, seconds: 3600)
    peers.cap = 500
    var run = machine()
    #expect(try peers.run(&run) == [])
    #expect(peers.log == ids(peers.relay))
    #expect(CoverageMap(peers.intervals).contains(from: 0, to: 10_000))
    #expect(peers.comparisons < 80)
  }

  @Test func `where nearly all is here already, few windows are refused`() throws {
    var peers = Peers()
    peers.relay = positions(4000, seconds: 3600, from: 1_700_000_000)
    peers.offered = Array(peers.relay.dropLast(40))
    peers.log = ids(peers.offered)
    peers.cap = 2500
    var run = machine()
    #expect(try peers.run(&run, now: 1_800_000_000) == [])
    #expect(peers.log == ids(peers.relay))
    #expect(peers.comparisons == 3)
  }

  // F172.
  @Test func `a relay that refuses exactly its cap is read all the same`() throws {
    var peers = Peers()
    peers.relay = positions(500, seconds: 400)
    peers.cap = 500
    peers.isCapShort = true
    var run = machine()
    #expect(try peers.run(&run) == [])
    #expect(peers.log == ids(peers.relay))
  }

  @Test func `one second over the cap is left to pages, and the rest is proved`() throws {
    var peers = Peers()
    peers.relay =
      positions(300, seconds: 1, from: 2000)
      + (0..<900).map { ModelRelay.position(Int64(1000 + $0), 10_000 + $0) }
    peers.cap = 200
    var run = machine()
    #expect(try peers.run(&run) == [HistoryWalk.Leg(from: 2000, to: 2000)])
    let map = CoverageMap(peers.intervals)
    #expect(map.gaps(from: 0, to: 10_000) == [2000...2000])
    #expect(peers.log.count == 900)
  }

  @Test func `a dense second is compared without its neighbours where they are in the way`() throws
  {
    var peers = Peers()
    peers.relay = (0..<3).flatMap { second in
      (0..<150).map { ModelRelay.position(Int64(2000 + second), second * 1000 + $0) }
    }
    peers.cap = 200
    var run = machine()
    #expect(try peers.run(&run) == [])
    #expect(peers.log == ids(peers.relay))
  }

  @Test func `a relay that refuses everything for its size is asked a bounded number of times`()
    throws
  {
    var peers = Peers()
    peers.refusal = .tooMany(recordsMax: nil)
    var run = machine()
    let left = try peers.run(&run, now: 1_800_000_000)
    #expect(peers.comparisons <= Limits().reconcileRefusalsMax)
    #expect(left.first?.to == nil && left.last?.from == 0)
    // Nothing between the parts is lost.
    for (newer, older) in zip(left, left.dropFirst()) {
      #expect(older.to.map { $0 + 1 } == newer.from)
    }
  }

  @Test(arguments: [
    NegotiationRefusal.unsupported("blocked: Negentropy sync is disabled"), .silent,
  ])
  func `a relay that does not do it is asked once and never in smaller windows`(
    refusal: NegotiationRefusal
  ) throws {
    var peers = Peers()
    peers.refusal = refusal
    var run = machine([HistoryWalk.Leg(from: 500), HistoryWalk.Leg(from: 0, to: 100)])
    #expect(
      try peers.run(&run) == [HistoryWalk.Leg(from: 500), HistoryWalk.Leg(from: 0, to: 100)])
    #expect(peers.comparisons == 1)
    #expect(peers.findings == HistoryWalk.Findings())
  }

  @Test
  func `an event that is listed and never delivered keeps the window unproven, by that reason`()
    throws
  {
    var peers = Peers()
    peers.relay = positions(3000, seconds: 900)
    peers.withheld = [peers.relay[1234].id]
    var run = machine()
    #expect(try peers.run(&run) == [])
    #expect(peers.log.count == 2999)
    #expect(peers.findings.proofs == [])
    #expect(
      peers.findings.gaps.map(\.why) == ["the relay lists an event and does not deliver"])
    #expect(peers.comparisons == 2)
  }

  @Test func `an event that is not what was listed leaves its second unproven and no more`() throws
  {
    var run = machine()
    guard case .compare = run.next(now: 10_000) else { return }
    let all = positions(100, seconds: 50)
    _ = run.compared(.done(missing: all.map(\.id), isSeen: true, isWhole: true))
    let doubt = PageTally.Doubt(id: all[7].id, newest: 1007, oldest: 1007)
    let found = run.fetched(Set(all.map(\.id)), doubts: [doubt], .complete(.none))
    #expect(found.gaps.map(\.span) == [HistoryWalk.Span(from: 1007, to: 1007)])
    #expect(
      found.proofs == [
        HistoryWalk.Span(from: 0, to: 1006), HistoryWalk.Span(from: 1008, to: 10_000),
      ])
  }

  @Test func `an event that is gone when it is asked for is no gap`() throws {
    var peers = Peers()
    peers.relay = positions(100, seconds: 50)
    let gone = peers.relay[7].id
    var run = machine()
    guard case .compare = run.next(now: 10_000) else { return }
    _ = run.compared(.done(missing: peers.relay.map(\.id), isSeen: true, isWhole: true))
    while case .fetch(let ids) = run.next(now: 10_000) {
      _ = run.fetched(Set(ids).subtracting([gone]), .complete(.none))
    }
    peers.log = ids(peers.relay)
    peers.relay.remove(at: 7)
    #expect(try peers.run(&run) == [])
    #expect(peers.findings.proofs.count == 1 && peers.findings.gaps == [])
  }

  @Test func `what is missing beyond the bound is found by another comparison`() throws {
    var peers = Peers()
    peers.relay = positions(5000, seconds: 900)
    peers.listedMax = 700
    var run = machine()
    #expect(try peers.run(&run) == [])
    #expect(peers.log == ids(peers.relay))
    #expect(peers.findings.proofs.count == 1)
  }

  // F185.
  @Test func `a local copy over the bound is compared in windows`() throws {
    var peers = Peers()
    peers.relay = positions(5000, seconds: 900)
    peers.offered = Array(peers.relay.dropLast(10))
    peers.log = ids(peers.offered)
    peers.itemsMax = 1000
    var run = machine()
    #expect(try peers.run(&run) == [])
    #expect(peers.log == ids(peers.relay))
    #expect(CoverageMap(peers.intervals).contains(from: 0, to: 10_000))
  }

  @Test func `windows that were cut leave out no second of a relay with an exclusive until`() throws
  {
    var peers = Peers()
    peers.relay = positions(4000, seconds: 3600)
    peers.cap = 500
    peers.isUntilExclusive = true
    var run = machine()
    #expect(try peers.run(&run) == [])
    #expect(peers.log == ids(peers.relay))
  }

  @Test func `a relay that shows nothing proves nothing where it may not be serving us`() throws {
    var peers = Peers()
    peers.offered = positions(10, seconds: 5)
    var run = machine { $0.needsSight = true }
    #expect(try peers.run(&run) == [HistoryWalk.Leg()])
    #expect(peers.findings.proofs == [])
    var served = machine()
    #expect(try peers.run(&served) == [])
    #expect(peers.findings.proofs.count == 1)
  }

  // F177.
  @Test func `each comparison has one filter of its scope, within what was asked for`() throws {
    var peers = Peers()
    peers.relay = positions(900, seconds: 900)
    peers.cap = 200
    var run = machine([HistoryWalk.Leg(from: 1100, to: 1800)]) { options in
      options.floor = 1100
      options.ceiling = 1800
    }
    #expect(try peers.run(&run) == [])
    #expect(peers.filters.count > 3)
    for filter in peers.filters {
      #expect(filter.kinds == [9] && filter.limit == nil)
      #expect((filter.since ?? 0) >= 1100 && (filter.until ?? .init(.max)) <= 1800)
    }
    #expect(peers.log.count == 701)
  }

  @Test func `requests that are refused are made smaller`() throws {
    var run = machine()
    guard case .compare = run.next(now: 10_000) else { return }
    let all = positions(3000, seconds: 900).map(\.id)
    _ = run.compared(.done(missing: all, isSeen: true, isWhole: true))
    var got: Set<EventID> = []
    var proofs = 0
    while case .fetch(let ids) = run.next(now: 10_000) {
      if ids.count > 200 {
        _ = run.fetched([], .refused("invalid: filter too large"))
      } else {
        got.formUnion(ids)
        proofs += run.fetched(Set(ids), .complete(.none)).proofs.count
      }
    }
    #expect(got == Set(all) && proofs == 1)
  }

  @Test func `a connection that is lost again and again leaves the window to pages`() throws {
    var run = machine()
    var times = 0
    while case .compare = run.next(now: 10_000) {
      times += 1
      try #require(times < 100)
      _ = run.compared(.ended(.disconnected))
    }
    #expect(times == Limits().walkDisconnectsMax)
    guard case .ended(let left) = run.next(now: 10_000) else { return }
    // Less was compared at once before it was given up; nothing between the parts is lost.
    #expect(left.count > 1 && left.first?.to == nil && left.last?.from == 0)
    for (newer, older) in zip(left, left.dropFirst()) {
      #expect(older.to.map { $0 + 1 } == newer.from)
    }
    #expect(run.isLost)
  }

  /// Fetches what is missing from a relay whose connections end after so many events of a request.
  private func fetch(
    _ all: [EventPosition], losing bound: @escaping (Int) -> Int?
  ) -> (requests: Int, got: Set<EventID>, left: [HistoryWalk.Leg]?, proofs: Int) {
    var run = machine()
    guard case .compare = run.next(now: 10_000) else { return (0, [], nil, 0) }
    _ = run.compared(.done(missing: all.map(\.id), isSeen: true, isWhole: true))
    var (requests, proofs) = (0, 0)
    var got: Set<EventID> = []
    while case .fetch(let ids) = run.next(now: 10_000), requests < 20_000 {
      requests += 1
      let lasting = bound(ids.count)
      let some = Set(ids.prefix(lasting ?? ids.count))
      got.formUnion(some)
      proofs +=
        run.fetched(some, lasting == nil ? .complete(.none) : .disconnected).proofs.count
    }
    guard case .ended(let left) = run.next(now: 10_000) else { return (requests, got, nil, proofs) }
    return (requests, got, left, proofs)
  }

  @Test func `a relay that loses every request midway is left after a few, whatever came`() {
    let run = fetch(positions(3000, seconds: 900)) { $0 / 2 }
    #expect(run.requests == Limits().walkDisconnectsMax)
    #expect(run.left == [HistoryWalk.Leg()] && run.proofs == 0)
  }

  @Test(arguments: [0, 1, 7, 120])
  func `a relay that loses large requests is asked for less at once`(lasting: Int) {
    let all = positions(400, seconds: 90)
    let run = fetch(all) { $0 > max(lasting, 8) ? lasting : nil }
    #expect(run.got.count == 400 && run.left == [] && run.proofs == 1)
    #expect(run.requests < 150)
  }

  @Test func `only what is planned of what is left is walked`() {
    let plan = [HistoryWalk.Leg(from: 900), HistoryWalk.Leg(from: 100, to: 200)]
    let left = [HistoryWalk.Leg(from: 950), HistoryWalk.Leg(from: 0, to: 150)]
    #expect(
      SyncPlan.legs(plan, within: left) == [
        HistoryWalk.Leg(from: 950), HistoryWalk.Leg(from: 100, to: 150),
      ])
    #expect(SyncPlan.legs(plan, within: [HistoryWalk.Leg()]) == plan)
    #expect(SyncPlan.legs(plan, within: []) == [])
  }
}

extension Peers {
  fileprivate var intervals: [CoverageInterval] {
    findings.proofs.map { span in
      CoverageInterval(from: span.from, to: span.to, provedAt: 10_000, method: .negentropy)
    }
  }
}
