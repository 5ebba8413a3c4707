import Nostr

/// Groups: whose state counts, what it says, and who is in.
extension Reading {
  func state(_ kind: EventKind, _ group: Text, by key: PublicKey, now: Timestamp)
    throws(StoreError) -> BodyRow?
  {
    try current(Slot(kind: kind, author: key, identifier: group), now: now)
  }

  /// The roster by relay-signed state alone: the only one that decides anything.
  ///
  /// Expiry does not matter here, so that a decision does not depend on when it is asked.
  func trustedRoster(of group: Text) throws(StoreError) -> Roster {
    if let known = memo.rosters[group] { return known }
    var roster = Roster()
    for key in try selves().authorities {
      for kind in [EventKind.groupMetadata, .groupMembers, .groupAdmins] {
        guard let row = try state(kind, group, by: key, now: 0) else { continue }
        roster.authorities.insert(key)
        if kind != .groupMetadata { roster.add(row) }
      }
    }
    memo.rosters[group] = roster
    return roster
  }

  /// The newest unverified state of a kind, by the relay that served it; nil stands for state
  /// that came from no relay.
  private func unverifiedState(_ kind: EventKind, _ group: Text, now: Timestamp)
    throws(StoreError) -> [RelayURL?: BodyRow]
  {
    let selves = try selves()
    let authorities = Set(selves.keys.values)
    var result: [RelayURL?: BodyRow] = [:]
    var left = ViewLimits.unverifiedReadMax
    var stream = EntryStream(.groupState(kind: kind, group: group), order: .newestFirst)
    while left > 0, let candidate = try stream.next(self) {
      left -= 1
      let row = try self.row(candidate.entry)
      guard row.kind == kind, row.event.identifier == group, !authorities.contains(row.pubkey),
        !isExpired(row, now: now), try !isHidden(row.id)
      else { continue }
      let serving = try relays(serving: row.id)
      // A relay that says who it is is believed only with that signature.
      for relay in serving where selves.keys[relay] == nil && result[relay] == nil {
        if try !isDeleted(row) { result[relay] = row }
      }
      if serving.isEmpty, authorities.isEmpty, result[RelayURL?.none] == nil,
        try !isDeleted(row)
      {
        result[RelayURL?.none] = row
      }
    }
    return result
  }

  /// Every group: those with messages first, by the newest, then by name and id.
  func groups(now: Timestamp, me: PublicKey?) throws(StoreError) -> [GroupRow] {
    var result: [GroupRow] = []
    var last: SmallKey?
    while true {
      let listed = try store.small(prefix: SmallKey.groups, after: last, limit: 256)
      for row in listed {
        result += try groups(named: Text(utf8: row.value), now: now, me: me)
      }
      guard listed.count == 256 else { break }
      last = listed.last?.key
    }
    return result.sorted(by: Self.isListedBefore)
  }

  private static func isListedBefore(_ left: GroupRow, _ right: GroupRow) -> Bool {
    if left.lastAt != right.lastAt {
      guard let leftTime = left.lastAt else { return false }
      guard let rightTime = right.lastAt else { return true }
      return leftTime > rightTime
    }
    let names = [left, right].map { Text(($0.name ?? $0.id).string.lowercased()) }
    if names[0] != names[1] { return names[0] < names[1] }
    if left.id != right.id { return left.id < right.id }
    return (left.relay?.description ?? "") < (right.relay?.description ?? "")
  }

  /// The groups of that id: the same id under two relays' keys is two groups.
  func groups(named id: Text, now: Timestamp, me: PublicKey?) throws(StoreError) -> [GroupRow] {
    let activity = try newestMessage(of: id, now: now)
    var result: [GroupRow] = []
    let selves = try selves()
    for key in selves.authorities {
      let metadata = try state(.groupMetadata, id, by: key, now: now)
      let members = try state(.groupMembers, id, by: key, now: now)
      let admins = try state(.groupAdmins, id, by: key, now: now)
      guard metadata != nil || members != nil || admins != nil else { continue }
      let relay = selves.keys.filter { $0.value == key }.keys.min()
      var roster = Roster()
      for row in [members, admins] { if let row { roster.add(row) } }
      let isMember = try me.map { viewer throws(StoreError) in
        try membership(of: viewer, in: id, signedBy: key, roster: roster)
      }
      result.append(
        GroupRow(
          id: id, authority: key, relay: relay, state: .relay, metadata: metadata,
          members: members == nil ? nil : roster.members.count, isMember: isMember ?? nil,
          preview: activity))
    }
    let isTrusted = !result.isEmpty
    let unverified = try unverifiedState(.groupMetadata, id, now: now)
    for (relay, row) in unverified.sorted(by: { Self.order($0.key, $1.key) }) {
      if relay == nil, isTrusted { continue }
      let members = try unverifiedState(.groupMembers, id, now: now)[relay]
      var roster = Roster()
      if let members { roster.add(members) }
      result.append(
        GroupRow(
          id: id, authority: nil, relay: relay, state: .unverified, metadata: row,
          members: members == nil ? nil : roster.members.count, isMember: nil, preview: activity))
    }
    if result.isEmpty, try hasMessages(id) {
      result.append(
        GroupRow(
          id: id, authority: nil, relay: nil, state: .unmanaged, metadata: nil, members: nil,
          isMember: nil, preview: activity))
    }
    return result
  }

