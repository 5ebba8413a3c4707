import Nostr
import NostrCrypto

/// Writes the demo community's history as drafts, one after the other.
///
/// Ids are computed on the way, because later events name earlier ones; signing comes afterwards
/// and can be done in any order.
struct DemoStory {
  /// A message that later events may refer to.
  private struct Told {
    let id: EventID
    let author: Int
    let channel: Int
    let root: EventID?
  }

  let relayKey: SecretKey
  let people: [SecretKey]
  private(set) var drafts: [(EventDraft, SecretKey)] = []

  private let eventsCount: Int
  private var random: SplitMix64
  private var time: Timestamp
  /// How many events a relay holds after those told so far.
  private var held = 0
  /// What can still be answered, reacted to, edited or deleted.
  private var told: [Told] = []
  private var reacted: Set<String> = []
  private var ids: Set<EventID> = []

  private static let secondsPerEvent = 400

  init(seed: UInt64, eventsCount: Int) {
    self.eventsCount = eventsCount
    random = SplitMix64(seed: seed)
    relayKey = DemoStory.key("relay", seed)
    people = DemoText.people.indices.map { DemoStory.key("person \($0)", seed) }
    let span = Int64(max(eventsCount, 100) * DemoStory.secondsPerEvent / 2)
    time = DemoCommunity.end - span
  }

  mutating func tell() {
    tellFrame()
    let frame = held
    while held < eventsCount {
      advance(eventsLeft: eventsCount - held, of: eventsCount - frame)
      tellOne()
    }
  }

  private static func key(_ name: String, _ seed: UInt64) -> SecretKey {
    let bytes = SHA256.hash(Array("skep demo \(seed) \(name)".utf8)).array
    do {
      return try SecretKey(bytes: bytes)
    } catch {
      preconditionFailure("a hash outside the range of keys is never met: \(error)")
    }
  }

  // MARK: The frame

  private mutating func tellFrame() {
    for (index, channel) in DemoText.channels.enumerated() {
      let isRestricted = index == DemoText.channels.count - 1
      tellState(39000, channel.id, metadata(of: index, isRestricted: isRestricted))
      tellState(39001, channel.id, [["p", people[0].publicKey.hex, "admin"]])
      tellState(39002, channel.id, members(isRestricted).map { ["p", people[$0].publicKey.hex] })
      tellState(39003, channel.id, [["role", "admin", "keeps the channel in order"]])
    }
    for (index, person) in DemoText.people.enumerated() {
      let profile = JSONValue.object([
        ("name", .string(Text(person.name))), ("about", .string(Text(person.about))),
      ])
      add(0, [], Text(utf8: profile.json()), by: people[index])
      held += 1
    }
  }

  private func members(_ isRestricted: Bool) -> Range<Int> {
    isRestricted ? 0..<4 : 0..<people.count
  }

  private func metadata(of channel: Int, isRestricted: Bool) -> [[String]] {
    let words = DemoText.channels[channel]
    return [["name", words.name], ["about", words.about]] + (isRestricted ? [["restricted"]] : [])
  }

  private mutating func tellState(_ kind: EventKind, _ channel: String, _ tags: [[String]]) {
    add(kind, [["d", channel]] + tags, "", by: relayKey)
    held += 1
  }

  // MARK: One event

  /// Lets time pass: often none, so that many events share their second, and now and then a burst
  /// of dozens.
  private mutating func advance(eventsLeft: Int, of total: Int) {
    let isInBurst = eventsLeft % 1000 < 60 && total > 200
    if isInBurst || random.chance(35) { return }
    time = time + Int64(random.number(in: 1..<DemoStory.secondsPerEvent))
    if time > DemoCommunity.end { time = DemoCommunity.end }
  }

  private mutating func tellOne() {
    switch random.number(in: 0..<100) {
    case 0..<55: tellMessage()
    case 55..<72: tellReply()
    case 72..<88: tellReaction()
    case 88..<92: tellThread()
    case 92..<97: tellEdit()
    default: tellDeletion()
    }
  }

