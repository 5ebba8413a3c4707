import Nostr
import NostrCrypto
import RelayServer
import Testing

@Suite struct WritingTests {
  private func open(_ change: (inout RelayRules) -> Void = { _ in }) -> Bench {
    var rules = RelayRules.withoutGroups
    change(&rules)
    return Bench(rules)
  }

  private func tampered(_ event: Event) -> Event {
    Event(
      id: event.id, pubkey: event.pubkey, createdAt: event.createdAt, kind: event.kind,
      tags: event.tags, content: "other", sig: event.sig)
  }

  @Test(arguments: [true, false])
  func `events that do not verify are refused unless the rule is off`(checks: Bool) {
    var bench = open { $0.writing.checksSignatures = checks }
    let id = bench.connect()
    let bad = bench.publish(tampered(Bench.event(by: "ann", 1)), on: id)
    #expect(bad?.accepted == !checks)
    if checks { #expect(bad?.text == "invalid: signature does not verify") }
  }

  @Test func `an EVENT that is no event is answered by its id where it has one`() {
    var bench = open()
    let id = bench.connect()
    let event = Bench.event(by: "ann", 1)
    let frame = String(decoding: ClientMessage.event(event).json(), as: UTF8.self)
    bench.say(frame.replacing("\"kind\":1", with: "\"kind\":-1"), on: id)
    guard case .ok(event.id, false, let text)? = bench.take(id).first else {
      Issue.record("the bad event's id is answered")
      return
    }
    #expect(text.hasPrefix("invalid:"))
    bench.say(#"["EVENT",{"id":"x"}]"#, on: id)
    guard case .notice? = bench.take(id).first else {
      Issue.record("an event without an id is answered by a notice")
      return
    }
    bench.say("[\"WHAT\"", on: id)
    #expect(bench.closed[id] == nil)
    #expect(bench.publish(event, on: id)?.accepted == true)
  }

  @Test(arguments: [true, false])
  func `kinds that the relay signs are refused unless the rule is off`(refuses: Bool) {
    var bench = open { $0.writing.refusesRelaySignedKinds = refuses }
    let forged = Bench.event(by: "ann", 39000, [["d", "g"]])
    let verdict = bench.publish(forged, on: bench.connect())
    #expect(verdict?.accepted == !refuses)
    if refuses { #expect(verdict?.text == "invalid: kind 39000 is signed by the relay") }
  }

  @Test(arguments: [true, false])
  func `events of others are refused where the rule says so`(refuses: Bool) {
    var bench = open {
      $0.writing.refusesForeignAuthors = refuses
      $0.authentication.challenges = true
    }
    let id = bench.connect(as: "ann")
    #expect(bench.publish(Bench.event(by: "ann", 1), on: id)?.accepted == true)
    let foreign = bench.publish(Bench.event(by: "bob", 1), on: id)
    #expect(foreign?.accepted == !refuses)
    if refuses { #expect(foreign?.text == "restricted: you cannot publish as somebody else") }
  }

  @Test func `a protected event is taken from its author only`() {
    var bench = open { $0.authentication.challenges = true }
    let protected = Bench.event(by: "ann", 1, [["-"]])
    #expect(bench.publish(protected, on: bench.connect())?.text.hasPrefix("auth-required:") == true)
    #expect(
      bench.publish(protected, on: bench.connect(as: "bob"))?.text.hasPrefix("restricted:") == true)
    #expect(bench.publish(protected, on: bench.connect(as: "ann"))?.accepted == true)
  }

  @Test func `events outside the time window are refused where there is one`() {
    var bench = open()
    let id = bench.connect()
    #expect(bench.publish(Bench.event(by: "ann", 1, at: 5), on: id)?.accepted == true)
    bench.machine.rules.writing.ageMax = 900
    bench.machine.rules.writing.leadMax = 900
    let text = "invalid: event timestamp too far from server time"
    for offset: Int64 in [-901, 901] {
      let event = Bench.event(by: "ann", 1, [], "out", at: Bench.start + offset)
      #expect(bench.publish(event, on: id)?.text == text)
    }
    for offset: Int64 in [-900, 900] {
      let event = Bench.event(by: "ann", 1, [], "in", at: Bench.start + offset)
      #expect(bench.publish(event, on: id)?.accepted == true)
    }
    let document = String(decoding: bench.machine.document, as: UTF8.self)
    #expect(document.contains("\"created_at_lower_limit\":900"))
  }

  @Test func `an event that is held is a duplicate, whatever its date`() {
    var bench = open()
    let id = bench.connect()
    let event = Bench.event(by: "ann", 1)
    #expect(bench.publish(event, on: id)?.text == "")
    bench.machine.rules.writing.ageMax = 900
    bench.pass(.seconds(5000))
    let again = bench.publish(event, on: id)
    #expect(again?.accepted == true && again?.text == "duplicate: already have this event")
    #expect(bench.kept == [event])
  }

  @Test(arguments: [true, false])
  func `a repeated reaction is refused where the rule says so`(refuses: Bool) {
    var bench = open { $0.writing.refusesRepeatedReactions = refuses }
    let id = bench.connect()
    let note = Bench.event(by: "ann", 1)
    _ = bench.publish(note, on: id)
    let tags = [["e", note.id.hex]]
    #expect(bench.publish(Bench.event(by: "bob", 7, tags, "+"), on: id)?.accepted == true)
    let again = bench.publish(Bench.event(by: "bob", 7, tags, "+", at: Bench.start + 1), on: id)
    #expect(again?.accepted == !refuses)
    if refuses { #expect(again?.text == "duplicate: reaction already exists") }
    let other = Bench.event(by: "bob", 7, tags, "🔥", at: Bench.start + 1)
    #expect(bench.publish(other, on: id)?.accepted == true)
  }

  @Test func `a slot keeps its newest version, a tie its lowest id, and drops stragglers`() {
    var bench = open()
    let id = bench.connect()
    let old = Bench.event(by: "ann", 0, [], "old", at: Bench.start)
    let new = Bench.event(by: "ann", 0, [], "new", at: Bench.start + 5)
    let ties = (0..<4).map { Bench.event(by: "ann", 0, [], "tie \($0)", at: Bench.start + 9) }
    _ = bench.publish(new, on: id)
    #expect(bench.publish(old, on: id)?.accepted == true)
    #expect(bench.ask(Filter(kinds: [0]), on: id).ids == [new.id])
    for tie in ties { _ = bench.publish(tie, on: id) }
    #expect(bench.ask(Filter(kinds: [0]), on: id).ids == [ties.map(\.id).min()])
    let one = Bench.event(by: "ann", 30078, [["d", "one"]])
    let two = Bench.event(by: "ann", 30078, [["d", "two"]])
    let bare = Bench.event(by: "ann", 30078, [["d"]])
    let none = Bench.event(by: "ann", 30078, [], "none", at: Bench.start + 1)
    for event in [one, two, bare, none] { _ = bench.publish(event, on: id) }
    #expect(Set(bench.ask(Filter(kinds: [30078]), on: id).ids) == [one.id, two.id, none.id])
  }

  @Test func `a version that was replaced does not come back when the newest is deleted`() {
    var bench = open()
    let id = bench.connect()
    let old = Bench.event(by: "ann", 0, [], "old", at: Bench.start)
    let new = Bench.event(by: "ann", 0, [], "new", at: Bench.start + 5)
    _ = bench.publish(new, on: id)
    _ = bench.publish(Bench.event(by: "ann", 5, [["e", new.id.hex]], at: Bench.start + 6), on: id)
    _ = bench.publish(old, on: id)
    #expect(bench.ask(Filter(kinds: [0]), on: id).events.isEmpty)
  }

  @Test func `a deletion counts for its author's events only, and before they come`() {
    var bench = open()
    let id = bench.connect()
    let own = Bench.event(by: "ann", 1, [], "own")
    let foreign = Bench.event(by: "bob", 1, [], "foreign")
    let later = Bench.event(by: "ann", 1, [], "later")
    for event in [own, foreign] { _ = bench.publish(event, on: id) }
    let targets = [own, foreign, later].map { ["e", $0.id.hex] }
    let deletion = Bench.event(by: "ann", 5, targets, at: Bench.start + 1)
    #expect(bench.publish(deletion, on: id)?.accepted == true)
    #expect(bench.ask(Filter(kinds: [1]), on: id).ids == [foreign.id])
    #expect(bench.publish(later, on: id)?.text == "blocked: this event was deleted")
    let undone = Bench.event(by: "ann", 5, [["e", deletion.id.hex]], at: Bench.start + 2)
    _ = bench.publish(undone, on: id)
    #expect(bench.ask(Filter(kinds: [5]), on: id).events.count == 2)
  }

  @Test func `an address deletion takes the versions up to its own time`() {
    var bench = open()
    let id = bench.connect()
    let first = Bench.event(by: "ann", 30078, [["d", "a:b"]], at: Bench.start)
    _ = bench.publish(first, on: id)
    let address = "30078:\(Bench.hex("ann")):a:b"
    let foreign = Bench.event(by: "bob", 5, [["a", address]], at: Bench.start + 5)
    _ = bench.publish(foreign, on: id)
    #expect(bench.ask(Filter(kinds: [30078]), on: id).ids == [first.id])
    _ = bench.publish(Bench.event(by: "ann", 5, [["a", address]], at: Bench.start + 5), on: id)
    #expect(bench.ask(Filter(kinds: [30078]), on: id).events.isEmpty)
    let second = Bench.event(by: "ann", 30078, [["d", "a:b"]], at: Bench.start + 6)
    #expect(bench.publish(second, on: id)?.accepted == true)
    #expect(bench.ask(Filter(kinds: [30078]), on: id).ids == [second.id])
  }

  @Test(arguments: [1, nil])
  func `a deletion counts for as many targets as the rule says`(max: Int?) {
    var bench = open { $0.writing.deletionTargetsMax = max }
    let id = bench.connect()
    let notes = (0..<3).map { Bench.event(by: "ann", 1, [], "\($0)") }
    for note in notes { _ = bench.publish(note, on: id) }
    let deletion = Bench.event(by: "ann", 5, notes.map { ["e", $0.id.hex] })
    _ = bench.publish(deletion, on: id)
    #expect(bench.ask(Filter(kinds: [1]), on: id).events.count == (max == nil ? 0 : 2))
  }

  @Test func `ephemeral events reach live subscribers and are never stored`() {
    var bench = open()
    let reader = bench.connect()
    bench.say(.req("live", [Filter(kinds: [20001])]), on: reader)
    _ = bench.take(reader)
    let presence = Bench.event(by: "ann", 20001, [], "online")
    #expect(bench.publish(presence, on: bench.connect())?.accepted == true)
    #expect(bench.takeEvents(reader) == [presence])
    #expect(bench.ask(Filter(kinds: [20001]), on: reader).events.isEmpty)
    #expect(bench.kept.isEmpty)
  }

  @Test func `answers can be missing, late, nameless, false or untrue`() {
    var bench = open()
    let id = bench.connect()
    func note(_ text: String) -> Event { Bench.event(by: "ann", 1, [], text) }
    func holds(_ event: Event) -> Bool { bench.kept.contains(event) }
    bench.machine.rules.answers.toEvent = .never
    #expect(bench.publish(note("never"), on: id) == nil)
    #expect(holds(note("never")))
    bench.machine.rules.answers.toEvent = .late(.seconds(30))
    #expect(bench.publish(note("late"), on: id) == nil)
    #expect(bench.publish(note("late"), on: id) == nil)
    bench.pass(.seconds(30))
    #expect(
      bench.take(id) == [
        .ok(note("late").id, accepted: true, ""),
        .ok(note("late").id, accepted: true, "duplicate: already have this event"),
      ])
    bench.machine.rules.answers.toEvent = .emptyID
    bench.say(.event(note("nameless")), on: id)
    #expect(bench.take(id) == [.ok(nil, accepted: true, "")])
    bench.machine.rules.answers.toEvent = .refused("pow: 20 bits needed")
    #expect(bench.publish(note("refused"), on: id)?.text == "pow: 20 bits needed")
    #expect(!holds(note("refused")))
    bench.machine.rules.answers.toEvent = .acceptedButDropped
    #expect(bench.publish(note("dropped"), on: id)?.accepted == true)
    #expect(!holds(note("dropped")))
    bench.machine.rules.answers.toEvent = .prompt
    #expect(bench.publish(note("prompt"), on: id)?.accepted == true)
    #expect(holds(note("prompt")))
  }

  @Test func `oversized frames, contents and tag lists are refused`() {
    var bench = open {
      $0.writing.contentBytesMax = 10
      $0.writing.tagsMax = 2
      $0.limits.frameBytesMax = 4000
    }
    let id = bench.connect()
    let long = Bench.event(by: "ann", 1, [], "eleven bytes")
    #expect(bench.publish(long, on: id)?.text == "invalid: content too large")
    let tagged = Bench.event(by: "ann", 1, [["a", "1"], ["a", "2"], ["a", "3"]])
    #expect(bench.publish(tagged, on: id)?.text == "invalid: too many tags")
    #expect(
      bench.publish(Bench.event(by: "ann", 1, [["a", "1"]], "ten bytes!"), on: id)?.text == "")
    bench.say(String(repeating: " ", count: 4001), on: id)
    #expect(bench.take(id) == [.notice("invalid: frame too large")])
    #expect(bench.closed[id] == 1009)
  }

  @Test func `kinds can be refused one by one, or all but some`() {
    var bench = open { $0.writing.refusedKinds = [7] }
    let id = bench.connect()
    #expect(
      bench.publish(Bench.event(by: "ann", 7), on: id)?.text
        == "restricted: this relay does not take that kind")
    #expect(bench.publish(Bench.event(by: "ann", 1), on: id)?.accepted == true)
    bench.machine.rules.writing.allowedKinds = [1]
    #expect(
      bench.publish(Bench.event(by: "ann", 2), on: id)?.text == "restricted: unknown event kind")
  }

