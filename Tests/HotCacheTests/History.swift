import EventLog
import Nostr
import SyncCore

@testable import HotCache

/// A made-up past of two groups, with everything that one event can do to another.
struct History {
  private(set) var events: [Event] = []
  private var messages: [Event] = []
  private var others: [Event] = []
  private var dice: Dice
  private var time: Int64 = 1000

  init(seed: UInt64, count: Int) {
    dice = Dice(seed)
    while events.count < count { step() }
  }

  private mutating func step() {
    // Most steps stay within a second, so that ties are the rule.
    if dice.below(3) == 0 { time += 1 }
    let author = UInt8(1 + dice.below(5))
    let group = dice.pick(["g", "x"])
    switch dice.below(14) {
    case 0...3: say(message("m\(events.count)", by: author, at: time, in: group))
    case 4: if let parent = anyMessage() { answer(parent, author) }
    case 5: if let target = anyMessage() { react(target, author) }
    case 6: if let target = anyMessage() { edit(target, author) }
    case 7: delete(author)
    case 8: other(event(0, by: author, at: time, [], "{\"name\":\"n\(dice.below(3))\"}"))
    case 9:
      other(event(30078, by: author, at: time, [["d", dice.pick(["", "a"])]], "\(events.count)"))
    case 10:
      let address = "30078:\(person(author).hex):\(dice.pick(["", "a"]))"
      other(event(5, by: author, at: time, [["a", address]]))
    case 11: state(group, author)
    case 12: moderate(group, author)
    default:
      let tags = [["h", group], ["expiration", "\(time + Int64(dice.below(200)))"]]
      say(event(9, by: author, at: time, tags, "brief \(events.count)"))
    }
  }

  private mutating func anyMessage() -> Event? { messages.isEmpty ? nil : dice.pick(messages) }

  private mutating func say(_ event: Event) {
    messages.append(event)
    events.append(event)
  }

  private mutating func other(_ event: Event) {
    others.append(event)
    events.append(event)
  }

  private mutating func answer(_ parent: Event, _ author: UInt8) {
    let group = parent.group?.string ?? "g"
    if parent.kind == 9 {
      say(
        reply(
          "r\(events.count)", to: parent, root: dice.below(2) == 0 ? nil : messages.first,
          by: author, at: time, in: group, broadcast: dice.below(4) == 0))
    }
    let tags = [["h", group], ["E", parent.id.hex], ["e", parent.id.hex]]
    say(event(1111, by: author, at: time, tags, "c\(events.count)"))
  }

  private mutating func react(_ target: Event, _ author: UInt8) {
    let tags = [["h", target.group?.string ?? "g"], ["e", target.id.hex]]
    other(event(7, by: author, at: time, tags, dice.pick(["+", "🔥", "", "-"])))
  }

  private mutating func edit(_ target: Event, _ author: UInt8) {
    let tags = [["h", target.group?.string ?? "g"], ["e", target.id.hex]]
    let editor = dice.below(3) == 0 ? person(author) : target.pubkey
    other(event(40003, by: editor, at: time, tags, "edited \(events.count)"))
  }

  private mutating func delete(_ author: UInt8) {
    guard !events.isEmpty else { return }
    let target = dice.pick(events)
    let deleter = dice.below(3) == 0 ? person(author) : target.pubkey
    other(event(5, by: deleter, at: time - Int64(dice.below(50)), [["e", target.id.hex]]))
  }

  private mutating func state(_ group: String, _ author: UInt8) {
    let signer = dice.below(3) == 0 ? person(author) : relayKey
    let people = (0..<dice.below(4)).map { ["p", person(UInt8(1 + $0)).hex, "admin"] }
    let kind = dice.pick([EventKind(39000), 39001, 39002])
    let tags = [["d", group], ["name", "G\(events.count)"]] + people
    other(event(kind, by: signer, at: time, tags))
    let notice = dice.pick([EventKind(44100), 44101])
    other(event(notice, by: signer, at: time, [["p", person(author).hex], ["h", group]]))
  }

  private mutating func moderate(_ group: String, _ author: UInt8) {
    guard let target = anyMessage() else { return }
    other(event(9005, by: author, at: time, [["h", group], ["e", target.id.hex]]))
  }

  /// A log of these events in some order, with the same facts at the end.
  func log(order seed: UInt64, name: String = "log") -> ArrayLog {
    var dice = Dice(seed)
    let log = ArrayLog(name: name)
    log.append(seed == 0 ? events : dice.shuffled(events), from: relayA)
    log.append(.fact(.relaySelf(relayA, relayKey)))
    log.append(.fact(.discarded(events[events.count / 2].id)))
    return log
  }
}

/// Everything that views say, without sequences, as lines.
func dump(_ cache: CacheViews, at now: Timestamp = 1100) throws -> [String] {
  try cache.read { view throws(CacheError) in
    var lines: [String] = []
    let groups = try view.groups(now: now, me: person(1))
    for group in groups {
      lines.append("\(group)")
      lines.append("\(try view.members(of: group.id, now: now))")
      for row in try view.timeline(group.id, limit: .max, now: now, me: person(1)) {
        lines.append(line(row))
        for reply in try view.thread(row.id, limit: .max, now: now) { lines.append(line(reply)) }
      }
    }
    for number in 1...5 {
      lines.append("\(String(describing: try view.profile(person(UInt8(number)), now: now)))")
    }
    lines += try view.items(Filter(), now: now).map { "\($0.createdAt) \($0.id)" }
    lines.append("\(try view.profiles(named: "N", now: now))")
    return lines
  }
}

private func line(_ row: MessageRow) -> String {
  """
  \(row.id) \(row.text) \(row.isDeleted) \(row.isEdited) \(row.replies) \
  \(row.lastReplyAt?.description ?? "-") \(row.reactions)
  """
}
