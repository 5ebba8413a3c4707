import Nostr
import NostrCrypto
import RelayServer
import SyncCore
import Testing

/// Windows of a channel as the relay serves them (NIP-CW).
@Suite struct WindowTests {
  private func rules(
    _ windows: ReadingRules.Windows = .served(rowsMax: 200, projectsReplies: true),
    _ change: (inout RelayRules) -> Void = { _ in }
  ) -> RelayRules {
    var rules = RelayRules()
    rules.reading.windows = windows
    change(&rules)
    return rules
  }

  /// Asks and gives the status and the events.
  private func ask(
    _ body: String, of bench: inout Bench, authorization: String? = nil, path: String = "/query"
  ) -> (status: Int?, events: [Event]) {
    let question = ServedQuestion(
      path: path, body: Array(body.utf8), authorization: authorization)
    guard let reply = bench.machine.answer(question, now: bench.now) else { return (nil, []) }
    let results = (try? EventScanner.list(reply.body, countMax: 10_000)) ?? []
    return (reply.status, results.compactMap { try? $0.get() })
  }

  /// What says that ann asks.
  private func header(
    _ body: String, url: String = "http://relay.test:7000/query", method: String = "POST",
    at time: Timestamp = Bench.start
  ) -> String {
    let event = Bench.event(
      by: "ann", 27235,
      [["u", url], ["method", method], ["payload", SHA256.hash(Array(body.utf8)).hex]], "",
      at: time)
    return "Nostr " + String(decoding: Base64.encode(event.json()), as: UTF8.self)
  }

  private func rows(_ answer: [Event]) -> [Event] {
    answer.filter { $0.kind != 39005 && $0.kind != 39006 }
  }

  private func bounds(_ answer: [Event]) throws -> JSONValue {
    let all = answer.filter { $0.kind == 39006 }
    try #require(all.count == 1)
    #expect(all[0].pubkey == Bench.relayKey.publicKey)
    return try JSONValue.parse(all[0].content)
  }

  /// A bench with a channel of `count` messages, `each` of them a second.
  private func channel(_ count: Int, each: Int, _ rules: RelayRules) throws -> (Bench, [Event]) {
    var bench = Bench(rules)
    bench.found("a", by: "ann")
    let events = (0..<count).map { number in
      Bench.event(
        by: "ann", 9, [["h", "a"]], "\(number)", at: Bench.start - 100 + Int64(number / each))
    }
    try bench.machine.load(events)
    return (bench, events)
  }

