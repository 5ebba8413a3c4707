import EventLog
import Nostr
import Testing

@testable import HotCache

struct MessageTests {
  @Test func `a timeline shows top level and broadcast replies in rising order`() throws {
    let first = message("one", at: 10)
    let second = message("two", at: 20)
    let hidden = reply("in thread", to: first, by: 2, at: 30)
    let shown = reply("for all", to: first, by: 2, at: 40, broadcast: true)
    let page = try views([second, shown, hidden, first]).read { view throws(CacheError) in
      try view.timeline("g", now: noon)
    }
    #expect(page.map(\.text) == ["one", "two", "for all"])
    #expect(page[0].replies == 2)
    #expect(page[0].lastReplyAt == 40)
    #expect(page[2].replyTo == first.id)
  }

  @Test func `pages meet without a gap or a repeat, in both directions and within one second`()
    throws
  {
    let all = (0..<40).map { message("m\($0)", at: Int64(100 + $0 / 10)) }
    let cache = try views(all)
    let expected = all.map(\.position).sorted()
    var back: [EventPosition] = []
    var cursor = PageCursor.newest
    while true {
      let page = try cache.read { view throws(CacheError) in
        try view.timeline("g", cursor, limit: 7, now: noon)
      }
      guard let first = page.first else { break }
      back = page.map(\.position) + back
      cursor = .before(first.position)
    }
    #expect(back == expected)
    var forward = [expected[0]]
    while true {
      let page = try cache.read { view throws(CacheError) in
        try view.timeline("g", .after(forward[forward.count - 1]), limit: 7, now: noon)
      }
      if page.isEmpty { break }
      forward += page.map(\.position)
    }
    #expect(forward == expected)
  }

  @Test func `an edit counts only from the author, the newest, a tie to the lowest id`() throws {
    let target = message("old", by: 1, at: 10)
    let tags = [["h", "g"], ["e", target.id.hex]]
    let events = [
      target, event(40003, by: 1, at: 20, tags, "older", id: 1),
      event(40003, by: 1, at: 30, tags, "tie lost", id: 9),
      event(40003, by: 1, at: 30, tags, "tie won", id: 3),
      event(40003, by: 2, at: 90, tags, "foreign", id: 4),
    ]
    #expect(try text(of: target, in: events) == "tie won")
    let foreignOnly = [target, events[4]]
    #expect(try text(of: target, in: foreignOnly) == "old")
  }

  @Test func `an edit that its author deleted does not count`() throws {
    let target = message("old", at: 10)
    let edit = event(40003, at: 20, [["e", target.id.hex]], "new")
    let mine = event(5, at: 30, [["e", edit.id.hex]])
    let foreign = event(5, by: 2, at: 30, [["e", edit.id.hex]])
    #expect(try text(of: target, in: [target, edit, foreign]) == "new")
    #expect(try text(of: target, in: [target, edit, mine]) == "old")
  }

  @Test func `an edit of an edit is ignored`() throws {
    let target = message("old", at: 10)
    let edit = event(40003, at: 20, [["e", target.id.hex]], "new")
    let second = event(40003, at: 30, [["e", edit.id.hex]], "newer")
    #expect(try text(of: target, in: [target, edit, second]) == "new")
  }

