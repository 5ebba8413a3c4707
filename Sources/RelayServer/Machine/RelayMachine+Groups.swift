import Nostr

/// NIP-29: what people may do in groups, and what changes when they do it.
extension RelayMachine {
  private static let commandsMax = 1000
  private static let moderationKinds: Set<EventKind> = [9000, 9001, 9002, 9005, 9008, 9009]

  /// Why an event may not enter its group; nil lets it in.
  func refusalByGroup(_ event: Event) -> Text? {
    guard rules.groups.areManaged else { return nil }
    guard let name = event.group else {
      guard rules.groups.kindsNeedingGroup.contains(event.kind) else { return nil }
      return rules.answers.wording == .buzz
        ? "invalid: channel-scoped events must include an h tag" : "invalid: missing h tag"
    }
    if event.kind == 9007 {
      guard groups[name] != nil else { return nil }
      return rules.answers.wording == .buzz
        ? "duplicate: channel already exists" : "duplicate: that group already exists"
    }
    guard let group = groups[name] else {
      return rules.groups.refusesUnknownGroups ? "invalid: no such group" : nil
    }
    // An archived group takes nothing but the word that brings it back.
    if group.isArchived && event.kind != 9002 { return "invalid: channel is archived" }
    if event.kind == 9021 { return refusalOfJoining(event, group) }
    if event.kind == 9022 { return refusalOfLeaving(event, group) }
    if RelayMachine.moderationKinds.contains(event.kind) {
      return refusalOfModeration(event, group)
    }
    guard rules.groups.scopesWriting, group.isPrivate || group.isRestricted else { return nil }
    if group.members[event.pubkey] != nil { return nil }
    return rules.answers.wording == .buzz
      ? "restricted: not a channel member" : "restricted: you are not a member of that group"
  }

  private func refusalOfJoining(_ event: Event, _ group: Group) -> Text? {
    if group.members[event.pubkey] != nil {
      return rules.groups.acceptsRepeatedJoins ? nil : "duplicate: already a member"
    }
    if let code = event.tags.firstValue("code"), group.codes.contains(code) { return nil }
    if group.isPrivate && rules.answers.wording == .buzz {
      return "restricted: channel is private"
    }
    return group.isClosed ? "restricted: this group is closed; an invite code is needed" : nil
  }

  private func refusalOfLeaving(_ event: Event, _ group: Group) -> Text? {
    guard group.members[event.pubkey] != nil else {
      return "invalid: actor is not an active member"
    }
    return isLastAdmin(event.pubkey, group) ? "invalid: cannot remove the last owner" : nil
  }

  private func isLastAdmin(_ key: PublicKey, _ group: Group) -> Bool {
    group.isAdmin(key) && group.members.values.count { !$0.isEmpty } == 1
  }

  private func refusalOfModeration(_ event: Event, _ group: Group) -> Text? {
    if event.pubkey == identity.selfKey { return nil }
    let isAdmin = group.isAdmin(event.pubkey)
    switch event.kind {
    case 9000:
      guard !event.people.isEmpty else { return "invalid: missing p tag" }
      return isAdmin ? nil : "restricted: actor not authorized"
    case 9001:
      guard let target = event.people.first else { return "invalid: missing p tag" }
      if isLastAdmin(target, group) { return "invalid: cannot remove the last owner" }
      return isAdmin || target == event.pubkey ? nil : "restricted: actor not authorized"
    case 9005:
      guard !targets(of: event).isEmpty else { return "invalid: missing e tag" }
      return isAdmin || isOwnWork(event, in: group) ? nil : "restricted: actor not authorized"
    default: return isAdmin ? nil : "restricted: actor not authorized"
    }
  }

  /// Whether a 9005 by an ordinary person names events of theirs only.
  private func isOwnWork(_ event: Event, in group: Group) -> Bool {
    targets(of: event).allSatisfy { target in
      // An event that cannot be read is not known to be theirs.
      guard let held = try? store.event(target) else { return false }
      return held.pubkey == event.pubkey && held.group == group.id
    }
  }

  // MARK: Applying

  /// Changes groups as an accepted event says; nil where it is no business of theirs.
  ///
  /// A verdict that is not new answers a command that is not stored.
  mutating func moderate(_ event: Event) -> Verdict? {
    if event.kind == 41010 && rules.groups.opensConversations { return openConversation(event) }
    guard let name = event.group else { return nil }
    if event.kind == 9007 {
      var group = Group(id: name.owned(), name: name.owned())
      group.edit(by: event)
      group.members[event.pubkey] = [rules.groups.listsRolesOfMembers ? "owner" : "admin"]
      groups[name] = group
      return nil
    }
    guard var group = groups[name] else { return nil }
    switch event.kind {
    case 9000:
      for tag in event.tags where tag.name == "p" {
        guard let key = tag.bytes32(1).map(PublicKey.init) else { continue }
        group.members[key] = roles(in: tag, of: event, for: group.members[key])
      }
    case 9001: for key in event.people { group.members[key] = nil }
    case 9002: group.edit(by: event)
    case 9009: group.codes.formUnion(event.tags.values("code").map { $0.owned() })
    case 9021:
      if group.members[event.pubkey] == nil { group.members[event.pubkey] = [] }
    case 9022: group.members[event.pubkey] = nil
    default: return nil
    }
    groups[name] = group
    return nil
  }

  /// Roles stand in the `p` tag (NIP-29) or in a `role` tag (Buzz); none keeps those held.
  private func roles(in tag: Tag, of event: Event, for held: [Text]?) -> [Text] {
    var named = tag.dropFirst(2).map { $0.owned() }
    if let role = event.tags.firstValue("role") { named = [role.owned()] }
    named.removeAll { $0.isEmpty || $0 == "member" }
    return named.isEmpty ? held ?? [] : named
  }

  private mutating func openConversation(_ event: Event) -> Verdict {
    let others = Set(event.people).subtracting([event.pubkey])
    guard !others.isEmpty else {
      return .refused("invalid: a conversation needs somebody in it")
    }
    guard others.count <= 8 else {
      return .refused("invalid: pubkeys must contain at most 8 other participants (9 total)")
    }
    if rules.groups.recognisesRepeatedCommands {
      if commands.contains(event.id) { return .known("duplicate: already processed") }
      commands.append(event.id)
      if commands.count > RelayMachine.commandsMax { commands.removeFirst() }
    }
    let people = (others.union([event.pubkey])).sorted()
    if let known = groups.conversation(of: people) {
      return .known(response(channel: known.id, isNew: false))
    }
    var group = Group(id: conversationID(from: event.id), name: "Direct message")
    group.participants = people
    group.isPrivate = true
    group.isHidden = true
    for key in people { group.members[key] = [] }
    groups[group.id] = group
    announceState(of: group.id, [39000, 39001, 39002])
    for key in people { announceMembership(44100, of: key, in: group.id, by: event.pubkey) }
    return .known(response(channel: group.id, isNew: true))
  }

  private func response(channel: Text, isNew: Bool) -> Text {
    Text("response: {\"channel_id\":\"\(channel)\",\"created\":\(isNew)}")
  }

  /// A channel id in the shape of a UUID, taken from the event that asked for it.
  private func conversationID(from id: EventID) -> Text {
    let digits = Array(id.hex)
    let parts = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }
    return Text(parts.joined(separator: "-"))
  }
}