  @Test func `windows chained by their own cursor give every row once, dense seconds too`() throws {
    var (bench, events) = try channel(60, each: 25, rules())
    var seen: [Event] = []
    var cursor = ""
    for _ in 0..<20 {
      let answer = ask(
        ##"[{"#h":["a"],"kinds":[9],"top_level":true,"limit":7\##(cursor)}]"##, of: &bench)
      #expect(answer.status == 200)
      seen += rows(answer.events)
      let bounds = try bounds(answer.events)
      guard bounds["has_more"]?.bool == true, let next = bounds["next_cursor"] else { break }
      let (time, id) = (next["created_at"]?.int ?? 0, next["id"]?.string?.string ?? "")
      #expect(rows(answer.events).count == 7)
      cursor = #","until":\#(time),"before_id":"\#(id)""#
    }
    #expect(seen.count == 60 && Set(seen) == Set(events))
    let isOrdered = zip(seen, seen.dropFirst()).allSatisfy { first, second in
      first.createdAt != second.createdAt
        ? first.createdAt > second.createdAt : first.id < second.id
    }
    #expect(isOrdered)
  }

  @Test func `an exact last window says that there is no more`() throws {
    var (bench, _) = try channel(10, each: 1, rules())
    let exact = ask(##"[{"#h":["a"],"kinds":[9],"top_level":true,"limit":10}]"##, of: &bench)
    #expect(rows(exact.events).count == 10)
    #expect(try bounds(exact.events)["has_more"]?.bool == false)
    let short = ask(##"[{"#h":["a"],"kinds":[9],"top_level":true,"limit":9}]"##, of: &bench)
    #expect(rows(short.events).count == 9)
    #expect(try bounds(short.events)["has_more"]?.bool == true)
  }

  @Test(arguments: [true, false])
  func `replies are rows only where the relay projects them, a broadcast one always`(
    projects: Bool
  ) throws {
    var (bench, events) = try channel(
      1, each: 1, rules(.served(rowsMax: 200, projectsReplies: projects)))
    let root = events[0].id.hex
    func reply(_ text: String, to parent: String, _ more: [[String]] = []) -> Event {
      Bench.event(
        by: "bob", 9, [["h", "a"], ["e", root, "", "root"], ["e", parent, "", "reply"]] + more,
        text, at: Bench.start - 50)
    }
    let quiet = reply("quiet", to: root)
    let loud = reply("loud", to: root, [["broadcast", "1"]])
    let deep = reply("deep", to: quiet.id.hex, [["broadcast", "1"]])
    try bench.machine.load([quiet, loud, deep])
    let answer = ask(
      ##"[{"#h":["a"],"kinds":[9],"top_level":true,"include_summaries":true}]"##, of: &bench)
    let expected = projects ? events + [quiet, loud, deep] : events + [loud]
    #expect(Set(rows(answer.events)) == Set(expected))
    #expect(try bounds(answer.events)["thread_replies_in_channel"]?.bool == projects)
    let summary = try #require(
      answer.events.first { $0.kind == 39005 && $0.identifier == Text(root) })
    let content = try JSONValue.parse(summary.content)
    #expect(content["reply_count"]?.int == 2 && content["descendant_count"]?.int == 3)
    #expect(content["participants"]?.array == [.string(Text(Bench.hex("bob")))])
  }

  @Test func `a summary counts what its reader may see and nothing else`() throws {
    var (bench, events) = try channel(1, each: 1, rules())
    bench.found("secret", by: "ann", [["private"]])
    let root = events[0].id.hex
    func reply(by name: String, in group: String) -> Event {
      Bench.event(
        by: name, 9, [["h", group], ["e", root, "", "reply"]], name, at: Bench.start - 50)
    }
    try bench.machine.load([reply(by: "bob", in: "secret")])
    let body = ##"[{"#h":["a"],"kinds":[9],"top_level":true,"include_summaries":true}]"##
    func summary(_ authorization: String? = nil) throws -> JSONValue? {
      let answer = ask(body, of: &bench, authorization: authorization)
      #expect(answer.status == 200)
      return try answer.events.first { $0.kind == 39005 && $0.identifier == Text(root) }
        .map { try JSONValue.parse($0.content) }
    }
    #expect(try summary() == nil)
    #expect(try summary(header(body))?["reply_count"]?.int == 1)
    try bench.machine.load([reply(by: "cat", in: "a")])
    let open = try #require(try summary())
    #expect(open["reply_count"]?.int == 1 && open["descendant_count"]?.int == 1)
    #expect(open["participants"]?.array == [.string(Text(Bench.hex("cat")))])
    #expect(try summary(header(body))?["reply_count"]?.int == 2)
  }

  @Test func `of two reply marks the last one counts, as everywhere`() throws {
    var (bench, events) = try channel(2, each: 1, rules())
    let ids = events.map(\.id.hex)
    try bench.machine.load([
      Bench.event(
        by: "bob", 9, [["h", "a"]] + ids.map { ["e", $0, "", "reply"] }, at: Bench.start - 50)
    ])
    let answer = ask(
      ##"[{"#h":["a"],"kinds":[9],"top_level":true,"include_summaries":true}]"##, of: &bench)
    #expect(answer.events.filter { $0.kind == 39005 }.map(\.identifier) == [Text(ids[1])])
  }

  @Test func `a store that fails amid a window is no window`() throws {
    let broadcast = Bench.event(
      by: "bob", 9,
      [["h", "a"], ["e", String(repeating: "a", count: 64), "", "reply"], ["broadcast", "1"]])
    for isFailing in [true, false] {
      var store = LosingStore(isFailing: isFailing)
      _ = try store.insert(broadcast, scope: nil)
      var bench = Bench(
        rules(.served(rowsMax: 200, projectsReplies: false)) { $0.groups.areManaged = false },
        store: store)
      let answer = ask(##"[{"#h":["a"],"kinds":[9],"top_level":true}]"##, of: &bench)
      #expect(answer.status == (isFailing ? 500 : 200))
      #expect(rows(answer.events) == (isFailing ? [] : [broadcast]))
    }
  }

  @Test func `what changes the rows comes with them where it is wanted`() throws {
    var (bench, events) = try channel(2, each: 1, rules())
    let reaction = Bench.event(
      by: "bob", 7, [["h", "a"], ["e", events[0].id.hex]], "+", at: Bench.start - 20)
    let edit = Bench.event(
      by: "ann", 40003, [["h", "a"], ["e", events[1].id.hex]], "new", at: Bench.start - 20)
    try bench.machine.load([reaction, edit])
    let with = ask(
      ##"[{"#h":["a"],"kinds":[9],"top_level":true,"include_aux":true}]"##, of: &bench)
    #expect(Set(rows(with.events)) == Set(events + [reaction, edit]))
    let without = ask(##"[{"#h":["a"],"kinds":[9],"top_level":true}]"##, of: &bench)
    #expect(Set(rows(without.events)) == Set(events))
  }

  @Test(arguments: [
    #""top_level":true"#, ##""#h":["a","b"],"top_level":true"##,
    ##""#h":["a"],"top_level":true,"until":5"##,
    ##""#h":["a"],"top_level":true,"before_id":"\##(String(repeating: "a", count: 64))""##,
    ##""#h":["a"],"top_level":true,"until":5,"before_id":"aa""##,
    ##""#h":["a"],"top_level":true,"until":-5,"before_id":"\##(String(repeating: "a", count: 64))""##,
  ])
  func `no single channel and half a cursor are refused`(members: String) throws {
    var (bench, _) = try channel(2, each: 1, rules())
    #expect(ask("[{\(members)}]", of: &bench).status == 400)
    #expect(ask(##"[{"#h":["a"],"top_level":true}]"##, of: &bench).status == 200)
  }

  @Test func `a channel that is not there or not for this reader gives no window at all`() throws {
    var (bench, _) = try channel(2, each: 1, rules())
    bench.found("secret", by: "ann", [["private"]])
    for group in ["nowhere", "secret"] {
      let answer = ask(##"[{"#h":["\##(group)"],"top_level":true}]"##, of: &bench)
      #expect(answer.status == 200 && answer.events.isEmpty, "\(group)")
    }
    bench.found("empty", by: "ann")
    let empty = ask(##"[{"#h":["empty"],"kinds":[9],"top_level":true}]"##, of: &bench)
    #expect(try bounds(empty.events)["has_more"]?.bool == false)
  }

  @Test func `anything but true selects an ordinary page`() throws {
    var (bench, events) = try channel(3, each: 1, rules())
    for value in ["false", "1", #""true""#] {
      let answer = ask(
        ##"[{"#h":["a"],"kinds":[9],"top_level":\##(value)}]"##, of: &bench)
      #expect(answer.status == 200 && Set(answer.events) == Set(events), "\(value)")
    }
  }

  @Test func `whoever must say who they are signs the very question`() throws {
    var (bench, events) = try channel(3, each: 1, rules { $0.authentication.isNeededToRead = true })
    let body = ##"[{"#h":["a"],"kinds":[9],"top_level":true}]"##
    let good = ask(body, of: &bench, authorization: header(body))
    #expect(good.status == 200 && Set(rows(good.events)) == Set(events))
    let bad: [String?] = [
      nil, "Nostr !", header("other"), header(body, url: "http://other.test/query"),
      header(body, method: "GET"), header(body, at: Bench.start - 61),
    ]
    for authorization in bad {
      #expect(ask(body, of: &bench, authorization: authorization).status == 401)
    }
  }

  @Test func `each way not to serve windows is its own`() throws {
    let body = ##"[{"#h":["a"],"top_level":true}]"##
    func status(_ windows: ReadingRules.Windows) throws -> Int? {
      var (bench, _) = try channel(1, each: 1, rules(windows))
      return ask(body, of: &bench).status
    }
    #expect(try status(.unserved) == 404)
    #expect(try status(.refused(status: 401)) == 401)
    #expect(try status(.ignored) == nil)
    var (bench, events) = try channel(1, each: 1, rules(.unread))
    let answer = ask(##"[{"#h":["a"],"kinds":[9],"top_level":true}]"##, of: &bench)
    #expect(answer.events == events)
    #expect(ask(body, of: &bench, path: "/other").status == 404)
    let document = try #require(RelayInformation(document: bench.machine.document))
    #expect(document.hasChannelWindows)
    let plain = Bench(rules(.unserved))
    #expect(RelayInformation(document: plain.machine.document)?.hasChannelWindows == false)
  }
}

/// A store that finds events by a filter and, where it fails, none by its id.
private struct LosingStore: RelayStore {
  let isFailing: Bool
  private var held = MemoryStore()

  init(isFailing: Bool) { self.isFailing = isFailing }

  func record(of id: EventID) throws(RelayStoreError) -> Event? { held.record(of: id) }

  func record(of address: EventAddress) throws(RelayStoreError) -> Event? {
    held.record(of: address)
  }

  func event(_ id: EventID) throws(RelayStoreError) -> Event? {
    if isFailing { throw .failed("gone") }
    return held.event(id)
  }

  func scan(_ filter: Filter, sizeHint: Int, _ body: (Event) -> Bool) throws(RelayStoreError) {
    held.scan(filter, sizeHint: sizeHint, body)
  }

  mutating func insert(
    _ event: Event, scope: Text?, replacesVersions: Bool
  ) throws(RelayStoreError) -> Insertion {
    held.insert(event, scope: scope, replacesVersions: replacesVersions)
  }

  mutating func bury(_ id: EventID, by author: PublicKey?) throws(RelayStoreError) {
    held.bury(id, by: author)
  }

  mutating func bury(_ address: EventAddress, upTo time: Timestamp) throws(RelayStoreError) {
    held.bury(address, upTo: time)
  }

  mutating func forget(except isKept: (Event) -> Bool) throws(RelayStoreError) {
    held.forget(except: isKept)
  }
}
