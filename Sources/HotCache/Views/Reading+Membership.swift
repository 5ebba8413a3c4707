import Nostr

/// One group's members, and who may moderate.
struct Roster {
  /// The keys by which the group's state is signed, where they are relays' own.
  var authorities: Set<PublicKey> = []
  var members: [PublicKey: Set<Text>] = [:]
  var moderators: Set<PublicKey> = []
  /// Whether there was a list of members at all, and when it was made.
  var listedAt: Timestamp?

  /// Adds the people of a 39002 or a 39001. The list of members comes first and the list of admins
  /// raises roles; either may be missing.
  mutating func add(_ row: BodyRow) {
    let isAdmins = row.kind == .groupAdmins
    for tag in row.tags where tag.letter == UInt8(ascii: "p") {
      guard let key = tag.bytes32(1).map(PublicKey.init) else { continue }
      let roles = isAdmins ? Self.adminRoles(tag) : Self.memberRoles(tag)
      members[key, default: []].formUnion(roles)
      if isAdmins || !roles.isDisjoint(with: Self.leadingRoles) { moderators.insert(key) }
    }
    if !isAdmins { listedAt = max(listedAt ?? row.createdAt, row.createdAt) }
  }

  /// Buzz puts the role fourth, others right behind the key; both are read, and unknown words in
  /// the wrong place are not taken for roles.
  private static func memberRoles(_ tag: Tag) -> Set<Text> {
    if let role = tag.value(3), !role.isEmpty { return [role.owned()] }
    return Set(tag.dropFirst(2).filter(knownRoles.contains).map { $0.owned() })
  }

  private static func adminRoles(_ tag: Tag) -> Set<Text> {
    Set(
      tag.dropFirst(2).filter { role in
        !role.isEmpty && !role.hasPrefix("ws://") && !role.hasPrefix("wss://")
      }.map { $0.owned() })
  }

  /// False only where it is known that somebody may do no more than any member.
  func mayModerate(_ key: PublicKey) -> Bool {
    guard let roles = members[key], !roles.isEmpty, !moderators.contains(key) else { return true }
    return !roles.isSubset(of: Self.plainRoles)
  }

  private static let leadingRoles: Set<Text> = ["owner", "admin"]
  private static let plainRoles: Set<Text> = ["member", "guest", "bot"]
  private static let knownRoles = leadingRoles.union(plainRoles).union(["moderator"])
}

/// Who belongs to a group, and what it is called.
extension Reading {
  /// By time and never by arrival: the newest word that counts about one person, against the roster.
  ///
  /// The relay's notices (44100, 44101) count when its own key signed them; commands (9000, 9001)
  /// when a moderator gave them or the group's relay has served them, and so has accepted them.
  func membership(
    of member: PublicKey, in group: Text, signedBy authority: PublicKey, roster: Roster
  ) throws(StoreError) -> Bool? {
    let listedAt = roster.listedAt
    let notice = try newest(
      [.membership(member, group: group, noticeBy: authority)], after: listedAt
    ) { row throws(StoreError) in
      row.pubkey == authority && (row.kind == .memberAdded || row.kind == .memberRemoved)
        && Self.isAbout(row, member, group)
    }
    let command = try newest(
      [.membershipCommands(member, group: group)], after: listedAt
    ) { row throws(StoreError) in
      guard row.kind == .groupPutUser || row.kind == .groupRemoveUser,
        Self.isAbout(row, member, group)
      else { return false }
      return try isAuthorised(row, in: group)
    }
    let words = [notice, command].compactMap { $0 }
    let last = words.max { left, right in
      // A tie goes to the lowest id, as everywhere.
      left.createdAt != right.createdAt ? left.createdAt < right.createdAt : left.id > right.id
    }
    if let last { return last.kind == .memberAdded || last.kind == .groupPutUser }
    return listedAt == nil ? nil : roster.members[member] != nil
  }

  private static func isAbout(_ row: BodyRow, _ member: PublicKey, _ group: Text) -> Bool {
    let tags = row.tags
    return tags.firstValue("h") == group
      && tags.contains { $0.letter == UInt8(ascii: "p") && $0.bytes32(1) == member.bytes }
  }

  /// The newest event of the keys that counts and is newer than `time`.
  private func newest(
    _ keys: [IndexKey], after time: Timestamp?,
    where counts: (BodyRow) throws(StoreError) -> Bool
  ) throws(StoreError) -> BodyRow? {
    var merge = EntryMerge(keys, order: .newestFirst, since: time)
    var left = ViewLimits.membershipReadMax
    while left > 0, let candidate = try merge.next(self) {
      left -= 1
      let row = try row(candidate.entry)
      if let time, row.createdAt <= time { return nil }
      if try counts(row), try !isHidden(row.id) { return row }
    }
    return nil
  }

  // MARK: Names

  /// Buzz gives every direct message one of these names, perhaps with a count behind it.
  private static let genericNames: Set<String> = [
    "", "dm", "direct message", "direct messages", "group dm",
  ]

  private static func isGeneric(_ name: Text?) -> Bool {
    guard let name else { return true }
    guard name.count <= 64 else { return false }
    var words = name.string.lowercased().split(whereSeparator: \.isWhitespace)
    if let last = words.last, last.hasPrefix("("), last.hasSuffix(")"),
      last.dropFirst().dropLast().allSatisfy(\.isNumber)
    {
      words.removeLast()
    }
    return genericNames.contains(words.joined(separator: " "))
  }

  func title(of group: GroupRow, now: Timestamp, me: PublicKey?) throws(StoreError) -> Text? {
    guard group.isHidden, Self.isGeneric(group.name) else { return group.name }
    let others = Set(group.participants).filter { $0 != me }.sorted()
    var names: [String] = []
    for other in others.prefix(ViewLimits.titleReadMax) where names.count < 2 {
      if let name = try profile(other, now: now)?.shownName { names.append(name.string) }
    }
    let rest = others.count - names.count
    switch names.count {
    case 0: return "a conversation"
    case 1 where rest == 0: return Text(names[0])
    case 2 where rest == 0: return Text(names.joined(separator: " & "))
    default:
      return Text(
        names.joined(separator: ", ") + " & \(rest) other" + (rest == 1 ? "" : "s"))
    }
  }

  // MARK: Pins

  /// The newest 39005 by a relay's own key, in NIP-29's shape: Buzz gives that number to summaries
  /// of threads, which name a group in `h` and count in JSON.
  func pins(of group: Text) throws(StoreError) -> [EventID] {
    if let known = memo.pins[group] { return known }
    var result: [EventID] = []
    for key in try selves().authorities where result.isEmpty {
      let slot = Slot(kind: .threadSummary, author: key, identifier: group)
      let list = try newest([slot.key], after: nil) { row throws(StoreError) in
        slot.contains(row) && !row.tags.contains(named: "h")
      }
      guard let list, try !isDeleted(list) else { continue }
      for tag in list.tags where tag.letter == UInt8(ascii: "e") {
        guard result.count < ViewLimits.pinsMax else { break }
        if let id = tag.bytes32(1) { result.append(EventID(id)) }
      }
    }
    memo.pins[group] = result
    return result
  }

  func isPinned(_ id: EventID, in group: Text?) throws(StoreError) -> Bool {
    guard let group else { return false }
    return try pins(of: group).contains(id)
  }
}
