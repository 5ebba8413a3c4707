import Nostr
import Testing

@testable import HotCache

struct SlotTests {
  @Test func `the newest version holds a slot, a tie goes to the lowest id, in either order`()
    throws
  {
    let low = event(0, at: 10, [], "{\"name\":\"low\"}", id: 3)
    let high = event(0, at: 10, [], "{\"name\":\"high\"}", id: 9)
    let newer = event(0, at: 11, [], "{}", id: 20)
    let filter = Filter(kinds: [0])
    #expect(try ids(filter, [low, high]) == [low.id])
    #expect(try ids(filter, [high, low]) == [low.id])
    #expect(try ids(filter, [newer, high, low]) == [newer.id])
  }

  @Test func `the first d tag is the address, and a bare one or none is the empty string`() throws {
    let filter = Filter(kinds: [30000])
    let two = event(30000, at: 10, [["d", "b"], ["d", "a"]])
    let b = event(30000, at: 20, [["d", "b"]])
    let a = event(30000, at: 30, [["d", "a"]])
    #expect(try Set(ids(filter, [two, b, a])) == [b.id, a.id])
    let none = event(30000, at: 10)
    let bare = event(30000, at: 20, [["d"], ["d", "x"]])
    let empty = event(30000, at: 30, [["d", ""]])
    #expect(try ids(filter, [none, bare]) == [bare.id])
    #expect(try ids(filter, [none, bare, empty]) == [empty.id])
  }

  @Test func `composed and decomposed spellings are two addresses and two groups`() throws {
    let composed = event(30000, at: 10, [["d", "caf\u{e9}"]])
    let decomposed = event(30000, at: 20, [["d", "cafe\u{301}"]])
    #expect(try ids(Filter(kinds: [30000]), [composed, decomposed]).count == 2)
    let cache = try views([
      message("one", at: 1, in: "caf\u{e9}"), message("two", at: 2, in: "cafe\u{301}"),
    ])
    try cache.read { view throws(CacheError) in
      #expect(try view.groups(now: noon).count == 2)
      #expect(try view.timeline(Text("caf\u{e9}"), now: noon).map(\.text) == ["one"])
    }
  }

  @Test func `a slot is its author's own`() throws {
    let mine = event(30000, by: 1, at: 10, [["d", "x"]])
    let theirs = event(30000, by: 2, at: 20, [["d", "x"]])
    #expect(try Set(ids(Filter(kinds: [30000]), [mine, theirs])) == [mine.id, theirs.id])
  }

  @Test func `a profile is read from its JSON, and garbage is still a seen profile`() throws {
    let good = event(
      0, by: 1, at: 10, [], #"{"name":"ann","display_name":"Ann B","about":"","nip05":"a@b"}"#)
    let bad = event(0, by: 2, at: 10, [], "not json")
    let blank = event(0, by: 3, at: 10, [], "{\"name\":\"\u{200b}\u{200b}\"}")
    try views([good, bad, blank]).read { view throws(CacheError) in
      let ann = try view.profile(person(1), now: noon)
      #expect(ann?.shownName == "Ann B")
      #expect(ann?.about == nil)
      let seen = try view.profile(person(2), now: noon)
      #expect(seen != nil)
      #expect(seen?.shownName == nil)
      #expect(try view.profile(person(9), now: noon) == nil)
      #expect(try view.profile(person(3), now: noon)?.name?.count == 6)
    }
  }

  @Test func `people are found by the beginning of a current name, whatever its case`() throws {
    let events = [
      event(0, by: 1, at: 10, [], #"{"name":"Olaf"}"#),
      event(0, by: 1, at: 20, [], #"{"name":"Anna"}"#),
      event(0, by: 2, at: 10, [], #"{"display_name":"ANNETTE"}"#),
      event(0, by: 3, at: 10, [], #"{"name":"bert"}"#),
    ]
    let cache = try views(events)
    func found(_ text: Text) throws -> [PublicKey] {
      try cache.read { view throws(CacheError) in
        try view.profiles(named: text, now: noon).map(\.pubkey)
      }
    }
    #expect(try found("ann") == [person(1), person(2)])
    #expect(try found("olaf") == [])
    #expect(try found("BERT") == [person(3)])
  }
}
