package import Nostr
import NostrCrypto

/// What the relay itself signs about its groups: 39000–39003, 9000 and 9001 after requests of
/// people, 44100 and 44101.
extension RelayMachine {
  /// Signs and spreads what an accepted event changed.
  mutating func announceModeration(_ event: Event) {
    guard rules.groups.areManaged, let name = event.group else { return }
    switch event.kind {
    case 9007:
      announceState(of: name, stateKinds)
      announceMembership(44100, of: event.pubkey, in: name, by: event.pubkey)
    case 9000:
      announceState(of: name, [39001, 39002])
      for key in event.people { announceMembership(44100, of: key, in: name, by: event.pubkey) }
    case 9001: for key in event.people { announceDeparture(of: key, from: name, by: event.pubkey) }
    case 9002: announceChange(by: event, of: name)
    case 9008: dissolve(name, by: event.pubkey)
    case 9021: announceArrival(of: event, in: name)
    case 9022:
      announce(9001, [["h", name], ["p", Text(event.pubkey.hex)]], at: now)
      announceDeparture(of: event.pubkey, from: name, by: event.pubkey)
    default: break
    }
  }

  private var stateKinds: [EventKind] {
    rules.groups.announcesRoles ? [39000, 39001, 39002, 39003] : [39000, 39001, 39002]
  }

  private mutating func announceChange(by event: Event, of name: Text) {
    announceState(of: name, [39000])
    guard let group = groups[name] else { return }
    if group.isPrivate || group.isArchived {
      revoke(name) { group.isArchived || !group.hasMember(of: $0) }
    }
    // Un-archiving is told to every member as if they had been added.
    guard event.tags.firstValue("archived") == "false" else { return }
    for member in group.roster {
      announceMembership(44100, of: member.key, in: name, by: event.pubkey)
    }
  }

  private mutating func announceArrival(of event: Event, in name: Text) {
    announce(9000, [["h", name], ["p", Text(event.pubkey.hex)]], at: now)
    announceState(of: name, [39002])
    announceMembership(44100, of: event.pubkey, in: name, by: event.pubkey)
  }

  private mutating func announceDeparture(
    of key: PublicKey, from name: Text, by actor: PublicKey
  ) {
    announceState(of: name, [39001, 39002])
    announceMembership(44101, of: key, in: name, by: actor)
    if groups[name]?.isPrivate == true { revoke(name) { $0.contains(key) } }
  }

  private mutating func dissolve(_ name: Text, by actor: PublicKey) {
    guard let group = groups[name] else { return }
    for member in group.roster { announceMembership(44101, of: member.key, in: name, by: actor) }
    revoke(name) { group.hasMember(of: $0) }
    let time = groups.nextSigningTime(of: name, now: now)
    groups[name] = nil
    do throws(RelayStoreError) {
      try clear(name, upTo: time)
    } catch {
      // What could not be removed must not become readable by the group's end.
      groups[name] = group
    }
  }

  /// Removes a group's events, its end excepted, and its state.
  private mutating func clear(_ name: Text, upTo time: Timestamp) throws(RelayStoreError) {
    let all = PageRequest(filter: .group(name), eventsMax: .max)
    for event in try store.page(all, where: { $0.kind != 9008 }).events {
      try store.bury(event.id, by: nil)
    }
    guard let key = identity.selfKey else { return }
    for kind in stateKinds {
      let address = EventAddress(kind: kind, author: key, identifier: name.owned())
      try store.bury(address, upTo: time)
    }
  }

  // MARK: Signing

  /// Signs, stores and spreads the state events of a group as it is now.
  mutating func announceState(of name: Text, _ kinds: [EventKind]) {
    guard identity.signer != nil, let group = groups[name] else { return }
    let time = groups.nextSigningTime(of: name, now: now)
    for kind in kinds { announce(kind, stateTags(kind, of: group), at: time) }
  }

