import Nostr

/// EVENT: what is taken, what is refused and in which words.
extension RelayMachine {
  /// What the relay says about one event.
  struct Verdict {
    var isAccepted: Bool
    var text: Text
    /// Whether the event, if accepted, is to be stored and told to others.
    var isNew: Bool

    static let stored = Verdict(isAccepted: true, text: "", isNew: true)

    static func refused(_ text: Text) -> Verdict {
      Verdict(isAccepted: false, text: text, isNew: false)
    }

    /// Accepted, with nothing left to do.
    static func known(_ text: Text) -> Verdict {
      Verdict(isAccepted: true, text: text, isNew: false)
    }
  }

  mutating func publish(_ event: Event, from id: ConnectionID) {
    guard let connection = connection(id) else { return }
    if case .refused(let text) = rules.answers.toEvent {
      return send(.ok(event.id, accepted: false, text), to: id)
    }
    if let answer = spend(from: id, on: .event(event.id)) { return send(answer, to: id) }
    var verdict = judge(event, from: connection)
    if verdict.isAccepted && verdict.isNew && rules.answers.toEvent != .acceptedButDropped {
      verdict = accept(event)
    }
    answer(event, verdict, to: id)
  }

  private mutating func answer(_ event: Event, _ verdict: Verdict, to id: ConnectionID) {
    let message = RelayMessage.ok(event.id, accepted: verdict.isAccepted, verdict.text)
    switch rules.answers.toEvent {
    case .prompt, .refused, .acceptedButDropped: send(message, to: id)
    case .never: break
    case .late(let delay): send(message, to: id, after: delay)
    case .emptyID: send(.ok(nil, accepted: verdict.isAccepted, verdict.text), to: id)
    }
  }

  // MARK: Judging

  /// The checks in the order in which a relay makes them: cheap ones first, and those that need
  /// the author's word to be true after the signature.
  private mutating func judge(_ event: Event, from connection: Connection) -> Verdict {
    let writing = rules.writing
    if writing.isReplica { return .refused("blocked: read-only replica") }
    if event.kind == 22242 {
      return .refused("invalid: AUTH events cannot be submitted via EVENT")
    }
    if rules.authentication.isNeededToWrite && connection.keys.isEmpty {
      return .refused("auth-required: we only accept events from authenticated users")
    }
    if event.content.count > writing.contentBytesMax {
      return .refused("invalid: content too large")
    }
    if event.tags.count > writing.tagsMax { return .refused("invalid: too many tags") }
    if writing.checksSignatures && !isValid(event) {
      return .refused("invalid: signature does not verify")
    }
    if let refusal = refusalByAuthor(event, connection) ?? refusalByKind(event) {
      return .refused(refusal)
    }
    if let known = verdictOnKnown(event) { return known }
    if isOutside(event.createdAt, past: writing.ageMax, future: writing.leadMax) {
      return .refused("invalid: event timestamp too far from server time")
    }
    if let refusal = refusalByGroup(event) ?? refusalOfDeletion(event) ?? refusalByThread(event)
      ?? refusalByReferences(event)
    {
      return .refused(refusal)
    }
    return .stored
  }

  private func refusalByAuthor(_ event: Event, _ connection: Connection) -> Text? {
    let isOwn = connection.keys.contains(event.pubkey)
    if rules.writing.refusesForeignAuthors && !isOwn {
      return "restricted: you cannot publish as somebody else"
    }
    // NIP-70: a protected event is taken from its author only.
    guard event.tags.contains(where: { $0.name == "-" && $0.count == 1 }), !isOwn else {
      return nil
    }
    return connection.keys.isEmpty
      ? "auth-required: this event may only be published by its author"
      : "restricted: this event may only be published by its author"
  }

  private func refusalByKind(_ event: Event) -> Text? {
    if rules.writing.refusesRelaySignedKinds && RelayMachine.relaySignedKinds.contains(event.kind) {
      if rules.answers.wording == .buzz {
        return event.kind == 44100 || event.kind == 44101
          ? "invalid: membership notifications are relay-signed only"
          : "restricted: relay-only kind"
      }
      return Text("invalid: kind \(event.kind) is signed by the relay")
    }
    if rules.writing.refusedKinds.contains(event.kind) {
      return "restricted: this relay does not take that kind"
    }
    if let allowed = rules.writing.allowedKinds, !allowed.contains(event.kind) {
      return "restricted: unknown event kind"
    }
    return nil
  }

  static let relaySignedKinds: Set<EventKind> = [
    39000, 39001, 39002, 39003, 13534, 13535, 8002, 8003, 30622, 39005, 39006, 40099, 40901, 40902,
    44100, 44101,
  ]

