import EventLog
import Nostr
import SyncCore
import Testing

@testable import HotCache

struct ActivityTests {
  private let mine = message("mine", by: 1, at: 10)

  @Test func `mentions, answers and reactions concern me, newest first, each once`() throws {
    let answer = message(
      "answer", by: 2, at: 20,
      [["e", mine.id.hex, "", "reply"], ["p", person(1).hex], ["p", person(1).hex]])
    let named = message("named", by: 3, at: 30, [["p", person(1).hex]])
    let liked = event(7, by: 2, at: 40, [["e", mine.id.hex], ["h", "g"]], "+")
    let rows = try activity([liked, named, mine, answer])
    #expect(rows.map(\.id) == [liked.id, named.id, answer.id])
    #expect(rows.map(\.reason) == [.reaction, .mention, .reply])
    #expect(rows.map(\.text) == ["❤️", "named", "answer"])
    #expect(rows.map(\.target) == [mine.id, named.id, mine.id])
  }

  @Test func `an answer deep in another's thread concerns me where its parent is mine`() throws {
    let root = message("root", by: 2, at: 5)
    let own = reply("own", to: root, by: 1, at: 10)
    let deep = reply("deep", to: own, root: root, by: 3, at: 20)
    let beside = reply("beside", to: root, by: 3, at: 30)
    #expect(try activity([root, own, deep, beside]).map(\.id) == [deep.id])
  }

  @Test func `my own, deleted, blocked and future events, and left groups, do not concern me`()
    throws
  {
    let own = event(7, by: 1, at: 20, [["e", mine.id.hex]], "+")
    let gone = event(7, by: 2, at: 21, [["e", mine.id.hex]], "+")
    let deletion = event(5, by: 2, at: 22, [["e", gone.id.hex]])
    let foreign = event(7, by: 3, at: 23, [["e", mine.id.hex]], "+")
    let vain = event(5, by: 2, at: 24, [["e", foreign.id.hex]])
    let ahead = message("ahead", by: 2, at: noon.seconds + 5000, [["p", person(1).hex]])
    let elsewhere = message("left", by: 2, at: 30, in: "x", [["p", person(1).hex]])
    let log = ArrayLog()
    log.append([mine, own, gone, deletion, foreign, vain, ahead, elsewhere], from: relayA)
    #expect(try Set(activity(log).map(\.id)) == [foreign.id, elsewhere.id])
    log.append(.fact(.relaySelf(relayA, relayKey)))
    log.append([
      event(39000, by: relayKey, at: 1, [["d", "x"]]),
      event(44101, by: relayKey, at: 40, [["p", person(1).hex], ["h", "x"]]),
    ])
    #expect(try activity(log).map(\.id) == [foreign.id])
    #expect(try activity(log, blocking: [person(3)]).isEmpty)
  }

  @Test func `a reaction to an edit, and an e tag that reacts to somebody else, are none of mine`()
    throws
  {
    let other = message("other", by: 2, at: 11)
    let both = event(7, by: 3, at: 20, [["e", mine.id.hex], ["e", other.id.hex]], "+")
    #expect(try activity([mine, other, both]).isEmpty)
  }

  private func activity(_ events: [Event]) throws -> [ActivityRow] {
    let log = ArrayLog()
    log.append(events)
    return try activity(log)
  }

  private func activity(_ log: ArrayLog, blocking blocked: Set<PublicKey> = []) throws
    -> [ActivityRow]
  {
    let cache = try views(log)
    cache.setBlocked(blocked)
    return try cache.read { view throws(CacheError) in
      try view.activity(of: person(1), now: noon)
    }
  }
}

struct BlockingTests {
  @Test func `whoever is blocked is in no view, and unblocking brings everything back`() throws {
    let mine = message("mine", by: 1, at: 10)
    let theirs = message("theirs", by: 2, at: 20)
    let answer = reply("answer", to: mine, by: 2, at: 30)
    let liked = event(7, by: 2, at: 31, [["e", mine.id.hex]], "+")
    let cache = try views([mine, theirs, answer, liked])
    func look() throws -> [String] {
      try cache.read { view throws(CacheError) in
        var lines = try view.timeline("g", now: noon).map { "\($0.text) \($0.replies)" }
        lines += try view.timeline("g", now: noon).flatMap(\.reactions).map { "\($0.emoji)" }
        lines += try view.thread(mine.id, now: noon).map { "\($0.text)" }
        lines.append("\(try view.group("g", now: noon)?.preview?.text ?? "-")")
        lines.append("\(try view.message(theirs.id, now: noon)?.text ?? "-")")
        return lines
      }
    }
    let before = try look()
    #expect(before == ["mine 1", "theirs 0", "❤️", "answer", "answer", "theirs"])
    cache.setBlocked([person(2)])
    #expect(try look() == ["mine 0", "mine", "-"])
    cache.setBlocked([])
    #expect(try look() == before)
  }