  mutating func announceMembership(
    _ kind: EventKind, of key: PublicKey, in name: Text, by actor: PublicKey
  ) {
    guard rules.groups.announcesMembership else { return }
    let type: Text = kind == 44100 ? "member_added" : "member_removed"
    let content = JSONValue.object([
      ("type", .string(type)), ("channel_id", .string(name)),
      ("actor", .string(Text(actor.hex))),
    ])
    announce(
      kind, [["p", Text(key.hex)], ["h", name]], at: now, content: Text(utf8: content.json()))
  }

  private mutating func announce(
    _ kind: EventKind, _ tags: [[Text]], at time: Timestamp, content: Text = ""
  ) {
    let draft = EventDraft(createdAt: time, kind: kind, tags: Tags(tags), content: content)
    // A relay that cannot sign or store keeps the change and says nothing of it, as a relay with
    // a failing key would; the next change of the group is announced whole.
    guard let signed = try? identity.signer?.sign(draft),
      (try? keep(signed.event)) == .stored
    else { return }
    fanOut(signed.event)
  }

  private func stateTags(_ kind: EventKind, of group: Group) -> [[Text]] {
    var tags: [[Text]] = [["d", group.id]]
    switch kind {
    case 39000: tags += metadataTags(of: group)
    case 39001:
      for member in group.roster where !member.roles.isEmpty {
        tags.append(["p", Text(member.key.hex)] + member.roles)
      }
    case 39002:
      for member in group.roster {
        let role = rules.groups.listsRolesOfMembers ? ["", member.roles.first ?? "member"] : []
        tags.append(["p", Text(member.key.hex)] + role)
      }
    default: tags.append(["role", "admin", "may change the group, its people and its messages"])
    }
    return tags
  }

  private func metadataTags(of group: Group) -> [[Text]] {
    var tags: [[Text]] = [["name", group.name]]
    if let about = group.about { tags.append(["about", about]) }
    if let picture = group.picture { tags.append(["picture", picture]) }
    if group.isPrivate { tags.append(["private"]) }
    if rules.groups.marksEveryGroupClosed {
      if !group.isPrivate { tags.append(["public"]) }
      tags.append(["closed"])
      tags.append(["t", group.participants.isEmpty ? "stream" : "dm"])
    } else if group.isClosed {
      tags.append(["closed"])
    }
    if group.isRestricted { tags.append(["restricted"]) }
    if group.isArchived { tags.append(["archived", "true"]) }
    if group.isHidden { tags.append(["hidden"]) }
    for key in group.participants { tags.append(["p", Text(key.hex)]) }
    return tags
  }

  // MARK: Loading

  /// Takes over events that were accepted before, in the order in which they were: after a restart,
  /// or as a made-up community. Nothing is judged, sent or written down again.
  package mutating func load(_ events: some Sequence<Event>) throws(RelayStoreError) {
    for event in events {
      _ = try keep(event)
      try restore(event)
    }
    effects = []
  }

  /// Reads the groups again from the state events that the store holds.
  package mutating func reloadGroups() throws(RelayStoreError) {
    guard let key = identity.selfKey else { return }
    groups = GroupBook()
    let filter = Filter(authors: [key], kinds: [39000, 39001, 39002])
    let page = try store.page(
      PageRequest(filter: filter, eventsMax: .max, order: .newestFirst)
    )
    let invites = try store.page(PageRequest(filter: Filter(kinds: [9009]), eventsMax: .max))
    for event in page.events.sorted(by: { $0.kind < $1.kind }) + invites.events {
      try restore(event)
    }
  }

  private mutating func restore(_ event: Event) throws(RelayStoreError) {
    if event.kind == 9008, let name = event.group, groups[name] != nil {
      groups[name] = nil
      try clear(name, upTo: event.createdAt)
    }
    if event.kind == 9009, let name = event.group, var group = groups[name] {
      group.codes.formUnion(event.tags.values("code").map { $0.owned() })
      groups[name] = group
    }
    guard event.pubkey == identity.selfKey else { return }
    groups.restore(event)
  }
}
