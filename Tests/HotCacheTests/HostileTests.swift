import EventLog
import Nostr
import Testing

@testable import HotCache

struct HostileTests {
  @Test func `a deletion with a thousand targets takes the author's own and no other`() throws {
    let mine = (0..<1000).map { message("m\($0)", by: 1, at: Int64($0)) }
    let theirs = message("theirs", by: 2, at: 5000)
    let tags = (mine + [theirs]).map { ["e", $0.id.hex] }
    let events = mine + [theirs, event(5, by: 1, at: 6000, tags)]
    #expect(try ids(Filter(kinds: [9]), events) == [theirs.id])
  }

  @Test func `replies that name each other end nowhere`() throws {
    func tags(_ parent: UInt64) -> [[String]] {
      let id = message("", at: 1, id: parent).id.hex
      return [["e", id, "", "root"], ["e", id, "", "reply"]]
    }
    let one = message("one", at: 1, tags(2), id: 1)
    let two = message("two", at: 2, tags(1), id: 2)
    let own = message("own", at: 3, tags(3), id: 3)
    try views([one, two, own]).read { view throws(CacheError) in
      #expect(try view.thread(one.id, now: noon).map(\.text) == ["two"])
      #expect(try view.thread(two.id, now: noon).map(\.text) == ["one"])
      #expect(try view.thread(own.id, now: noon).map(\.replies) == [1])
      #expect(try view.timeline("g", now: noon).isEmpty)
    }
  }

  @Test func `tags of one element and empty names and values are no trouble`() throws {
    let odd = event(
      9, at: 10,
      [["h"], ["e"], [""], ["", ""], ["h", "g"], ["e", ""], ["p"], ["d"], ["expiration"]])
    let reaction = event(7, at: 11, [["e"]])
    let edit = event(40003, at: 12, [["e", "zz"]])
    let deletion = event(5, at: 13, [["e"], ["a"], ["a", ""], ["e", "ABC"]])
    let events = [odd, reaction, edit, deletion, event(39000, at: 1), event(44100, at: 1, [["p"]])]
    #expect(try ids(Filter(tags: [UInt8(ascii: "h"): ["g"]]), events) == [odd.id])
    #expect(try ids(Filter(tags: [UInt8(ascii: "e"): [""]]), events) == [odd.id])
    try views(events).read { view throws(CacheError) in
      #expect(try view.timeline("g", now: noon).map(\.id) == [odd.id])
      #expect(try Set(view.groups(now: noon).map(\.id)) == ["", "g"])
    }
  }

  @Test func `an expiration that is not a number is none`() throws {
    let values = [
      "", "x", "1e3", "99999999999999999999", "-1", "+5", " 5", "5 ", "05", "5.0", "0x5", "\u{665}",
      "5", "0",
    ]
    let events = values.enumerated().map {
      message("\($0.offset)", at: Int64($0.offset), [["expiration", $0.element]])
    }
    let shown = try ids(Filter(kinds: [9]), events)
    #expect(shown.count == values.count - 2)
    #expect(events.suffix(2).allSatisfy { !shown.contains($0.id) })
  }

  @Test func `a flood of foreign edits, deletions and reactions changes nothing`() throws {
    let target = message("text", by: 1, at: 10)
    var events = [target]
    for number in 0..<3000 {
      let author = PublicKey(
        Bytes32((0..<32).map { $0 < 2 ? UInt8(truncatingIfNeeded: number >> (8 * $0)) : 9 })
          ?? .zero)
      events.append(event(5, by: author, at: 20, [["e", target.id.hex]]))
      events.append(event(40003, by: author, at: 20, [["e", target.id.hex]], "\(number)"))
      events.append(event(7, by: author, at: 20, [["e", target.id.hex]], "\(number % 100)"))
    }
    events.append(event(40003, by: 1, at: 15, [["e", target.id.hex]], "mine"))
    try views(events).read { view throws(CacheError) in
      let row = try view.message(target.id, now: noon)
      #expect(row?.text == "mine")
      #expect(row?.isDeleted == false)
      #expect(row?.reactions.count == ViewLimits.emojiMax)
    }
  }

  @Test func `a group id of any length is stored, and listed up to a bound`() throws {
    let long = String(repeating: "x", count: GroupFold.idByteCountMax)
    let events = [message("one", at: 1, in: long), message("two", at: 2, in: long + "y")]
    try views(events).read { view throws(CacheError) in
      #expect(try view.groups(now: noon).map(\.id) == [Text(long)])
      #expect(try view.timeline(Text(long + "y"), now: noon).map(\.text) == ["two"])
    }
  }

  @Test(arguments: ["", String(repeating: "x", count: 3000)])
  func `a group with an odd id is listed like any other`(id: String) throws {
    try views([message("one", at: 1, in: id)]).read { view throws(CacheError) in
      #expect(try view.groups(now: noon).map(\.id) == [Text(id)])
      #expect(try view.timeline(Text(id), now: noon).map(\.text) == ["one"])
    }
  }

