import Nostr
import Testing

@testable import SyncCore

/// A relay's channel as windows show it, with habits that can be switched on.
private struct ModelWindows {
  static let key = PublicKey(Bytes32([UInt8](repeating: 7, count: 32)) ?? .zero)
  static let other = PublicKey(Bytes32([UInt8](repeating: 8, count: 32)) ?? .zero)

  var rows: [Event] = []
  var rowsMax = 200
  var projectsReplies = true
  /// Scanned, and never delivered.
  var unserved: Set<EventID> = []
  var signer = key
  var isCursorStuck = false
  private(set) var requests: [ChannelWindowRequest] = []
  private(set) var delivered: Set<EventID> = []

  static func event(
    _ number: Int, at second: Int64, kind: EventKind = 9, group: Text? = "g",
    by author: PublicKey = other, content: Text = "", tags: [[Text]]? = nil
  ) -> Event {
    var id = [UInt8](repeating: 0, count: 32)
    for place in 0..<8 { id[31 - place] = UInt8(truncatingIfNeeded: number >> (8 * place)) }
    return Event(
      id: EventID(Bytes32(id) ?? .zero), pubkey: author, createdAt: Timestamp(second), kind: kind,
      tags: Tags(tags ?? group.map { [["h", $0]] } ?? []), content: content,
      sig: Signature(first: .zero, second: .zero))
  }

  mutating func answer(_ request: ChannelWindowRequest, now: Timestamp) -> [Event] {
    requests.append(request)
    let sorted = rows.sorted { $1.position.comesAfter($0.position) }
    let behind = sorted.filter { row in
      request.cursor.map { row.position.comesAfter($0) } ?? true
    }
    let limit = min(request.limit, rowsMax)
    let scanned = behind.prefix(limit)
    let shown = scanned.filter { !unserved.contains($0.id) }
    delivered.formUnion(shown.map(\.id))
    let next = behind.count > limit ? scanned.last?.position : nil
    return shown + [bounds(request, next: isCursorStuck ? request.cursor ?? next : next)]
  }

  func bounds(_ request: ChannelWindowRequest, next: EventPosition?) -> Event {
    let cursor = next.map { #"{"created_at":\#($0.createdAt),"id":"\#($0.id.hex)"}"# } ?? "null"
    return Self.event(
      1 << 40, at: 0, kind: 39006, by: signer,
      content: Text(
        #"{"has_more":\#(next != nil),"next_cursor":\#(cursor),"#
          + #""thread_replies_in_channel":\#(projectsReplies)}"#),
      tags: [["d", request.bindingName], ["h", "g"]])
  }

  /// Runs a machine to its end; what it proved.
  mutating func run(
    _ machine: inout ChannelWindowMachine, now: Timestamp = 100_000
  ) -> (proofs: [HistoryWalk.Span], end: ChannelWindowMachine.End) {
    var proofs: [HistoryWalk.Span] = []
    for _ in 0..<20_000 {
      switch machine.next(now: now) {
      case .ended(let end): return (proofs, end)
      case .ask(let request):
        proofs +=
          machine.received(.events(answer(request, now: now), invalid: [], isSound: true)).proofs
      }
    }
    return (proofs, .tooMany)
  }
}

@Suite struct ChannelWindowTests {
  private let scope = Filter.group("g")
  private let whole = HistoryWalk.Leg(from: 0, to: nil)

  private func machine(
    _ change: (inout Limits) -> Void = { _ in }, leg: HistoryWalk.Leg? = nil
  ) throws -> ChannelWindowMachine {
    var limits = Limits()
    change(&limits)
    return try #require(
      ChannelWindowMachine(
        scope, leg: leg ?? whole, relayKey: ModelWindows.key, limits: limits))
  }

  private func channel(_ count: Int, each: Int = 1) -> [Event] {
    (0..<count).map { ModelWindows.event($0, at: Int64(1000 + $0 / each)) }
  }

  @Test
  func `the request has exactly the fields of the NIP, sorted, and both of the cursor or none`()
    throws
  {
    var request = try #require(
      ChannelWindowRequest(scope: .group("g", kinds: [9, 11]), limit: 200))
    #expect(
      String(decoding: request.body, as: UTF8.self)
        == ##"[{"#h":["g"],"include_aux":true,"kinds":[9,11],"limit":200,"top_level":true}]"##)
    request.cursor = EventPosition(createdAt: 5, id: EventID(.zero))
    #expect(String(decoding: request.body, as: UTF8.self).contains(#""before_id":"000"#))
    #expect(String(decoding: request.body, as: UTF8.self).contains(#""until":5"#))
    // Changes cannot be told from rows where they may be rows.
    #expect(try !#require(ChannelWindowRequest(scope: scope, limit: 1)).includesAux)
    let reactions = Filter.group("g", kinds: [7])
    #expect(try !#require(ChannelWindowRequest(scope: reactions, limit: 1)).includesAux)
  }