  @Test func `a replica refuses every event and says that it is one`() {
    var bench = Bench(.replica(asksForAuthentication: false))
    let id = bench.connect()
    #expect(
      bench.publish(Bench.event(by: "ann", 1), on: id)?.text == "blocked: read-only replica")
    let document = String(decoding: bench.machine.document, as: UTF8.self)
    #expect(document.contains("replica"))
    #expect(document.contains("\"self\":\"\(Bench.relayKey.publicKey.hex)\""))
  }

  @Test func `a relay restored from an old backup has forgotten what came later`() throws {
    var bench = open()
    let id = bench.connect()
    let notes = (0..<4).map { Bench.event(by: "ann", 1, [], "\($0)", at: Bench.start + Int64($0)) }
    for note in notes { _ = bench.publish(note, on: id) }
    try bench.machine.restart { $0.createdAt < Bench.start + 2 }
    let other = bench.connect()
    #expect(Set(bench.ask(Filter(kinds: [1]), on: other).ids) == Set(notes.prefix(2).map(\.id)))
    #expect(bench.publish(notes[3], on: other)?.text == "")
  }

  @Test(arguments: [true, false])
  func `an event of a group must name what the group's relay has shown, unless the rule is off`(
    isNeeded: Bool
  ) {
    var bench = open { $0.writing.needsReferences = isNeeded }
    let id = bench.connect()
    let first = Bench.event(by: "ann", 9, [["h", "a"]], "first")
    #expect(bench.publish(first, on: id)?.accepted == true)
    let bare = bench.publish(Bench.event(by: "ann", 9, [["h", "a"]], "bare"), on: id)
    #expect(bare?.text == (isNeeded ? "invalid: missing previous tag" : ""))
    let wrong = Bench.event(by: "ann", 9, [["h", "a"], ["previous", "00000000"]], "wrong")
    #expect(bench.publish(wrong, on: id)?.accepted == !isNeeded)
    let reference = String(first.id.hex.prefix(8))
    let right = Bench.event(by: "ann", 9, [["h", "a"], ["previous", reference]], "right")
    #expect(bench.publish(right, on: id)?.accepted == true)
  }
}
