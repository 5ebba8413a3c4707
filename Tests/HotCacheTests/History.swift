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
    switch dice.below(19) {
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
    case 13: shape(group, author)
    case 14: relayWord(group, author)
    case 15: normalForms(author)
    case 16: if let target = anyMessage() { mention(target, author) }
    case 17: directMessage(author)
    default:
      let tags = [["h", group], ["expiration", "\(time + Int64(dice.below(200)))"]]
      say(event(9, by: author, at: time, tags, "brief \(events.count)"))
    }
  }

  /// Some messages get much attention.
  private mutating func anyMessage() -> Event? {
    if messages.isEmpty { return nil }
    return dice.below(4) == 0
      ? messages[dice.below(min(4, messages.count))] : dice.pick(messages)
  }

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
    if dice.below(4) == 0 {
      let image = ["emoji", "bee", "https://example.com/\(dice.below(3)).png"]
      return other(event(7, by: author, at: time, tags + [image], ":bee:"))
    }
    other(event(7, by: author, at: time, tags, dice.pick(["+", "🔥", "", "-"])))
  }

  /// The other kinds of message, and what only looks like one.
  private mutating func shape(_ group: String, _ author: UInt8) {
    let kind = dice.pick([EventKind(11), 40001, 40002, 40008, 45001, 45003])
    say(event(kind, by: author, at: time, [["h", group]], "k\(events.count)"))
    guard let target = anyMessage() else { return }
    let over = [["h", group], ["e", target.id.hex]]
    other(event(40002, by: author, at: time, over, "{\"over\":\(events.count)}"))
  }

  /// What the relay signs beside metadata: pins, notices in the channel, rosters with roles.
  private mutating func relayWord(_ group: String, _ author: UInt8) {
    let pins = (0..<dice.below(3)).compactMap { _ in anyMessage() }.map { ["e", $0.id.hex] }
    other(event(39005, by: relayKey, at: time, [["d", group]] + pins))
    other(event(40099, by: relayKey, at: time, [["h", group]], "{\"type\":\"n\(events.count)\"}"))
    let roles = ["owner", "member", "guest"]
    let people = (1...3).map { ["p", person(UInt8($0)).hex, "", dice.pick(roles)] }
    other(event(39002, by: relayKey, at: time, [["d", group]] + people))
    let command = dice.pick([EventKind(9000), 9001])
    other(event(command, by: author, at: time, [["h", group], ["p", person(1).hex]]))
  }

  /// The same letters composed and decomposed are two identifiers.
  private mutating func normalForms(_ author: UInt8) {
    let form = dice.pick(["caf\u{e9}", "cafe\u{301}"])
    other(event(30078, by: author, at: time, [["d", form], ["d", "x"]], "\(events.count)"))
    if dice.below(3) == 0 {
      other(event(5, by: author, at: time, [["a", "30078:\(person(author).hex):\(form)"]]))
    }
  }

  private mutating func mention(_ target: Event, _ author: UInt8) {
    let group = target.group?.string ?? "g"
    say(message("@\(events.count)", by: author, at: time, in: group, [["p", person(1).hex]]))
  }

  private mutating func directMessage(_ author: UInt8) {
    let people = [["p", person(1).hex], ["p", person(author).hex]]
    let tags = [["d", "dm"], ["name", dice.pick(["DM", "", "Us"])], ["hidden"]] + people
    other(event(39000, by: relayKey, at: time, tags))
    say(event(9, by: author, at: time, [["h", "dm"]], "quiet \(events.count)"))
  }

  private mutating func edit(_ target: Event, _ author: UInt8) {
    let tags = [["h", target.group?.string ?? "g"], ["e", target.id.hex]]
    let editor = dice.below(3) == 0 ? person(author) : target.pubkey
    other(event(40003, by: editor, at: time, tags, "edited \(events.count)"))
  }

  private mutating func delete(_ author: UInt8) {
    guard !events.isEmpty else { return }
    // Some are deleted more than once.
    let target = dice.below(3) == 0 ? events[dice.below(min(8, events.count))] : dice.pick(events)
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

  /// A log of these events in some order: 0 is the order of writing. In every other order some are
  /// imported before a relay serves them, and what is learnt beside events comes anywhere.
  func log(order seed: UInt64, name: String = "log") -> ArrayLog {
    var dice = Dice(seed)
    var bodies: [LogEntry.Body] = []
    for event in seed == 0 ? events : dice.shuffled(events) {
      bodies.append(.logged(event, from: seed > 0 && dice.below(4) == 0 ? nil : relayA))
    }
    var facts: [Fact] = [
      .relaySelf(relayA, relayKey), .discarded(events[events.count / 2].id),
      .redated(old: events[events.count / 3].id, new: events[events.count / 3 + 1].id),
    ]
    for case .event(let logged) in bodies where logged.source == nil {
      facts.append(.served(logged.event.id, by: relayA))
    }
    for fact in facts {
      let place = seed == 0 ? bodies.count : dice.below(bodies.count + 1)
      bodies.insert(.fact(fact), at: place)
    }
    let log = ArrayLog(name: name)
    for body in bodies { log.append(body) }
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
      lines.append("\(try view.pins(of: group.id))")
      lines.append("\(try view.title(of: group, now: now, me: person(1)) ?? "-")")
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
    lines += try view.activity(of: person(1), now: now).map { "\($0)" }
    return lines
  }
}

private func line(_ row: MessageRow) -> String {
  """
  \(row.id) \(row.text) \(row.isDeleted) \(row.isEdited) \(row.replies) \
  \(row.lastReplyAt?.description ?? "-") \(row.reactions) \(row.isPinned)
  """
}