  @Test func `only one channel from its head down is read by windows`() {
    let letter = UInt8(ascii: "h")
    for filter in [
      Filter(), Filter(kinds: [9]), Filter(tags: [letter: ["a", "b"]]),
      Filter(tags: [letter: ["a"], UInt8(ascii: "p"): ["b"]]),
      Filter(authors: [ModelWindows.key], tags: [letter: ["a"]]),
    ] { #expect(ChannelWindowRequest(scope: filter, limit: 50) == nil) }
    #expect(
      ChannelWindowMachine(
        scope, leg: .init(from: 0, to: 50), relayKey: ModelWindows.key, limits: Limits()) == nil)
  }

  @Test func `full windows prove their seconds, and the last one is left to the walk`() throws {
    var relay = ModelWindows(rows: channel(1000))
    var machine = try machine()
    let (proofs, end) = relay.run(&machine)
    #expect(end == .reached)
    #expect(relay.delivered.count == 1000)
    // Four windows end at a row with more behind; the fifth is full and the last, so all is there.
    #expect(proofs.map(\.from) == [1801, 1601, 1401, 1201, 0])
    #expect(proofs.first?.to == 100_000)
    #expect(machine.left.isEmpty)
    relay = ModelWindows(rows: channel(1100))
    var longer = try self.machine()
    _ = relay.run(&longer)
    #expect(longer.left == [HistoryWalk.Leg(from: 0, to: 1100)])
  }

  @Test func `a second denser than a window is proved once all of its windows are whole`() throws {
    let older = ModelWindows.event(10_000, at: 100)
    var relay = ModelWindows(rows: channel(700, each: 700) + [older])
    var machine = try machine()
    let (proofs, _) = relay.run(&machine)
    #expect(relay.delivered.count == 701)
    #expect(proofs.contains { $0.from <= 1000 && $0.to >= 1000 } == false)
    // The windows of the second end in one that is not full, which is no proof.
    #expect(machine.left == [HistoryWalk.Leg(from: 0, to: 1000)])
    relay.rows += (0..<300).map { ModelWindows.event(20_000 + $0, at: Int64($0)) }
    var longer = try self.machine()
    let second = relay.run(&longer)
    #expect(second.proofs.contains { $0.from <= 1000 && $0.to >= 1000 })
  }

  @Test func `without replies in its rows a window proves nothing and the run ends`() throws {
    var relay = ModelWindows(rows: channel(1000))
    relay.projectsReplies = false
    var machine = try machine()
    let (proofs, end) = relay.run(&machine)
    #expect(end == .isTopLevelOnly && proofs.isEmpty)
    #expect(machine.left == [whole] && machine.hasRows && relay.requests.count == 1)
  }

  @Test func `a relay that caps its windows is asked for so many, and they prove as much`() throws {
    var relay = ModelWindows(rows: channel(1000))
    relay.rowsMax = 60
    var machine = try machine()
    let (proofs, end) = relay.run(&machine)
    #expect(end == .reached && relay.delivered.count == 1000)
    #expect(proofs.first == HistoryWalk.Span(from: 1941, to: 100_000))
    #expect(relay.requests.prefix(3).map(\.limit) == [200, 60, 60])
    #expect(machine.left == [HistoryWalk.Leg(from: 0, to: 1040)])
  }

