import EventLog
import Nostr
import Testing

@testable import HotCache

struct GroupTests {
  private func known(_ events: [Event], by key: PublicKey? = relayKey) -> ArrayLog {
    let log = ArrayLog()
    log.append(events, from: relayA)
    if let key { log.append(.fact(.relaySelf(relayA, key))) }
    return log
  }

  @Test func `state counts only from the relay's own key, whenever that becomes known`() throws {
    let real = event(39000, by: relayKey, at: 10, [["d", "g"], ["name", "real"]])
    let forged = event(39000, by: 2, at: 99, [["d", "g"], ["name", "forged"]])
    let row = try #require(try groups(known([real, forged])).first)
    #expect(row.name == "real")
    #expect(row.state == .relay)
    #expect(row.authority == relayKey)
    let unknown = try #require(try groups(known([real, forged], by: nil)).first)
    #expect(unknown.name == "forged")
    #expect(unknown.state == .unverified)
    #expect(unknown.authority == nil)
  }

  @Test func `with a known key, state by others leaves the group unmanaged`() throws {
    let forged = event(39000, by: 2, at: 99, [["d", "g"], ["name", "forged"]])
    let rows = try groups(known([forged, message("hi", at: 10)]))
    #expect(rows.map(\.state) == [.unmanaged])
    #expect(rows.map(\.name) == [nil])
  }

  @Test func `a group that is only named by messages is unmanaged`() throws {
    let rows = try groups(known([message("hi", at: 10, in: "x")]))
    #expect(rows.map(\.id) == ["x"])
    #expect(rows.map(\.state) == [.unmanaged])
    #expect(rows.first?.preview?.text == "hi")
  }

  @Test func `the same id under two relays' keys is two groups`() throws {
    let log = ArrayLog()
    let other = person(201)
    log.append([event(39000, by: relayKey, at: 1, [["d", "g"], ["name", "A"]])], from: relayA)
    log.append([event(39000, by: other, at: 1, [["d", "g"], ["name", "B"]])], from: relayB)
    log.append(.fact(.relaySelf(relayA, relayKey)))
    log.append(.fact(.relaySelf(relayB, other)))
    #expect(try groups(log).map(\.name) == ["A", "B"])
    #expect(try groups(log).map(\.relay) == [relayA, relayB])
  }

  @Test func `the newest fact about a relay's key decides`() throws {
    let log = known([event(39000, by: relayKey, at: 1, [["d", "g"], ["name", "A"]])])
    #expect(try groups(log).map(\.state) == [.relay])
    log.append(.fact(.relaySelf(relayA, person(9))))
    #expect(try groups(log).map(\.state) == [])
    log.append(.fact(.relaySelf(relayA, nil)))
    #expect(try groups(log).map(\.state) == [.unverified])
  }

  @Test func `a roster applies only if it is the newest, whatever came last`() throws {
    let new = event(39002, by: relayKey, at: 20, [["d", "g"], ["p", person(1).hex]])
    let old = event(39002, by: relayKey, at: 10, [["d", "g"], ["p", person(2).hex]])
    let forged = event(39002, by: 2, at: 99, [["d", "g"], ["p", person(3).hex]])
    #expect(try members(known([new, old, forged])).map(\.pubkey) == [person(1)])
    #expect(try members(known([old, forged, new])).map(\.pubkey) == [person(1)])
  }

  @Test func `roles are read from both shapes, and admins raise members`() throws {
    let list = event(
      39002, by: relayKey, at: 20,
      [
        ["d", "g"], ["p", person(1).hex, "", "owner"], ["p", person(2).hex, "guest"],
        ["p", person(3).hex, "wss://relay.example"], ["p", person(4).hex], ["p", "short"],
      ])
    let admins = event(
      39001, by: relayKey, at: 10,
      [["d", "g"], ["p", person(4).hex, "admin", "ceo"], ["p", person(5).hex, "moderator"]])
    let expected: [[Text]] = [["owner"], ["guest"], [], ["admin", "ceo"], ["moderator"]]
    #expect(try members(known([list, admins])).map(\.roles) == expected)
    #expect(try members(known([admins, list])).map(\.roles) == expected)
  }