  @Test func `a block is no part of what the log says`() throws {
    let theirs = message("theirs", by: 2, at: 20)
    let cache = try views([theirs])
    let before = try digest(of: cache)
    cache.setBlocked([person(2)])
    #expect(try digest(of: cache) == before)
    let found = try cache.read { view throws(CacheError) in
      try view.query([Filter(kinds: [9])], now: noon)
    }
    #expect(found.count == 1)
  }

  @Test func `a page is full although some of its authors are blocked`() throws {
    let events = (0..<100).map { message("\($0)", by: $0 % 2 == 0 ? 1 : 2, at: Int64($0)) }
    let cache = try views(events)
    cache.setBlocked([person(2)])
    let page = try cache.read { view throws(CacheError) in
      try view.timeline("g", limit: 20, now: noon)
    }
    #expect(page.map(\.text) == stride(from: 60, to: 100, by: 2).map { Text("\($0)") })
  }
}

struct ReactionTests {
  private let target = message("text", by: 1, at: 10)

  @Test func `one's own reactions are found, whoever else reacts`() throws {
    var events = [target]
    for number in UInt8(2)..<60 {
      events.append(event(7, by: number, at: 20, [["e", target.id.hex]], "+"))
    }
    let own = event(7, by: 1, at: 21, [["e", target.id.hex]], "🔥")
    let taken = event(7, by: 1, at: 22, [["e", target.id.hex]], "+")
    events += [own, taken, event(5, by: 1, at: 23, [["e", taken.id.hex]])]
    try views(events).read { view throws(CacheError) in
      let found = try view.reactions(to: target.id, by: person(1), now: noon)
      #expect(found.map(\.id) == [own.id])
      #expect(found.map(\.emoji) == ["🔥"])
    }
  }

  @Test func `a code has the image of the newest set that knows it`() throws {
    func set(_ image: String, by author: UInt8, at time: Int64) -> Event {
      event(30030, by: author, at: time, [["d", "buzz:custom-emoji"], ["emoji", "bee-1", image]])
    }
    let events = [set("https://old", by: 1, at: 10), set("https://new", by: 2, at: 20)]
    try views(events).read { view throws(CacheError) in
      #expect(try view.emojiImage("bee-1", now: noon) == "https://new")
      #expect(try view.emojiImage("wasp", now: noon) == nil)
    }
    try views(events + [event(5, by: 2, at: 30, [["e", events[1].id.hex]])]).read {
      view throws(CacheError) in
      #expect(try view.emojiImage("bee-1", now: noon) == "https://old")
    }
  }

  @Test func `ten megabytes of reactions cost little, and long ones are not tallied`() throws {
    var events = [target]
    for number in 0..<40 {
      let text = String(repeating: "x", count: 250_000)
      events.append(event(7, by: UInt8(number + 2), at: 20, [["e", target.id.hex]], text))
    }
    events.append(event(7, by: 200, at: 5, [["e", target.id.hex]], "🔥"))
    try views(events).read { view throws(CacheError) in
      let row = try view.message(target.id, now: noon)
      #expect(row?.reactions.map(\.emoji) == ["🔥"])
    }
  }
}

struct NamesAndPinsTests {
  private func known(_ events: [Event]) -> ArrayLog {
    let log = ArrayLog()
    log.append(events, from: relayA)
    log.append(.fact(.relaySelf(relayA, relayKey)))
    return log
  }