  private mutating func tellMessage() {
    let channel = random.number(in: 0..<DemoText.channels.count)
    let author = author(in: channel)
    tell(9, [], sentence(), by: author, in: channel, root: nil)
  }

  private mutating func tellThread() {
    let channel = random.number(in: 0..<DemoText.channels.count)
    let title = random.element(of: DemoText.things)
    tell(11, [["title", title]], sentence(), by: author(in: channel), in: channel, root: nil)
  }

  private mutating func tellReply() {
    guard let parent = recent() else { return tellMessage() }
    let root = parent.root ?? parent.id
    var tags = [["e", root.hex, "", "root"], ["e", parent.id.hex, "", "reply"]]
    tags.append(["p", people[parent.author].publicKey.hex])
    if random.chance(10) { tags.append(["broadcast", "1"]) }
    let author = author(in: parent.channel)
    tell(9, tags, random.element(of: DemoText.replies), by: author, in: parent.channel, root: root)
  }

  private mutating func tellReaction() {
    guard let target = recent() else { return tellMessage() }
    let author = author(in: target.channel)
    let emoji = random.element(of: DemoText.emoji)
    guard reacted.insert("\(target.id.hex)\(author)\(emoji)").inserted else { return }
    let tags = [
      ["h", DemoText.channels[target.channel].id], ["e", target.id.hex],
      ["p", people[target.author].publicKey.hex], ["k", "9"],
    ]
    add(7, tags, Text(emoji), by: people[author])
    held += 1
  }

  private mutating func tellEdit() {
    guard let target = recent() else { return tellMessage() }
    let tags = [["h", DemoText.channels[target.channel].id], ["e", target.id.hex]]
    if add(40003, tags, Text(sentence() + " (edited)"), by: people[target.author]) != nil {
      held += 1
    }
  }

  /// Takes a message away: its author by kind 5, or the channel's admin by 9005.
  private mutating func tellDeletion() {
    guard !told.isEmpty else { return tellMessage() }
    let index = told.count - 1 - random.number(in: 0..<min(told.count, 50))
    let target = told.remove(at: index)
    let channel = DemoText.channels[target.channel].id
    if random.chance(25) {
      add(9005, [["h", channel], ["e", target.id.hex]], "", by: people[0])
    } else {
      let tags = [["h", channel], ["e", target.id.hex], ["k", "9"]]
      add(5, tags, "", by: people[target.author])
    }
  }

  private mutating func recent() -> Told? {
    guard !told.isEmpty else { return nil }
    return told[told.count - 1 - random.number(in: 0..<min(told.count, 80))]
  }

  private mutating func author(in channel: Int) -> Int {
    random.number(in: members(channel == DemoText.channels.count - 1))
  }

  private mutating func sentence() -> String {
    let opening = random.element(of: DemoText.openings)
    let thing = random.element(of: DemoText.things)
    return "\(opening) \(thing)\(random.element(of: DemoText.endings))"
  }

  private mutating func tell(
    _ kind: EventKind, _ tags: [[String]], _ content: String, by author: Int, in channel: Int,
    root: EventID?
  ) {
    let all = [["h", DemoText.channels[channel].id]] + tags
    guard let id = add(kind, all, Text(content), by: people[author]) else { return }
    held += 1
    told.append(Told(id: id, author: author, channel: channel, root: root))
  }

  /// - Returns: The id; nil where the very same event was told before in this second.
  @discardableResult
  private mutating func add(
    _ kind: EventKind, _ tags: [[String]], _ content: Text, by key: SecretKey
  ) -> EventID? {
    let draft = EventDraft(createdAt: time, kind: kind, tags: Tags(tags), content: content)
    var preimage: [UInt8] = []
    CanonicalForm.writePreimage(of: draft, author: key.publicKey, into: &preimage)
    let id = EventID(SHA256.hash(preimage))
    guard ids.insert(id).inserted else { return nil }
    drafts.append((draft, key))
    return id
  }
}