  @Test func `reactions are counted by person, the most frequent first, then by bytes`() throws {
    let target = message("hi", at: 10)
    func react(_ content: String, by author: UInt8, at time: Int64 = 20, _ more: [[String]] = [])
      -> Event
    {
      event(7, by: author, at: time, [["e", target.id.hex]] + more, content)
    }
    let taken = react("🔥", by: 6)
    let events = [
      target, react("+", by: 1), react("", by: 2), react("+", by: 1, at: 21), react("b", by: 3),
      react("a", by: 4), react(":x:", by: 5, [["emoji", "x", "https://e/x"]]), taken,
      event(5, by: 6, at: 30, [["e", taken.id.hex]]),
    ]
    let row = try #require(
      try views(events).read { view throws(CacheError) in
        try view.message(target.id, now: noon, me: person(2))
      })
    #expect(row.reactions.map(\.emoji) == ["❤️", ":x:", "a", "b"])
    #expect(row.reactions.map(\.count) == [2, 1, 1, 1])
    #expect(row.reactions.map(\.isMine) == [true, false, false, false])
    #expect(row.reactions[1].image == "https://e/x")
  }

  @Test func `a reply that names another group is in no thread of this one`() throws {
    let root = message("root", at: 10)
    let foreign = reply("from elsewhere", to: root, by: 2, at: 20, in: "other")
    let own = reply("here", to: root, by: 2, at: 30)
    let cache = try views([root, foreign, own])
    try cache.read { view throws(CacheError) in
      #expect(try view.thread(root.id, now: noon).map(\.text) == ["here"])
      #expect(try view.message(root.id, now: noon)?.replies == 1)
    }
  }

  @Test func `a lone root marker is no reply, and the last reply marker wins`() throws {
    let one = message("one", at: 10)
    let two = message("two", at: 11)
    let lone = message("lone", at: 20, [["e", one.id.hex, "", "root"]])
    let both = message(
      "both", at: 30, [["e", one.id.hex, "", "reply"], ["e", two.id.hex, "", "reply"]])
    let bare = message("bare", at: 40, [["e", one.id.hex]])
    let cache = try views([one, two, lone, both, bare])
    try cache.read { view throws(CacheError) in
      let page = try view.timeline("g", now: noon)
      #expect(page.map(\.text) == ["one", "two", "lone", "bare"])
      #expect(try view.message(both.id, now: noon)?.replyTo == two.id)
      #expect(try view.message(both.id, now: noon)?.root == two.id)
    }
  }

  @Test func `comments stand under their root and never in the timeline`() throws {
    let post = event(11, at: 10, [["h", "g"], ["title", "T"]], "post")
    let comment = event(
      1111, by: 2, at: 20, [["h", "g"], ["E", post.id.hex], ["e", post.id.hex]], "comment")
    let deeper = event(
      1111, by: 3, at: 30, [["h", "g"], ["E", post.id.hex], ["e", comment.id.hex]], "deeper")
    try views([deeper, comment, post]).read { view throws(CacheError) in
      let page = try view.timeline("g", now: noon)
      #expect(page.map(\.text) == ["post"])
      #expect(page[0].title == "T")
      #expect(page[0].replies == 2)
      let thread = try view.thread(post.id, now: noon)
      #expect(thread.map(\.text) == ["comment", "deeper"])
      #expect(thread[1].replyTo == comment.id)
    }
  }

  @Test func `a reply whose root is not here stands in the timeline until the root comes`() throws {
    let root = message("root", at: 10)
    let other = message("other", at: 15)
    let stray = reply("lonely", to: root, by: 2, at: 20)
    let comment = event(
      1111, by: 2, at: 30, [["h", "g"], ["E", root.id.hex], ["e", root.id.hex]], "comment")
    for cursor in [PageCursor.newest, .after(EventPosition(createdAt: 0, id: root.id))] {
      try views([comment, stray, other]).read { view throws(CacheError) in
        let page = try view.timeline("g", cursor, now: noon)
        #expect(page.map(\.text) == ["other", "lonely", "comment"])
        #expect(page.map(\.isStray) == [false, true, true])
        #expect(
          try view.thread(root.id, group: "g", now: noon).map(\.text) == ["lonely", "comment"])
        #expect(try view.timeline("g", cursor, limit: 2, now: noon).count == 2)
      }
      try views([comment, stray, other, root]).read { view throws(CacheError) in
        let page = try view.timeline("g", cursor, now: noon)
        #expect(page.map(\.text) == ["root", "other"])
        #expect(try view.message(stray.id, now: noon)?.isStray == false)
      }
    }
  }

  /// Why a message that is in the log is on no page.
  enum Absence: CaseIterable { case expired, discarded, blocked, deleted, redated }

  @Test(arguments: Absence.allCases)
  func `a reply whose root is on no page stands in the timeline; a deleted root's mark leads to it`(
    absence: Absence
  ) throws {
    let root = event(
      9, by: 1, at: 10, [["h", "g"]] + (absence == .expired ? [["expiration", "500"]] : []), "root")
    let answer = reply("answer", to: root, by: 2, at: 20)
    let log = ArrayLog()
    log.append([root, answer])
    switch absence {
    case .expired, .blocked: break
    case .discarded: log.append(.fact(.discarded(root.id)))
    case .redated:
      log.append(.fact(.redated(old: root.id, new: message("later", at: 11).id)))
    case .deleted: log.append([event(5, by: 1, at: 30, [["e", root.id.hex]], "")])
    }
    let views = try views(log)
    if absence == .blocked { views.setBlocked([root.pubkey]) }
    try views.read { view throws(CacheError) in
      let page = try view.timeline("g", .newest, now: noon)
      #expect(page.map(\.text) == (absence == .deleted ? [""] : ["answer"]))
      #expect(page.map(\.isStray) == [absence != .deleted])
      #expect(try view.thread(root.id, group: "g", now: noon).map(\.text) == ["answer"])
      // Before it has expired it leads to its thread.
      let before = try view.timeline("g", .newest, now: 400)
      #expect(before.map(\.text) == (absence == .expired ? ["root"] : page.map(\.text)))
    }
  }

  @Test func `a thread without end does not hide the channel, and is not read without end`() throws
  {
    let roots = [message("root", at: 10), message("older", at: 5)]
    let replies = (0..<ViewLimits.strayReadMax + 50).map {
      reply("r\($0)", to: roots[0], by: 2, at: 1000 + Int64($0 / 3))
    }
    let stray = reply("too deep", to: message("gone", at: 1), by: 3, at: 20)
    try views(replies + roots + [stray]).read { view throws(CacheError) in
      #expect(try view.timeline("g", now: noon).map(\.text) == ["older", "root"])
      let deep = PageCursor.before(EventPosition(createdAt: 900, id: stray.id))
      #expect(try view.timeline("g", deep, now: noon).map(\.text) == ["older", "root", "too deep"])
    }
  }

  @Test func `a deleted reply is not counted, and a message from the future is marked`() throws {
    let root = message("root", at: 10)
    let gone = reply("gone", to: root, by: 2, at: 20)
    let deletion = event(5, by: 2, at: 30, [["e", gone.id.hex]])
    let ahead = message("ahead", at: noon.seconds + 5000)
    try views([root, gone, deletion, ahead]).read { view throws(CacheError) in
      let page = try view.timeline("g", now: noon)
      #expect(page[0].replies == 0)
      #expect(page.map(\.isFuture) == [false, true])
      #expect(try view.group("g", now: noon)?.preview?.text == "root")
      #expect(try view.thread(root.id, now: noon).map(\.isDeleted) == [true])
    }
  }

  private func text(of target: Event, in events: [Event]) throws -> Text? {
    try views(events).read { view throws(CacheError) in
      try view.message(target.id, now: noon)?.text
    }
  }
}
