import Nostr

/// One group as the relay keeps it (NIP-29).
struct Group: Sendable {
  let id: Text
  var name: Text
  var about: Text?
  var picture: Text?
  var isPrivate = false
  var isRestricted = false
  var isHidden = false
  var isClosed = false
  var isArchived = false
  /// Roles by member; an ordinary member has none.
  var members: [PublicKey: [Text]] = [:]
  var codes: Set<Text> = []
  /// A conversation between these people and nobody else (Buzz).
  var participants: [PublicKey] = []

  init(id: Text, name: Text) {
    self.id = id
    self.name = name
  }

  func hasMember(of keys: [PublicKey]) -> Bool { keys.contains { members[$0] != nil } }

  func isAdmin(_ key: PublicKey) -> Bool { members[key]?.isEmpty == false }

  /// Members in the order of their keys.
  var roster: [(key: PublicKey, roles: [Text])] {
    members.sorted { $0.key < $1.key }.map { (key: $0.key, roles: $0.value) }
  }
}

/// Every group of a relay.
struct GroupBook: Sendable {
  private var groups: [Text: Group] = [:]
  /// When each group's state was last signed, so that two changes in one second keep their order.
  private var signedAt: [Text: Timestamp] = [:]

  subscript(_ id: Text) -> Group? {
    get { groups[id] }
    set {
      let id = id.owned()
      groups[id] = newValue
      if let newValue, newValue.isPrivate || newValue.isHidden {
        guarded.insert(id)
      } else {
        guarded.remove(id)
      }
    }
  }

  /// The groups that are not everybody's to read.
  private(set) var guarded: Set<Text> = []

  /// Sorted by id.
  var all: [Group] { groups.values.sorted { $0.id < $1.id } }

  /// The conversation between exactly these people.
  func conversation(of people: [PublicKey]) -> Group? {
    all.first { !$0.participants.isEmpty && $0.participants == people }
  }

  /// The time for a state event that is signed now: later than the one before it.
  mutating func nextSigningTime(of id: Text, now: Timestamp) -> Timestamp {
    let time = max(now, (signedAt[id] ?? now - 1) + 1)
    signedAt[id.owned()] = time
    return time
  }

  /// Reads a state event that the relay signed earlier.
  mutating func restore(_ event: Event) {
    let id = event.identifier.owned()
    signedAt[id] = max(signedAt[id] ?? event.createdAt, event.createdAt)
    var group = groups[id] ?? Group(id: id, name: id)
    switch event.kind {
    case 39000: group.restoreMetadata(event)
    case 39001: group.restoreRoles(event)
    case 39002: group.restoreMembers(event)
    default: return
    }
    self[id] = group
  }
}

extension Group {
  fileprivate mutating func restoreMetadata(_ event: Event) {
    name = event.tags.firstValue("name")?.owned() ?? id
    about = event.tags.firstValue("about")?.owned()
    picture = event.tags.firstValue("picture")?.owned()
    isPrivate = event.tags.contains(named: "private")
    isRestricted = event.tags.contains(named: "restricted")
    isHidden = event.tags.contains(named: "hidden")
    isClosed = event.tags.contains(named: "closed")
    isArchived = event.tags.firstValue("archived") == "true"
    participants = event.people.sorted()
  }

  fileprivate mutating func restoreRoles(_ event: Event) {
    // Whoever is not listed any more has lost the roles, and not the membership.
    members = members.mapValues { _ in [] }
    for tag in event.tags where tag.name == "p" {
      guard let key = tag.bytes32(1).map(PublicKey.init) else { continue }
      members[key] = tag.dropFirst(2).map { $0.owned() }
    }
  }

  fileprivate mutating func restoreMembers(_ event: Event) {
    let listed = Set(event.people)
    members = members.filter { listed.contains($0.key) }
    for key in listed where members[key] == nil { members[key] = [] }
  }

  /// Takes over what a 9002 or 9007 says; a flag is taken back by its opposite.
  mutating func edit(by event: Event) {
    if let value = event.tags.firstValue("name") { name = value.owned() }
    if let value = event.tags.firstValue("about") { about = value.owned() }
    if let value = event.tags.firstValue("picture") { picture = value.owned() }
    if let value = event.tags.firstValue("visibility") { isPrivate = value == "private" }
    if let value = event.tags.firstValue("archived") { isArchived = value == "true" }
    isPrivate = flag("private", else: "public", of: event, from: isPrivate)
    isRestricted = flag("restricted", else: "unrestricted", of: event, from: isRestricted)
    isHidden = flag("hidden", else: "visible", of: event, from: isHidden)
    isClosed = flag("closed", else: "open", of: event, from: isClosed)
  }

  private func flag(_ on: Text, else off: Text, of event: Event, from value: Bool) -> Bool {
    if event.tags.contains(named: on) { return true }
    return event.tags.contains(named: off) ? false : value
  }
}

extension Event {
  /// The keys of all `p` tags, in order.
  var people: [PublicKey] {
    tags.compactMap { tag in tag.name == "p" ? tag.bytes32(1).map(PublicKey.init) : nil }
  }
}
