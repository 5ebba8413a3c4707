import Nostr
package import NostrCrypto

/// One case against one relay: some people, a group that is theirs, and what they try.
package struct ContractRun {
  private let relay: any ContractRelay
  private let salt: String
  private let group: Text

  /// - Parameters:
  ///   - salt: Makes the people new, so that a relay that keeps its events can be asked twice.
  ///   - group: A name for the group, of this run alone.
  package init(_ relay: any ContractRelay, salt: String, group: String = "group") {
    self.relay = relay
    self.salt = salt
    self.group = Text("contract-\(salt)-\(group)")
  }

  /// Everybody who takes part, for relays that must be told whom to admit.
  package static let names = ["ann", "bob", "cat", "eve"]

  package static func key(_ name: String, salt: String) throws -> SecretKey {
    try SecretKey(bytes: SHA256.hash(Array("contract \(salt) \(name)".utf8)).array)
  }

  /// Whether the relay does what the case says.
  package func holds(_ contractCase: ContractCase) async throws -> Bool {
    switch contractCase {
    case .authenticates: try await answer() == true
    case .checksChallenge: try await answer(challenge: "0123") == false
    case .checksRelay: try await answer(url: "wss://other.example") == false
    case .checksFreshness: try await answer(age: 7200) == false
    case .refusesForeignGroup: try await refusesForeignGroup()
    case .needsGroup: try await takes("bob", 9, [], "hello") == false
    case .clientRefusesRelayKinds: try clientRefusesRelayKinds()
    case .relayRefusesRelayKinds: try await takes("ann", 39000, [["d", group]]) == false
    case .takesPresence: try await takes("bob", 20001, [], "online") == true
    case .takesWithdrawal: try await takesWithdrawal()
    case .evaluatesFilters: try await evaluatesFilters()
    case .withholdsState: try await withholdsState()
    case .announcesMembership: try await announcesMembership()
    case .opensConversation: try await conversation("ann", with: "bob") != nil
    case .reopensConversation: try await reopensConversation()
    case .passesTyping: try await passesTyping()
    case .replacesReadState: try await replacesReadState()
    case .selectsByTag: try await selectsByTag()
    case .takesProfileAndReport: try await takesProfileAndReport()
    case .survivesRefusedReceipts: try await survives([9735])
    case .survivesUnknownKinds: try await survives([45678, 65000])
    }
  }

  // MARK: People

  private func answer(
    challenge: Text? = nil, url: String? = nil, age: Int64 = 0
  ) async throws -> Bool? {
    let ann = try await Conversation(relay)
    return try await ann.authenticate(try key("ann"), challenge: challenge, url: url, age: age)
  }

  /// A connection on which that person has authenticated, where the relay wants it.
  private func person(_ name: String) async throws -> Conversation {
    let conversation = try await Conversation(relay)
    _ = try await conversation.authenticate(try key(name))
    return conversation
  }

  private func key(_ name: String) throws -> SecretKey {
    try ContractRun.key(name, salt: salt)
  }

  private func hex(_ name: String) throws -> Text { Text(try key(name).publicKey.hex) }

  private func event(
    _ name: String, _ kind: EventKind, _ tags: [[Text]], _ content: Text = "", later: Int64 = 0
  ) throws -> Event {
    let draft = EventDraft(
      createdAt: relay.now() + later, kind: kind, tags: Tags(tags), content: content)
    // A relay's signer, because some cases need what a person's signer refuses to sign.
    return try RelaySigner(try key(name)).sign(draft).event
  }

  /// Whether the relay takes such an event; nil where it does not answer.
  private func takes(
    _ name: String, _ kind: EventKind, _ tags: [[Text]], _ content: Text = ""
  ) async throws -> Bool? {
    let someone = try await person(name)
    return try await someone.publish(try event(name, kind, tags, content))?.isAccepted
  }

  /// Makes the group, with Ann its admin and Bob its member.
  private func found() async throws -> Conversation {
    let ann = try await person("ann")
    let made = try event("ann", 9007, [["h", group], ["name", "contract"], ["restricted"]])
    _ = try await ann.publish(made)
    _ = try await ann.publish(try event("ann", 9002, [["h", group], ["restricted"]]))
    _ = try await ann.publish(try event("ann", 9000, [["h", group], ["p", try hex("bob")]]))
    return ann
  }

  /// What is stored and matches, once the relay has stored all that it was sent before.
  private func stored(
    _ filter: Filter, after moment: Text, for name: String, by someone: Conversation
  ) async throws -> [Event] {
    // A report: it needs no group, and replaces nothing.
    let marker = try event(
      name, 1984, [["p", try hex("eve"), "spam"]], Text("\(group.string) \(moment.string)"))
    _ = try await someone.settle(marker)
    return try await someone.ask(filter).events
  }

  // MARK: Cases

  private func refusesForeignGroup() async throws -> Bool {
    _ = try await found()
    let isMemberHeard = try await takes("bob", 9, [["h", group]], "from a member")
    let isStrangerHeard = try await takes("eve", 9, [["h", group]], "from a stranger")
    return isMemberHeard == true && isStrangerHeard == false
  }

  private func clientRefusesRelayKinds() throws -> Bool {
    let signer = LocalSigner(try key("ann"))
    return EventKind.relaySigned.allSatisfy { kind in
      let draft = EventDraft(
        createdAt: relay.now(), kind: kind, tags: Tags([] as [[Text]]), content: "")
      do throws(SignerError) {
        _ = try signer.signed(draft)
        return false
      } catch {
        return error == .relaySigned(kind)
      }
    }
  }

  private func takesWithdrawal() async throws -> Bool {
    _ = try await found()
    let bob = try await person("bob")
    let message = try event("bob", 9, [["h", group]], "hello")
    let reaction = try event("bob", 7, [["h", group], ["e", Text(message.id.hex)]], "+")
    for event in [message, reaction] {
      guard try await bob.publish(event)?.isAccepted == true else { return false }
    }
    let mine = Filter(ids: [reaction.id], kinds: [7])
    guard try await stored(mine, after: "reacting", for: "bob", by: bob) == [reaction] else {
      return false
    }
    let withdrawal = try event("bob", 5, [["e", Text(reaction.id.hex)]], later: 1)
    guard try await bob.publish(withdrawal)?.isAccepted == true else { return false }
    return try await stored(mine, after: "withdrawing", for: "bob", by: bob).isEmpty
  }

  private func evaluatesFilters() async throws -> Bool {
    _ = try await found()
    let bob = try await person("bob")
    let profile = try event("bob", 0, [], "{\"name\":\"bob\"}")
    _ = try await bob.publish(try event("bob", 9, [["h", group]], "hello"))
    guard try await bob.publish(profile)?.isAccepted == true else { return false }
    let own = Filter(authors: [try key("bob").publicKey], kinds: [0])
    return try await stored(own, after: "telling", for: "bob", by: bob) == [profile]
  }

  private func withholdsState() async throws -> Bool {
    let ann = try await found()
    let bob = try await person("bob")
    let filter = Filter(kinds: [9, 39000, 39002], limit: 1)
    guard try await bob.listen(filter).refusal == nil else { return false }
    _ = try await ann.publish(try event("ann", 9000, [["h", group], ["p", try hex("cat")]]))
    // What is sent after the change of state reaches the listener after it.
    let marker = try event("ann", 9, [["h", group]], "after the change")
    _ = try await ann.publish(marker)
    guard let events = try await bob.events(until: marker.id) else { return false }
    let state = Filter(kinds: [39002], tags: [UInt8(ascii: "d"): [group]])
    let held = try await bob.ask(state).events
    let cat = try hex("cat")
    let isByQuery = held.contains { $0.tags.values("p").contains(cat) }
    return isByQuery && !events.contains { $0.kind == 39002 && $0.id == held.first?.id }
  }

  private func announcesMembership() async throws -> Bool {
    let ann = try await found()
    let cat = try await person("cat")
    let notices = Filter(kinds: [44100], tags: [UInt8(ascii: "p"): [try hex("cat")]])
    guard try await cat.listen(notices).refusal == nil else { return false }
    _ = try await ann.publish(try event("ann", 9000, [["h", group], ["p", try hex("cat")]]))
    return try await cat.ask(notices).events.contains { $0.group == group }
  }

  /// The channel of a conversation; nil where the relay opens none.
  private func conversation(_ name: String, with other: String) async throws -> String? {
    let someone = try await person(name)
    let command = try event(name, 41010, [["p", try hex(other)]])
    guard let verdict = try await someone.publish(command), verdict.isAccepted,
      let marker = verdict.text.firstRange(of: "\"channel_id\":\"")
    else { return nil }
    return String(verdict.text[marker.upperBound...].prefix { $0 != "\"" })
  }

  private func reopensConversation() async throws -> Bool {
    let first = try await conversation("ann", with: "bob")
    let second = try await conversation("bob", with: "ann")
    return first != nil && first == second
  }

  private func passesTyping() async throws -> Bool {
    let ann = try await found()
    let bob = try await person("bob")
    let filter = Filter(kinds: [20002], tags: [UInt8(ascii: "h"): [group]])
    guard try await bob.listen(filter).refusal == nil else { return false }
    let typing = try event("ann", 20002, [["h", group]])
    guard try await ann.publish(typing)?.isAccepted == true,
      try await bob.events(until: typing.id) != nil
    else { return false }
    return try await stored(filter, after: "typing", for: "bob", by: bob).isEmpty
  }

  private func replacesReadState() async throws -> Bool {
    let bob = try await person("bob")
    func state(_ age: Int64) throws -> Event {
      try event(
        "bob", 30078, [["d", group], ["t", "read-state"]], Text("\(age)"), later: -age)
    }
    let states = [try state(20), try state(0), try state(10)]
    for event in states { _ = try await bob.publish(event) }
    let own = Filter(
      authors: [try key("bob").publicKey], kinds: [30078], tags: [UInt8(ascii: "d"): [group]])
    return try await stored(own, after: "reading", for: "bob", by: bob) == [states[1]]
  }

  private func selectsByTag() async throws -> Bool {
    let bob = try await person("bob")
    let state = try event("bob", 30078, [["d", group], ["t", group]])
    let other = try event("bob", 30078, [["d", "sections"], ["t", "sections"]])
    for event in [state, other] {
      guard try await bob.publish(event)?.isAccepted == true else { return false }
    }
    let own = Filter(
      authors: [try key("bob").publicKey], kinds: [30078],
      tags: [UInt8(ascii: "t"): [group]])
    return try await stored(own, after: "naming", for: "bob", by: bob) == [state]
  }

  private func takesProfileAndReport() async throws -> Bool {
    // Another case has him tell his name, perhaps in this very second, and of two one is refused.
    let profile = try event("bob", 0, [], "{\"name\":\"bob\"}", later: 2)
    let isProfileTaken = try await person("bob").publish(profile)?.isAccepted
    let isReportTaken = try await takes("bob", 1984, [["p", try hex("eve"), "spam"]])
    return isProfileTaken == true && isReportTaken == true
  }

  /// Whether messages and reactions arrive on a REQ of their own beside one for such kinds.
  private func survives(_ kinds: [EventKind]) async throws -> Bool {
    let ann = try await found()
    let bob = try await person("bob")
    _ = try await bob.listen(Filter(kinds: kinds, limit: 1))
    let filter = Filter(kinds: [9, 7], tags: [UInt8(ascii: "h"): [group]])
    guard try await bob.listen(filter).refusal == nil else { return false }
    let message = try event("ann", 9, [["h", group]], "hello")
    let reaction = try event("ann", 7, [["h", group], ["e", Text(message.id.hex)]], "+")
    for event in [message, reaction] {
      guard try await ann.publish(event)?.isAccepted == true,
        try await bob.events(until: event.id) != nil
      else { return false }
    }
    return true
  }
}
