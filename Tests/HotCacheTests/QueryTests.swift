import Nostr
import SyncCore
import Testing

@testable import HotCache

struct QueryTests {
  /// Events of regular kinds, many in one second and some with dates far beyond 2106, so that
  /// nothing but the filter decides.
  private static func corpus(_ seed: UInt64) -> [Event] {
    var dice = Dice(seed)
    var events: [Event] = []
    for number in 0..<400 {
      var tags: [[String]] = []
      if dice.below(3) > 0 { tags.append(["h", dice.pick(["g", "x", "caf\u{e9}"])]) }
      if dice.below(3) == 0, let target = events.last { tags.append(["e", target.id.hex]) }
      if dice.below(4) == 0 { tags.append(["e", "not an id"]) }
      if dice.below(3) == 0 { tags.append(["p", person(UInt8(dice.below(4))).hex]) }
      if dice.below(5) == 0 { tags.append(["t", dice.pick(["a", "b"])]) }
      if dice.below(5) == 0 { tags.append(["t"]) }
      let far = dice.below(20) == 0
      let time = far ? Int64(5_000_000_000 + dice.below(3)) : Int64(100 + dice.below(30))
      events.append(
        event(
          dice.pick([1, 7, 9, 11, 1111, 40003]), by: UInt8(1 + dice.below(4)), at: time, tags,
          "\(number)"))
    }
    return events
  }

  private static func filter(_ dice: inout Dice, _ events: [Event]) -> Filter {
    var filter = Filter()
    if dice.below(6) == 0 { filter.ids = (0..<5).map { _ in dice.pick(events).id } }
    if dice.below(3) == 0 {
      filter.authors = (0...dice.below(3)).map { _ in person(UInt8(1 + dice.below(5))) }
    }
    if dice.below(3) == 0 { filter.kinds = dice.pick([[9], [9, 7], [1, 11, 1111], [40003, 2]]) }
    if dice.below(3) == 0 { filter.tags[UInt8(ascii: "h")] = dice.pick([["g"], ["g", "x"]]) }
    if dice.below(4) == 0 {
      filter.tags[UInt8(ascii: "e")] = [Text(dice.pick(events).id.hex), "not an id"]
    }
    if dice.below(4) == 0 { filter.tags[UInt8(ascii: "p")] = [Text(person(2).hex)] }
    if dice.below(5) == 0 { filter.tags[UInt8(ascii: "t")] = ["a", "b"] }
    if dice.below(3) == 0 { filter.since = Timestamp(Int64(100 + dice.below(30))) }
    if dice.below(3) == 0 { filter.until = Timestamp(Int64(100 + dice.below(40))) }
    if dice.below(5) == 0 { filter.until = Timestamp(5_000_000_001) }
    if dice.below(2) == 0 { filter.limit = dice.below(30) }
    return filter
  }

  @Test(arguments: 1...4)
  func `any filter gives what looking at every event gives`(seed: UInt64) throws {
    let events = Self.corpus(seed)
    let log = ArrayLog()
    log.append(events)
    let cache = try views(log)
    var dice = Dice(seed &+ 77)
    for _ in 0..<150 {
      let filter = Self.filter(&dice, events)
      let matching = events.filter { filter.matches($0) }.sorted { left, right in
        left.createdAt != right.createdAt ? left.createdAt > right.createdAt : left.id < right.id
      }
      let expected = matching.prefix(filter.limit ?? .max).map(\.id)
      #expect(try ids(filter, cache, log) == Array(expected), "seed \(seed): \(filter)")
      try cache.read { view throws(CacheError) in
        #expect(try view.count([filter], now: noon) == matching.count)
        #expect(
          try view.items(filter, now: noon) == matching.map(\.position).sorted(), "\(filter)")
      }
    }
  }

  @Test func `limits bound each filter alone, and no event comes twice`() throws {
    let events = (0..<10).map { message("\($0)", by: UInt8(1 + $0 % 2), at: Int64($0)) }
    try views(events).read { view throws(CacheError) in
      let both = [
        Filter(authors: [person(1)], limit: 2), Filter(authors: [person(2)], limit: 3),
        Filter(kinds: [9], limit: 1),
      ]
      #expect(try view.query(both, now: noon).map(\.number) == [10, 9, 8, 7, 6])
      #expect(try view.query(both, now: noon, limit: 2).map(\.number) == [10, 9])
      #expect(try view.query([Filter(limit: 0)], now: noon).isEmpty)
      #expect(try view.query([Filter(kinds: [])], now: noon).isEmpty)
      #expect(try view.query([Filter(since: 5, until: 4)], now: noon).isEmpty)
      #expect(try view.count(both, now: noon) == 10)
    }
  }

  @Test func `a page of items goes on after a position`() throws {
    let events = (0..<30).map { message("\($0)", at: Int64($0 / 10)) }
    try views(events).read { view throws(CacheError) in
      var found: [EventPosition] = []
      while true {
        let page = try view.items(Filter(), after: found.last, limit: 4, now: noon)
        if page.isEmpty { break }
        found += page
      }
      #expect(found == events.map(\.position).sorted())
    }
  }

  @Test func `ids with one prefix are ordered by the whole id`() throws {
    let twins = (0..<50).map { number -> Event in
      let tail = [UInt8](repeating: 0, count: 23) + [UInt8(49 - number)]
      let bytes = [UInt8](repeating: 9, count: 8) + tail
      let base = message("\(number)", at: 10)
      return Event(
        id: EventID(Bytes32(bytes) ?? .zero), pubkey: base.pubkey, createdAt: base.createdAt,
        kind: base.kind, tags: base.tags, content: base.content, sig: base.sig)
    }
    let expected = twins.map(\.id).sorted()
    #expect(try ids(Filter(kinds: [9]), twins) == expected)
    #expect(try ids(Filter(kinds: [9], limit: 7), twins) == Array(expected.prefix(7)))
    try views(twins).read { view throws(CacheError) in
      #expect(try view.timeline("g", limit: 50, now: noon).map(\.id) == expected)
      for twin in twins { #expect(try view.message(twin.id, now: noon)?.text == twin.content) }
    }
  }
}