  private static func order(_ left: RelayURL?, _ right: RelayURL?) -> Bool {
    (left?.description ?? "") < (right?.description ?? "")
  }

  /// The members of a group by relay-signed state, else by unverified state; by key.
  func members(of group: Text, now: Timestamp) throws(StoreError) -> [MemberRow] {
    var roster = Roster()
    for key in try selves().authorities {
      for kind in [EventKind.groupMembers, .groupAdmins] {
        if let row = try state(kind, group, by: key, now: now) { roster.add(row) }
      }
    }
    if roster.members.isEmpty, try trustedRoster(of: group).authorities.isEmpty {
      for kind in [EventKind.groupMembers, .groupAdmins] {
        let states = try unverifiedState(kind, group, now: now)
        let first = states.min { Self.order($0.key, $1.key) }
        if let row = first?.value { roster.add(row) }
      }
    }
    return roster.members.map { key, roles in
      MemberRow(pubkey: key, roles: roles.sorted(), mayModerate: roster.mayModerate(key))
    }
    .sorted { $0.pubkey < $1.pubkey }
  }

  private func hasMessages(_ group: Text) throws(StoreError) -> Bool {
    let hash = IndexKey.tagHash(group)
    let keys = try store.keys(
      from: IndexKey(space: UInt8(ascii: "h"), hash: hash, sub: GroupClass.timeline),
      through: IndexKey(space: UInt8(ascii: "h"), hash: hash, sub: GroupClass.threadOnly), limit: 1)
    return !keys.isEmpty
  }

  /// The newest message that may be shown, with the edit that counts.
  private func newestMessage(of group: Text, now: Timestamp) throws(StoreError)
    -> GroupRow.Preview?
  {
    let keys = [GroupClass.timeline, GroupClass.threadOnly].map {
      IndexKey.tag(UInt8(ascii: "h"), group, sub: $0)
    }
    let horizon = now + ViewLimits.clockSkew
    var merge = EntryMerge(keys, order: .falling, until: horizon)
    var left = ViewLimits.previewReadMax
    while left > 0, let candidate = try merge.next(self) {
      left -= 1
      let row = try self.row(candidate.entry)
      guard row.createdAt <= horizon, row.kind != .systemMessage,
        !blocked.contains(row.pubkey), row.tags.firstValue("h") == group,
        try isVisible(row, now: now)
      else { continue }
      let text = try edit(of: row, now: now)?.content ?? row.content
      return GroupRow.Preview(
        id: row.id, author: row.pubkey, createdAt: row.createdAt, kind: row.kind,
        text: text.owned())
    }
    return nil
  }
}

extension GroupRow {
  /// Reads the metadata's tags, and its content where that is a JSON object (older relays).
  init(
    id: Text, authority: PublicKey?, relay: RelayURL?, state: GroupTrust, metadata: BodyRow?,
    members: Int?, isMember: Bool?, preview: Preview?
  ) {
    let tags = metadata?.tags ?? .none
    // A content that is no JSON is simply not where the values are.
    let content = metadata.flatMap { try? JSONValue.parse($0.content.utf8) }
    func field(_ name: Text) -> Text? {
      let value = tags.firstValue(name) ?? content?[name]?.string
      return value.flatMap { $0.isEmpty ? nil : $0.owned() }
    }
    let isHidden = tags.contains(named: "hidden")
    self.init(
      id: id.owned(), authority: authority, relay: relay, state: state, name: field("name"),
      about: field("about"), picture: field("picture"), topic: field("topic"),
      isPrivate: tags.contains(named: "private"), isHidden: isHidden,
      isArchived: tags.firstValue("archived") == "true",
      participants: isHidden
        ? tags.compactMap { tag in
          tag.letter == UInt8(ascii: "p") ? tag.bytes32(1).map(PublicKey.init) : nil
        } : [],
      lastAt: preview?.createdAt, preview: preview, members: members, isMember: isMember)
  }
}