  @Test func `only whoever is known to be a plain member may not moderate`() throws {
    let list = event(
      39002, by: relayKey, at: 20,
      [
        ["d", "g"], ["p", person(1).hex, "", "owner"], ["p", person(2).hex, "guest"],
        ["p", person(3).hex], ["p", person(4).hex, "member"],
        ["p", person(5).hex, "", "gardener"],
      ])
    let admins = event(
      39001, by: relayKey, at: 10, [["d", "g"], ["p", person(4).hex, "member"]])
    #expect(
      try members(known([list])).map(\.mayModerate) == [true, false, true, false, true])
    // Whoever is on the list of admins is one, whatever the role is called.
    #expect(
      try members(known([list, admins])).map(\.mayModerate) == [true, false, true, true, true])
  }

  @Test func `membership follows the newest of roster and notices, not their arrival`() throws {
    let me = person(1)
    func notice(_ kind: EventKind, at time: Int64, by key: PublicKey = relayKey) -> Event {
      event(kind, by: key, at: time, [["p", me.hex], ["h", "g"]])
    }
    let state = event(39000, by: relayKey, at: 1, [["d", "g"]])
    let added = notice(44100, at: 10)
    let removed = notice(44101, at: 20)
    let forged = notice(44100, at: 90, by: person(2))
    #expect(try isMember(known([state])) == .some(nil))
    #expect(try isMember(known([state, added])) == .some(true))
    #expect(try isMember(known([state, removed, added])) == .some(false))
    #expect(try isMember(known([state, removed, added, forged])) == .some(false))
    let roster = event(39002, by: relayKey, at: 30, [["d", "g"], ["p", me.hex]])
    #expect(try isMember(known([roster, state, removed])) == .some(true))
  }

  @Test func `groups with messages come first, the newest first, then by name`() throws {
    func state(_ id: String, _ name: String) -> Event {
      event(39000, by: relayKey, at: 1, [["d", id], ["name", name]])
    }
    let gone = message("gone", at: 90, in: "a")
    let log = known([
      state("a", "Zed"), state("b", "beta"), state("c", "Alpha"), state("d", "Yak"), gone,
      event(5, at: 91, [["e", gone.id.hex]]), message("x", at: 50, in: "d"),
      message("y", at: 40, in: "a"), message("ahead", at: noon.seconds + 9999, in: "b"),
    ])
    let rows = try groups(log)
    #expect(rows.map(\.name) == ["Yak", "Zed", "Alpha", "beta"])
    #expect(rows.map(\.lastAt) == [50, 40, nil, nil])
  }

  @Test func `metadata is read from tags, with flags by name alone and the first d`() throws {
    let row = try #require(
      try groups(
        known([
          event(
            39000, by: relayKey, at: 1,
            [
              ["d", "g"], ["d", "other"], ["name", "N"], ["about", "A"], ["picture", "P"],
              ["private"], ["hidden"], ["p", person(3).hex], ["archived", "true"],
            ])
        ])
      ).first)
    #expect(row.id == "g")
    #expect(row.about == "A")
    #expect(row.isPrivate && row.isHidden && row.isArchived)
    #expect(row.participants == [person(3)])
    let plain = try #require(
      try groups(known([event(39000, by: relayKey, at: 1, [["d", "g"]], #"{"name":"J"}"#)])).first)
    #expect(plain.name == "J")
    #expect(!plain.isPrivate && !plain.isHidden)
  }

  private func groups(_ log: ArrayLog) throws -> [GroupRow] {
    try views(log).read { view throws(CacheError) in try view.groups(now: noon) }
  }

  private func members(_ log: ArrayLog) throws -> [MemberRow] {
    try views(log).read { view throws(CacheError) in try view.members(of: "g", now: noon) }
  }

  private func isMember(_ log: ArrayLog) throws -> Bool?? {
    try views(log).read { view throws(CacheError) in
      try view.group("g", now: noon, me: person(1))?.isMember
    }
  }
}