  @Test(arguments: [
    ("Plans", "Plans"), ("DM", "Bea & Cem"), ("", "Bea & Cem"),
    ("Direct Messages (3)", "Bea & Cem"),
    ("group dm", "Bea & Cem"), ("dm talk", "dm talk"),
  ])
  func `a direct message without a name of its own is called by who is in it`(
    name: String, shown: String
  ) throws {
    let people = [1, 2, 3].map { ["p", person(UInt8($0)).hex] }
    let group = event(
      39000, by: relayKey, at: 5, [["d", "dm"], ["name", name], ["hidden"]] + people)
    let profiles = [
      event(0, by: 2, at: 1, [], #"{"name":"Bea"}"#),
      event(0, by: 3, at: 1, [], #"{"name":"Cem"}"#),
    ]
    #expect(try title(known([group] + profiles)) == Text(shown))
  }

  @Test func `who has no name is counted`() throws {
    let people = (1...5).map { ["p", person(UInt8($0)).hex] }
    let group = event(39000, by: relayKey, at: 5, [["d", "dm"], ["hidden"]] + people)
    #expect(try title(known([group])) == "a conversation")
    let two = [
      event(0, by: 2, at: 1, [], #"{"name":"Bea"}"#),
      event(0, by: 3, at: 1, [], #"{"name":"Cem"}"#),
    ]
    #expect(try title(known([group] + two)) == "Bea, Cem & 2 others")
  }

  private func title(_ log: ArrayLog) throws -> Text? {
    try views(log).read { view throws(CacheError) in
      guard let group = try view.group("dm", now: noon, me: person(1)) else { return nil }
      return try view.title(of: group, now: noon, me: person(1))
    }
  }

  @Test func `pins are those of the relay's newest list, and Buzz's summaries are none`() throws {
    let one = message("one", at: 10)
    let two = message("two", at: 11)
    let old = event(39005, by: relayKey, at: 20, [["d", "g"], ["e", one.id.hex]])
    let new = event(39005, by: relayKey, at: 30, [["d", "g"], ["e", two.id.hex], ["e", "zz"]])
    let forged = event(39005, by: 3, at: 40, [["d", "g"], ["e", one.id.hex]])
    let summary = event(
      39005, by: relayKey, at: 50, [["d", "g"], ["e", one.id.hex], ["h", "g"]], "{}")
    try views(known([one, two, new, forged, old, summary])).read { view throws(CacheError) in
      #expect(try view.pins(of: "g") == [two.id])
      #expect(try view.timeline("g", now: noon).map(\.isPinned) == [false, true])
    }
    let unknown = try views([one, old])
    #expect(try unknown.read { view throws(CacheError) in try view.pins(of: "g") }.isEmpty)
  }

  @Test func `commands about membership count once the group's relay has served them`() throws {
    let state = event(39000, by: relayKey, at: 1, [["d", "g"]])
    let added = event(9000, by: 5, at: 20, [["h", "g"], ["p", person(1).hex]])
    let removed = event(9001, by: 5, at: 30, [["h", "g"], ["p", person(1).hex]])
    let notice = event(44100, by: relayKey, at: 40, [["h", "g"], ["p", person(1).hex]])
    #expect(try isMember(known([state, added])) == true)
    #expect(try isMember(known([removed, state, added])) == false)
    #expect(try isMember(known([notice, removed, state, added])) == true)
    let imported = ArrayLog()
    imported.append([state], from: relayA)
    imported.append([added])
    imported.append(.fact(.relaySelf(relayA, relayKey)))
    #expect(try isMember(imported) == nil)
    let roster = event(39002, by: relayKey, at: 35, [["d", "g"], ["p", person(2).hex]])
    #expect(try isMember(known([roster, state, added])) == false)
  }

  @Test func `a flood of forged notices does not bury the relay's own`() throws {
    let state = event(39000, by: relayKey, at: 1, [["d", "g"]])
    let real = event(44101, by: relayKey, at: 10, [["h", "g"], ["p", person(1).hex]])
    let forger = PublicKey(try #require(Bytes32([UInt8](repeating: 3, count: 32))))
    let forged = (0..<3000).map { number in
      event(
        44100, by: forger, at: 100 + Int64(number), [["h", "g"], ["p", person(1).hex]], "\(number)")
    }
    #expect(try isMember(known([state, real] + forged)) == false)
  }

  private func isMember(_ log: ArrayLog) throws -> Bool? {
    try views(log).read { view throws(CacheError) in
      try view.group("g", now: noon, me: person(1))?.isMember
    }
  }

  @Test func `an older client's payload over a message is no message`() throws {
    let target = message("text", at: 10)
    let over = event(40002, at: 20, [["h", "g"], ["e", target.id.hex]], #"{"card":1}"#)
    let text = event(40002, at: 30, [["h", "g"], ["e", target.id.hex]], "{not JSON")
    let plain = event(40002, at: 40, [["h", "g"]], #"{"said":"in JSON"}"#)
    let page = try views([target, over, text, plain]).read { view throws(CacheError) in
      try view.timeline("g", now: noon)
    }
    #expect(page.map(\.id) == [target.id, text.id, plain.id])
  }

  @Test func `a page around a message has as much before it as after it`() throws {
    let events = (0..<40).map { message("\($0)", at: Int64($0 / 4)) }.sorted {
      $0.position < $1.position
    }
    let cache = try views(events)
    func page(_ place: Int, _ limit: Int) throws -> [EventID] {
      try cache.read { view throws(CacheError) in
        try view.timeline("g", .around(events[place].position), limit: limit, now: noon).map(\.id)
      }
    }
    #expect(try page(20, 11) == events[15...25].map(\.id))
    #expect(try page(0, 5) == events[0..<5].map(\.id))
    #expect(try page(39, 5) == events[37...39].map(\.id))
    #expect(try page(20, 1) == [events[20].id])
  }
}