  @Test func `a relay that gives only a few rows at once is left to pages`() throws {
    var relay = ModelWindows(rows: channel(1000))
    relay.rowsMax = 5
    var machine = try machine()
    let (proofs, end) = relay.run(&machine)
    #expect(proofs.isEmpty && machine.left == [whole])
    guard case .unusable = end else { return #expect(end == .reached) }
  }

  @Test func `a row that was scanned and not delivered leaves its window unproven`() throws {
    var relay = ModelWindows(rows: channel(1000))
    relay.unserved = [relay.rows[700].id]
    var machine = try machine()
    let (proofs, end) = relay.run(&machine)
    #expect(end == .reached)
    #expect(proofs.allSatisfy { $0.from > 1700 || $0.to < 1700 })
    #expect(machine.left.contains { $0.from <= 1700 && $0.to.map { $0 >= 1700 } ?? true })
    #expect(!proofs.isEmpty)
  }

  @Test func `an answer with anything that is no event of the channel proves nothing`() throws {
    let rows = channel(300)
    for spoil in [0, 1, 2] {
      var relay = ModelWindows(rows: rows)
      var machine = try machine()
      guard case .ask(let request) = machine.next(now: 100_000) else { return }
      var events = relay.answer(request, now: 100_000)
      if spoil == 1 { events.insert(ModelWindows.event(9999, at: 1, group: "other"), at: 0) }
      if spoil == 2 { events.swapAt(0, 1) }
      let findings = machine.received(
        .events(events, invalid: [], isSound: spoil != 0))
      #expect(findings.proofs.isEmpty, "\(spoil)")
    }
    var relay = ModelWindows(rows: rows)
    var machine = try machine()
    guard case .ask(let request) = machine.next(now: 100_000) else { return }
    let events = relay.answer(request, now: 100_000)
    #expect(!machine.received(.events(events, invalid: [], isSound: true)).proofs.isEmpty)
  }

  /// What makes bounds unusable, each by itself.
  private struct Spoilt {
    let what: String
    var copies = 1
    var author = ModelWindows.key
    var tags: [[Text]] = [["d", "g:head"], ["h", "g"]]
    var content: Text?

    static let all = [
      Spoilt(what: "none", copies: 0), Spoilt(what: "two", copies: 2),
      Spoilt(what: "another signer", author: ModelWindows.other),
      Spoilt(what: "another cursor", tags: [["d", "g:5:aa"], ["h", "g"]]),
      Spoilt(what: "another channel", tags: [["d", "g:head"], ["h", "x"]]),
      Spoilt(what: "a tag more", tags: [["d", "g:head"], ["h", "g"], ["x", "y"]]),
      Spoilt(what: "no JSON", content: "more"),
      Spoilt(what: "more and no cursor", content: #"{"has_more":true,"next_cursor":null}"#),
      Spoilt(
        what: "a cursor and no more",
        content: Text(
          #"{"has_more":false,"next_cursor":{"created_at":5,"id":""#
            + String(repeating: "a", count: 64) + #""}}"#)),
      Spoilt(
        what: "a malformed cursor",
        content: #"{"has_more":true,"next_cursor":{"created_at":5,"id":"a"}}"#),
      Spoilt(
        what: "a flag of the wrong type",
        content: #"{"has_more":false,"next_cursor":null,"thread_replies_in_channel":1}"#),
    ]

    func events(of bounds: Event) -> [Event] {
      let event = Event(
        id: bounds.id, pubkey: author, createdAt: bounds.createdAt, kind: bounds.kind,
        tags: Tags(tags), content: content ?? bounds.content, sig: bounds.sig)
      return Array(repeating: event, count: copies)
    }
  }

  @Test(arguments: Spoilt.all.map(\.what))
  func `a window without good bounds is discarded and pages do all`(what: String) throws {
    let spoilt = try #require(Spoilt.all.first { $0.what == what })
    var relay = ModelWindows(rows: channel(1000))
    var machine = try machine()
    guard case .ask(let request) = machine.next(now: 100_000) else { return }
    let answer = relay.answer(request, now: 100_000)
    let rows = answer.dropLast()
    let bounds = try #require(answer.last)
    let findings = machine.received(
      .events(rows + spoilt.events(of: bounds), invalid: [], isSound: true))
    #expect(findings.proofs.isEmpty && machine.left == [whole])
    guard case .ended(.unusable) = machine.next(now: 100_000) else {
      return #expect(machine.next(now: 100_000) == .ended(.reached))
    }
    // The same answer with its own bounds is a window.
    var twin = try self.machine()
    _ = twin.next(now: 100_000)
    #expect(!twin.received(.events(answer, invalid: [], isSound: true)).proofs.isEmpty)
  }

  @Test func `bounds that do not verify beside good ones spoil the window too`() throws {
    var relay = ModelWindows(rows: channel(1000))
    var machine = try machine()
    guard case .ask(let request) = machine.next(now: 100_000) else { return }
    let answer = relay.answer(request, now: 100_000)
    let bounds = try #require(answer.last)
    _ = machine.received(.events(answer, invalid: [bounds], isSound: false))
    #expect(machine.projectsReplies == nil)
  }

  @Test func `a cursor that does not go on ends the run, and so does a change of what is shown`()
    throws
  {
    var relay = ModelWindows(rows: channel(1000))
    var machine = try machine()
    _ = step(&machine, &relay)
    relay.isCursorStuck = true
    _ = step(&machine, &relay)
    #expect(machine.next(now: 100_000) == .ended(.unusable("the windows do not go on")))
    #expect(machine.left == [HistoryWalk.Leg(from: 0, to: 1800)])
    var changing = ModelWindows(rows: channel(1000))
    var other = try self.machine()
    _ = step(&other, &changing)
    changing.projectsReplies = false
    _ = step(&other, &changing)
    #expect(other.left == [HistoryWalk.Leg(from: 0, to: 1800)])
    guard case .ended(.unusable) = other.next(now: 100_000) else {
      return #expect(Bool(false), "it went on")
    }
  }

  @Test func `a refusal of any kind leaves everything not proved yet to the walk`() throws {
    for refusal in [
      ChannelWindowRefusal.status(404), .status(401), .status(500), .unreadable, .failed("late"),
    ] {
      var relay = ModelWindows(rows: channel(1000))
      var machine = try machine()
      _ = step(&machine, &relay)
      _ = machine.next(now: 100_000)
      _ = machine.received(.refused(refusal))
      #expect(machine.next(now: 100_000) == .ended(.refused(refusal)))
      #expect(machine.left == [HistoryWalk.Leg(from: 0, to: 1800)])
    }
  }

  private func step(
    _ machine: inout ChannelWindowMachine, _ relay: inout ModelWindows
  ) -> HistoryWalk.Findings {
    guard case .ask(let request) = machine.next(now: 100_000) else { return .init() }
    return machine.received(
      .events(relay.answer(request, now: 100_000), invalid: [], isSound: true))
  }

  @Test(arguments: Seeds.kept)
  func `whatever the relay withholds, nothing is proved that did not come`(seed: UInt64) throws {
    let random = SeededRandom(seed)
    var relay = ModelWindows(
      rows: (0..<random.below(900)).map { number in
        ModelWindows.event(
          number, at: random.chance(0.3) ? 5000 : Int64(random.below(9000)),
          kind: random.chance(0.2) ? 7 : 9)
      })
    relay.rowsMax = [200, 200, 100, 37][random.below(4)]
    relay.projectsReplies = random.chance(0.9)
    if random.chance(0.5) {
      relay.unserved = Set(relay.rows.filter { _ in random.chance(0.01) }.map(\.id))
    }
    let leg = HistoryWalk.Leg(from: random.chance(0.5) ? 0 : Timestamp(Int64(random.below(8000))))
    var machine = try machine(leg: leg)
    let (proofs, _) = relay.run(&machine, now: 9500)
    for row in relay.rows where !relay.delivered.contains(row.id) {
      #expect(!proofs.contains { $0.from <= row.createdAt && row.createdAt <= $0.to })
    }
    // Every second of the leg is proved or left, and none is both.
    for second in stride(from: leg.from.seconds, through: 9500, by: 7).map({ Timestamp($0) }) {
      let isProved = proofs.contains { $0.from <= second && second <= $0.to }
      let isLeft = machine.left.contains {
        $0.from <= second && $0.to.map { second <= $0 } ?? true
      }
      #expect(isProved != isLeft, "second \(second)")
    }
  }

  @Test(arguments: [
    ChannelWindowMachine.End.unusable("no window came"), .refused(.unreadable),
  ])
  func `a relay that was found again to have no windows is left alone again`(
    end: ChannelWindowMachine.End
  ) {
    let limits = Limits()
    var support = WindowSupport.unknown
    var now = Duration.zero
    for _ in 0..<3 {
      #expect(!support.isRefused(at: now, limits))
      support.learn(end, projectsReplies: nil, at: now)
      #expect(support.isRefused(at: now, limits))
      now += limits.windowRetryAfter
    }
    // The twin: one channel without a window says nothing of a relay that has given some.
    support.learn(.reached, projectsReplies: true, at: now)
    support.learn(.unusable("no window came"), projectsReplies: nil, at: now)
    #expect(support == .served(projectsReplies: true))
  }
}
