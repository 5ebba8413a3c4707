import EventLog
import Nostr
import SyncCore
import Testing

@testable import HotCache

struct DeletionTests {
  @Test(arguments: [false, true])
  func `a deletion counts from the author, before or after its target`(isFirst: Bool) throws {
    let target = message("text", by: 1, at: 10)
    let own = event(5, by: 1, at: 20, [["e", target.id.hex]])
    let foreign = event(5, by: 2, at: 20, [["e", target.id.hex]])
    #expect(try isDeleted(target, isFirst ? [own, target] : [target, own]))
    #expect(try !isDeleted(target, isFirst ? [foreign, target] : [target, foreign]))
  }

  @Test func `a deleted message stays in the timeline, marked and without its text`() throws {
    let target = message("secret", at: 10)
    let events = [target, event(5, at: 20, [["e", target.id.hex]])]
    try views(events).read { view throws(CacheError) in
      let page = try view.timeline("g", now: noon)
      #expect(page.map(\.isDeleted) == [true])
      #expect(page.map(\.text) == [""])
      #expect(try view.query([Filter(ids: [target.id])], now: noon).isEmpty)
      #expect(try view.query([Filter(kinds: [5])], now: noon).count == 1)
    }
  }

  @Test func `an e deletion counts whatever its date, and for each of its targets`() throws {
    let one = message("one", at: 100)
    let two = message("two", at: 110)
    let early = event(5, at: 1, [["e", one.id.hex], ["e", two.id.hex]])
    #expect(try isDeleted(one, [one, two, early]))
    #expect(try isDeleted(two, [one, two, early]))
  }

  @Test func `a deletion of a deletion has no effect`() throws {
    let target = message("text", at: 10)
    let deletion = event(5, at: 20, [["e", target.id.hex]])
    let second = event(5, at: 30, [["e", deletion.id.hex]])
    #expect(try isDeleted(target, [target, deletion, second]))
  }

  @Test func `an a deletion takes the versions up to its own time`() throws {
    let address = "30078:\(person(1).hex):settings"
    let old = event(30078, at: 10, [["d", "settings"]], "old")
    let deletion = event(5, at: 15, [["a", address]])
    let later = event(30078, at: 20, [["d", "settings"]], "new")
    let filter = Filter(kinds: [30078])
    #expect(try ids(filter, [old, deletion]) == [])
    #expect(try ids(filter, [deletion, later, old]) == [later.id])
    let foreign = event(5, by: 2, at: 15, [["a", address]])
    #expect(try ids(filter, [old, foreign]) == [old.id])
    let sameTime = event(5, at: 10, [["a", address]])
    #expect(try ids(filter, [sameTime, old]) == [])
  }

  @Test func `a superseded version never comes back when the newest is deleted or has expired`()
    throws
  {
    let old = event(0, at: 10, [], "{}")
    let new = event(0, at: 20, [], "{\"name\":\"x\"}")
    let deletion = event(5, at: 30, [["e", new.id.hex]])
    #expect(try ids(Filter(kinds: [0]), [new, old]) == [new.id])
    #expect(try ids(Filter(kinds: [0]), [deletion, new, old]) == [])
    let brief = event(0, at: 20, [["expiration", "100"]], "{}")
    #expect(try ids(Filter(kinds: [0]), [old, brief], now: 99) == [brief.id])
    #expect(try ids(Filter(kinds: [0]), [old, brief], now: 100) == [])
  }

  @Test func `a moderator's deletion counts once the group's relay has served it`() throws {
    let target = message("text", by: 1, at: 10)
    let moderation = event(9005, by: 3, at: 20, [["h", "g"], ["e", target.id.hex]])
    let state = event(39000, by: relayKey, at: 5, [["d", "g"]])
    let log = ArrayLog()
    log.append([target, moderation])
    #expect(try !isDeleted(target, log), "imported from a file, it waits")
    log.append(.fact(.served(moderation.id, by: relayA)))
    #expect(try isDeleted(target, log), "no state is known, and a relay served it")
    log.append(.logged(state, from: relayA))
    log.append(.fact(.relaySelf(relayA, relayKey)))
    #expect(try isDeleted(target, log), "the group's own relay served it")
    let other = ArrayLog()
    other.append([target])
    other.append([moderation], from: relayB)
    other.append(.logged(state, from: relayA))
    other.append(.fact(.relaySelf(relayA, relayKey)))
    #expect(try !isDeleted(target, other), "a relay that is not the group's served it")
  }