  @Test func `dates at both ends of the range are ordered`() throws {
    let times: [Int64] = [0, 1, 4_294_967_294, 4_294_967_295, 4_294_967_296, .max - 1, .max]
    let events = times.map { message("\($0)", at: $0) }
    #expect(try ids(Filter(kinds: [9]), events) == events.reversed().map(\.id))
    let until = Filter(until: Timestamp(4_294_967_295), limit: 2)
    #expect(try ids(until, events) == [events[3].id, events[2].id])
    try views(events).read { view throws(CacheError) in
      #expect(try view.timeline("g", now: noon).map(\.id) == events.map(\.id))
      let page = try view.timeline("g", .before(events[5].position), limit: 2, now: noon)
      #expect(page.map(\.id) == [events[3].id, events[4].id])
    }
  }

  @Test func `a message with a thousand e tags threads by its markers alone and is found by each`()
    throws
  {
    let others = (0..<1000).map { message("\($0)", by: 2, at: Int64($0)) }
    let marked = ["e", others[500].id.hex, "", "reply"]
    let many = message("many", at: 5000, others.map { ["e", $0.id.hex] } + [marked])
    let liked = event(7, by: 3, at: 6000, others.map { ["e", $0.id.hex] }, "+")
    try views(others + [many, liked]).read { view throws(CacheError) in
      #expect(try view.thread(others[500].id, now: noon).map(\.text) == ["many"])
      #expect(try view.message(others[999].id, now: noon)?.reactions.map(\.count) == [1])
      #expect(try view.message(others[0].id, now: noon)?.reactions.isEmpty == true)
      let filter = Filter(tags: [UInt8(ascii: "e"): [Text(others[7].id.hex)]])
      #expect(try view.query([filter], now: noon).count == 2)
    }
  }

  @Test func `a chain of three thousand replies is one flat thread, counted up to the bound`()
    throws
  {
    let root = message("root", at: 1)
    var chain = [root]
    for depth in 1...3000 {
      chain.append(reply("\(depth)", to: chain[depth - 1], root: root, by: 2, at: Int64(depth + 1)))
    }
    try views(chain).read { view throws(CacheError) in
      let row = try view.message(root.id, now: noon)
      #expect(row?.replies == ViewLimits.repliesMax)
      let page = try view.thread(root.id, limit: 50, now: noon)
      #expect(page.map(\.text) == (2951...3000).map { Text("\($0)") })
      #expect(try view.message(chain[3000].id, now: noon)?.replyTo == chain[2999].id)
      #expect(try view.timeline("g", now: noon).map(\.text) == ["root"])
    }
  }

  @Test func `a roster of a hundred thousand is counted whole, and one's own place in it is known`()
    throws
  {
    func key(_ number: Int) -> PublicKey {
      PublicKey(
        Bytes32((0..<32).map { $0 < 4 ? UInt8(truncatingIfNeeded: number >> (8 * $0)) : 9 })
          ?? .zero)
    }
    let people = (0..<100_000).map { ["p", key($0).hex] }
    let log = ArrayLog()
    log.append(
      [
        event(39000, by: relayKey, at: 1, [["d", "g"]]),
        event(39002, by: relayKey, at: 2, [["d", "g"]] + people, id: 77),
      ], from: relayA)
    log.append(.fact(.relaySelf(relayA, relayKey)))
    try views(log).read { view throws(CacheError) in
      let group = try view.group("g", now: noon, me: key(99_999))
      #expect(group?.members == 100_000)
      #expect(group?.isMember == true)
      #expect(try view.group("g", now: noon, me: key(100_000))?.isMember == false)
    }
  }

  @Test func `a profile that is no JSON is a seen one without names`() throws {
    let contents = [
      "", "not JSON", "[]", "{\"name\":5}", "{\"name\":\"\u{200b}\"}", "{\"name\":\"a\"} x",
    ]
    for (number, content) in contents.enumerated() {
      let old = event(0, by: 1, at: 1, [], "{\"name\":\"old\"}")
      let events = [old, event(0, by: 1, at: 2, [], content)]
      try views(events).read { view throws(CacheError) in
        let profile = try view.profile(person(1), now: noon)
        #expect(profile?.createdAt == 2)
        #expect(profile?.shownName == (number == 4 ? "\u{200b}" : nil))
        #expect(try view.profiles(named: "old", now: noon).isEmpty)
      }
    }
  }

  @Test func `group state with two d tags is about the first alone`() throws {
    let log = ArrayLog()
    log.append(
      [event(39000, by: relayKey, at: 1, [["d", "one"], ["d", "two"], ["name", "N"]])], from: relayA
    )
    log.append(
      [event(39000, by: relayKey, at: 2, [["d"], ["d", "two"], ["name", "Bare"]])], from: relayA)
    log.append(.fact(.relaySelf(relayA, relayKey)))
    try views(log).read { view throws(CacheError) in
      #expect(try view.group("one", now: noon)?.name == "N")
      #expect(try view.group("two", now: noon) == nil)
      #expect(try view.group("", now: noon)?.name == "Bare")
    }
  }
}
