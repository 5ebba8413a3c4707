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
}