  @Test func `an imported 9005 counts from the author and from an admin by relay-signed state`()
    throws
  {
    let target = message("text", by: 1, at: 10)
    let tags = [["h", "g"], ["e", target.id.hex]]
    let admins = event(39001, by: relayKey, at: 5, [["d", "g"], ["p", person(3).hex, "admin"]])
    let log = ArrayLog()
    log.append([target, admins, event(9005, by: 4, at: 20, tags)])
    log.append(.fact(.relaySelf(relayA, relayKey)))
    #expect(try !isDeleted(target, log))
    log.append([event(9005, by: 3, at: 20, tags)])
    #expect(try isDeleted(target, log))
    #expect(try isDeleted(target, [target, event(9005, by: 1, at: 20, tags)]))
    let elsewhere = event(9005, by: 3, at: 20, [["h", "x"], ["e", target.id.hex]])
    let second = ArrayLog()
    second.append([target, admins, elsewhere])
    second.append(.fact(.relaySelf(relayA, relayKey)))
    #expect(try !isDeleted(target, second))
  }

  @Test func `discarded and redated events are hidden, and a restored one is back`() throws {
    let target = message("text", at: 10)
    let log = ArrayLog()
    log.append([target])
    #expect(try ids(Filter(kinds: [9]), log) == [target.id])
    log.append(.fact(.discarded(target.id)))
    #expect(try ids(Filter(kinds: [9]), log) == [])
    log.append(.fact(.restored(target.id)))
    #expect(try ids(Filter(kinds: [9]), log) == [target.id])
    let new = message("text", at: 99)
    log.append([new])
    log.append(.fact(.redated(old: target.id, new: new.id)))
    #expect(try ids(Filter(kinds: [9]), log) == [new.id])
    let page = try views(log).read { view throws(CacheError) in try view.timeline("g", now: noon) }
    #expect(page.map(\.redatedFrom) == [target.id])
  }

  @Test func `a discarded profile gives the slot back`() throws {
    let old = event(0, at: 10, [], "{\"name\":\"old\"}")
    let new = event(0, at: 20, [], "{\"name\":\"new\"}")
    let log = ArrayLog()
    log.append([old, new])
    log.append(.fact(.discarded(new.id)))
    #expect(try ids(Filter(kinds: [0]), log) == [old.id])
  }

  private func isDeleted(_ target: Event, _ events: [Event]) throws -> Bool {
    let log = ArrayLog()
    log.append(events)
    return try isDeleted(target, log)
  }

  private func isDeleted(_ target: Event, _ log: ArrayLog) throws -> Bool {
    try views(log).read { view throws(CacheError) in
      try view.message(target.id, now: noon)?.isDeleted ?? false
    }
  }
}

func ids(_ filter: Filter, _ events: [Event], now: Timestamp = noon) throws -> [EventID] {
  let log = ArrayLog()
  log.append(events)
  return try ids(filter, log, now: now)
}

func ids(_ filter: Filter, _ log: ArrayLog, now: Timestamp = noon) throws -> [EventID] {
  try ids(filter, views(log), log, now: now)
}

func ids(_ filter: Filter, _ cache: CacheViews, _ log: ArrayLog, now: Timestamp = noon) throws
  -> [EventID]
{
  let found = try cache.read { view throws(CacheError) in try view.query([filter], now: now) }
  return try found.compactMap { sequence in
    let before = LogSequence(sequence.number - 1)
    guard case .event(let logged) = try log.entries(after: before, limit: 1).first?.body else {
      return nil
    }
    return logged.event.id
  }
}