  private func verdictOnKnown(_ event: Event) -> Verdict? {
    do throws(RelayStoreError) {
      if try store.contains(event.id) { return verdictOnDuplicate }
      guard rules.writing.refusesRepeatedReactions, event.kind == 7,
        let target = event.tags.values("e").last
      else { return nil }
      let same = Filter(
        authors: [event.pubkey], kinds: [7], tags: [UInt8(ascii: "e"): [target]])
      let page = try store.page(PageRequest(filter: same, eventsMax: 100)) {
        $0.content == event.content
      }
      return page.events.isEmpty ? nil : .refused("duplicate: reaction already exists")
    } catch {
      return .refused("error: database error")
    }
  }

  private var verdictOnDuplicate: Verdict {
    switch rules.writing.duplicates {
    case .accepted: .known("duplicate: already have this event")
    case .acceptedInSilence: .known("")
    case .refused: .refused("duplicate: already have this event")
    }
  }

  private func refusalOfDeletion(_ event: Event) -> Text? {
    guard rules.writing.needsOneDeletionTarget, event.kind == 5 else { return nil }
    let events = event.tags.values("e").count
    let addresses = event.tags.values("a").count
    guard events + addresses != 1 else { return nil }
    return Text(
      "invalid: deletion events must reference exactly one target via e or a tag "
        + "(got e=\(events), a=\(addresses))")
  }

  private func refusalByThread(_ event: Event) -> Text? {
    guard rules.writing.checksParent else { return nil }
    for tag in event.tags where tag.name == "e" && tag.value(3) == "reply" {
      guard let parent = tag.bytes32(1).map(EventID.init) else { continue }
      // A store that cannot answer is reported when the event is offered to it.
      guard let held = try? store.event(parent) else { return "invalid: reply parent not found" }
      if held.group != event.group {
        return "invalid: parent event belongs to a different channel"
      }
    }
    return nil
  }

  private func refusalByReferences(_ event: Event) -> Text? {
    guard rules.writing.needsReferences, let group = event.group else { return nil }
    // As with the parent.
    let request = PageRequest(filter: Filter.group(group), eventsMax: 50)
    guard let page = try? store.page(request, where: { _ in true }), !page.events.isEmpty else {
      return nil
    }
    let tag = event.tags.first { $0.name == "previous" }
    let references: [Text] = tag.map { Array($0.dropFirst()) } ?? []
    if references.isEmpty { return "invalid: missing previous tag" }
    let unknown = references.first { reference in
      !page.events.contains { $0.id.hex.hasPrefix(reference.string) }
    }
    return unknown.map { Text("invalid: previous id '\($0)' wasn't found in this relay") }
  }

  // MARK: Accepting

  /// Stores, applies and announces an event that passed every check.
  mutating func accept(_ event: Event) -> Verdict {
    if rules.groups.areManaged, let verdict = moderate(event), !verdict.isNew { return verdict }
    if event.kind.storage == .ephemeral && !rules.writing.storesEphemeralEvents {
      fanOut(event)
      return .stored
    }
    do throws(RelayStoreError) {
      switch try keep(event) {
      case .stored: break
      case .duplicate: return verdictOnDuplicate
      case .superseded: return .known("duplicate: a newer version is held")
      case .buried: return .refused("blocked: this event was deleted")
      }
    } catch {
      return .refused(error == .readOnly ? "blocked: read-only" : "error: database error")
    }
    fanOut(event)
    announceModeration(event)
    return .stored
  }

  /// Stores an event and applies the deletions in it.
  mutating func keep(_ event: Event) throws(RelayStoreError) -> Insertion {
    let scope = rules.groups.resolvesScopeByTarget ? scope(of: event) : nil
    let insertion = try store.insert(
      event, scope: scope, replacesVersions: rules.writing.replacesVersions)
    guard insertion == .stored else { return insertion }
    effects.append(.keep(event))
    switch event.kind {
    case 5: try applyDeletion(event)
    case 9005:
      for target in targets(of: event) { try store.bury(target, by: nil) }
    default: break
    }
    return insertion
  }

  private mutating func applyDeletion(_ event: Event) throws(RelayStoreError) {
    let limit = rules.writing.deletionTargetsMax ?? .max
    for target in targets(of: event).prefix(limit) {
      // Deleting a deletion has no effect (NIP-09).
      if let held = try store.event(target), held.kind == 5 { continue }
      try store.bury(target, by: event.pubkey)
    }
    for value in event.tags.values("a") {
      guard let address = EventAddress(value), address.author == event.pubkey else { continue }
      try store.bury(address, upTo: event.createdAt)
    }
  }

  func targets(of event: Event) -> [EventID] {
    event.tags.compactMap { tag in
      tag.name == "e" ? tag.bytes32(1).map(EventID.init) : nil
    }
  }
}
