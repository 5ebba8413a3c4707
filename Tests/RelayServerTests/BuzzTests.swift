import Nostr
import NostrCrypto
import RelayServer
import Testing

/// What sets Buzz relays apart; each rule with its opposite.
@Suite struct BuzzTests {
  private let h = UInt8(ascii: "h")
  private let p = UInt8(ascii: "p")

  private func buzz(_ change: (inout RelayRules) -> Void = { _ in }) -> Bench {
    var rules = RelayRules.buzz
    rules.limits.budget = nil
    change(&rules)
    return Bench(rules)
  }

  private func listen(_ filters: [Filter], as name: String, on bench: inout Bench) -> ConnectionID {
    let id = bench.connect(as: name)
    bench.say(.req("live", filters), on: id)
    _ = bench.take(id)
    return id
  }

  @Test(arguments: [true, false])
  func `channel events go live only to a REQ for exactly that channel`(isStrict: Bool) {
    var bench = buzz { $0.reading.fanOut = isStrict ? .singleChannel : .matching }
    bench.found("a", by: "ann")
    bench.found("b", by: "ann")
    let one = listen([Filter(kinds: [9], tags: [h: ["a"]])], as: "bob", on: &bench)
    let two = listen([Filter(kinds: [9], tags: [h: ["a", "b"]])], as: "cat", on: &bench)
    let none = listen([Filter(kinds: [9])], as: "dan", on: &bench)
    let profiles = listen([Filter(kinds: [0])], as: "eve", on: &bench)
    let mixed = listen(
      [Filter(kinds: [0], tags: [h: ["a"]]), Filter(kinds: [0])], as: "fay", on: &bench)
    let ann = bench.connect(as: "ann")
    let message = Bench.event(by: "ann", 9, [["h", "a"]], "hello")
    let profile = Bench.event(by: "ann", 0, [], "{}")
    #expect(bench.publish(message, on: ann)?.accepted == true)
    #expect(bench.publish(profile, on: ann)?.accepted == true)
    #expect(bench.takeEvents(one) == [message])
    #expect(bench.takeEvents(two) == (isStrict ? [] : [message]))
    #expect(bench.takeEvents(none) == (isStrict ? [] : [message]))
    #expect(bench.takeEvents(profiles) == [profile])
    #expect(bench.takeEvents(mixed) == (isStrict ? [] : [profile]))
    #expect(bench.ask(Filter(kinds: [9], tags: [h: ["a", "b"]]), on: two).ids == [message.id])
  }

  @Test(arguments: [true, false])
  func `a reaction without h belongs to its target's channel`(resolves: Bool) {
    var bench = buzz { $0.groups.resolvesScopeByTarget = resolves }
    bench.found("a", by: "ann")
    let ann = bench.connect(as: "ann")
    let message = Bench.event(by: "ann", 9, [["h", "a"]], "hello")
    _ = bench.publish(message, on: ann)
    let reader = listen([Filter(kinds: [7], tags: [h: ["a"]])], as: "bob", on: &bench)
    let reaction = Bench.event(by: "ann", 7, [["e", message.id.hex]], "+")
    _ = bench.publish(reaction, on: ann)
    #expect(bench.takeEvents(reader) == (resolves ? [reaction] : []))
    #expect(
      bench.ask(Filter(kinds: [7], tags: [h: ["a"]]), on: reader).ids
        == (resolves ? [reaction.id] : []))
  }

  @Test(arguments: [true, false])
  func `a live REQ with since is deaf where the rule says so`(isDeaf: Bool) {
    var bench = buzz { $0.reading.isDeafToSince = isDeaf }
    bench.found("a", by: "ann")
    let filter = Filter(kinds: [9], tags: [h: ["a"]], since: Bench.start - 5)
    let reader = listen([filter], as: "bob", on: &bench)
    let message = Bench.event(by: "ann", 9, [["h", "a"]], "hello")
    _ = bench.publish(message, on: bench.connect(as: "ann"))
    #expect(bench.takeEvents(reader) == (isDeaf ? [] : [message]))
    #expect(bench.ask(filter, on: reader).ids == [message.id])
  }

  @Test(arguments: [true, false])
  func `group state comes by query, and live only where the rule is off`(withholds: Bool) {
    var bench = buzz { $0.reading.withholdsGroupState = withholds }
    let reader = listen([Filter(kinds: [39000, 39002], tags: [h: ["a"]])], as: "bob", on: &bench)
    let other = listen([Filter(kinds: [39000, 39002])], as: "cat", on: &bench)
    bench.found("a", by: "ann")
    #expect(bench.takeEvents(reader).map(\.kind) == (withholds ? [] : [39000, 39002]))
    #expect(bench.takeEvents(other).isEmpty)
    #expect(bench.ask(Filter(kinds: [39000]), on: other).events.count == 1)
  }

  @Test(arguments: [true, false])
  func `a membership change is announced to the one it concerns`(announces: Bool) {
    var bench = buzz { $0.groups.announcesMembership = announces }
    bench.found("a", by: "ann")
    let me = Text(Bench.hex("bob"))
    let filter = Filter(kinds: [44100, 44101], tags: [p: [me]])
    let bob = listen([filter], as: "bob", on: &bench)
    let ann = bench.connect(as: "ann")
    _ = bench.publish(Bench.event(by: "ann", 9000, [["h", "a"], ["p", me.string]]), on: ann)
    _ = bench.publish(Bench.event(by: "ann", 9001, [["h", "a"], ["p", me.string]]), on: ann)
    let events = bench.takeEvents(bob)
    #expect(events.map(\.kind) == (announces ? [44100, 44101] : []))
    #expect(bench.ask(filter, on: bob).events.count == (announces ? 2 : 0))
    guard announces, let added = events.first else { return }
    let content = String(decoding: added.content.utf8, as: UTF8.self)
    #expect(content.contains("\"type\":\"member_added\"") && added.group == "a")
  }

  @Test(arguments: [true, false])
  func `a reply's parent must be known and of the same channel`(checks: Bool) {
    var bench = buzz { $0.writing.checksParent = checks }
    bench.found("a", by: "ann")
    bench.found("b", by: "ann")
    let ann = bench.connect(as: "ann")
    let parent = Bench.event(by: "ann", 9, [["h", "a"]], "parent")
    func reply(in group: String) -> Event {
      Bench.event(by: "ann", 9, [["h", group], ["e", parent.id.hex, "", "reply"]], "reply")
    }
    let early = bench.publish(reply(in: "a"), on: ann)
    #expect(early?.text == (checks ? "invalid: reply parent not found" : ""))
    _ = bench.publish(parent, on: ann)
    let foreign = bench.publish(reply(in: "b"), on: ann)
    #expect(
      foreign?.text == (checks ? "invalid: parent event belongs to a different channel" : ""))
    #expect(bench.publish(reply(in: "a"), on: ann)?.accepted == true)
  }

  @Test func `whoever is removed from a private channel loses its subscriptions`() {
    var bench = buzz()
    bench.found("a", by: "ann", [["private"]], members: ["bob", "cat"])
    let bob = listen([.group("a", kinds: [9])], as: "bob", on: &bench)
    let cat = listen([.group("a", kinds: [9])], as: "cat", on: &bench)
    let ann = bench.connect(as: "ann")
    _ = bench.publish(
      Bench.event(by: "ann", 9001, [["h", "a"], ["p", Bench.hex("bob")]]), on: ann)
    #expect(bench.take(bob) == [.closed("live", "restricted: channel access revoked")])
    let message = Bench.event(by: "ann", 9, [["h", "a"]], "secret")
    _ = bench.publish(message, on: ann)
    #expect(bench.takeEvents(bob).isEmpty)
    #expect(bench.takeEvents(cat) == [message])
  }

  @Test func `a channel that goes private or is archived ends subscriptions`() {
    var bench = buzz()
    bench.found("a", by: "ann", members: ["bob"])
    let bob = listen([.group("a", kinds: [9])], as: "bob", on: &bench)
    let cat = listen([.group("a", kinds: [9])], as: "cat", on: &bench)
    let ann = bench.connect(as: "ann")
    func change(_ tag: [String]) {
      _ = bench.publish(Bench.event(by: "ann", 9002, [["h", "a"], tag]), on: ann)
    }
    let revoked = RelayMessage.closed("live", "restricted: channel access revoked")
    change(["visibility", "private"])
    #expect(bench.take(cat) == [revoked])
    #expect(bench.take(bob).isEmpty)
    change(["archived", "true"])
    #expect(bench.take(bob) == [revoked])
    let message = Bench.event(by: "ann", 9, [["h", "a"]], "hello")
    #expect(bench.publish(message, on: ann)?.text == "invalid: channel is archived")
    bench.pass(.seconds(1))
    change(["archived", "false"])
    #expect(bench.publish(message, on: ann)?.accepted == true)
    let told = Filter(kinds: [44100], tags: [p: [Text(Bench.hex("bob"))]])
    #expect(bench.ask(told, on: bob).events.count == 2)
  }

  @Test func `a conversation is opened once, and found again by its people`() throws {
    var bench = buzz()
    let ann = bench.connect(as: "ann")
    let bob = bench.connect(as: "bob")
    func open(_ name: String, with others: [String], _ note: String, on id: ConnectionID) -> String?
    {
      let tags = others.map { ["p", Bench.hex($0)] }
      return bench.publish(Bench.event(by: name, 41010, tags, note), on: id)?.text
    }
    let first = try #require(open("ann", with: ["bob"], "", on: ann))
    #expect(first.hasPrefix("response: {\"channel_id\":\"") && first.hasSuffix("\"created\":true}"))
    let again = try #require(open("bob", with: ["ann"], "", on: bob))
    #expect(again == first.replacing("true", with: "false"))
    #expect(open("ann", with: ["bob"], "", on: ann) == "duplicate: already processed")
    bench.machine.rules.groups.recognisesRepeatedCommands = false
    #expect(open("ann", with: ["bob"], "", on: ann) == again)
    let empty = open("ann", with: [], "alone", on: ann)
    #expect(empty == "invalid: a conversation needs somebody in it")
    #expect(!bench.kept.contains { $0.kind == 41010 })
    bench.machine.rules.groups.opensConversations = false
    #expect(open("ann", with: ["cat"], "plain", on: ann) == "")
  }

  @Test(arguments: [true, false])
  func `an open channel is marked closed where the rule says so, and is joined all the same`(
    marks: Bool
  ) throws {
    var bench = buzz { $0.groups.marksEveryGroupClosed = marks }
    bench.found("a", by: "ann")
    let id = bench.connect(as: "ann")
    let metadata = try #require(bench.ask(Filter(kinds: [39000]), on: id).events.first)
    #expect(metadata.tags.contains(named: "closed") == marks)
    #expect(metadata.tags.contains(named: "public") == marks)
    #expect(bench.ask(Filter(kinds: [39003]), on: id).events.isEmpty)
    let join = Bench.event(by: "bob", 9021, [["h", "a"]])
    #expect(bench.publish(join, on: bench.connect(as: "bob"))?.accepted == true)
  }

  @Test(arguments: [true, false])
  func `a member's role stands in element 3 of the roster where the rule says so`(
    lists: Bool
  ) throws {
    var bench = buzz { $0.groups.listsRolesOfMembers = lists }
    bench.found("a", by: "ann", members: ["bob"])
    let id = bench.connect(as: "ann")
    let roster = try #require(bench.ask(Filter(kinds: [39002]), on: id).events.first)
    let people = roster.tags.filter { $0.name == "p" }
    let roles = people.map { $0.value(3)?.string }
    #expect(Set(roles) == (lists ? ["owner", "member"] : [nil]))
    #expect(people.allSatisfy { $0.count == (lists ? 4 : 2) })
  }

  @Test func `relay-only kinds are refused in Buzz's words`() {
    var bench = buzz()
    let id = bench.connect(as: "ann")
    #expect(
      bench.publish(Bench.event(by: "ann", 39000, [["d", "x"]]), on: id)?.text
        == "restricted: relay-only kind")
    #expect(
      bench.publish(Bench.event(by: "ann", 44100, [["p", Bench.hex("ann")]]), on: id)?.text
        == "invalid: membership notifications are relay-signed only")
  }

  @Test func `kinds gated by author need one's own key`() {
    var bench = buzz()
    let id = bench.connect(as: "ann")
    let own = bench.ask(Filter(authors: [Bench.key("ann").publicKey], kinds: [30300]), on: id)
    #expect(own.refusal == nil)
    let text = "restricted: author-only kinds require authors=[self]"
    #expect(bench.ask(Filter(kinds: [30300]), on: id).refusal == text)
    #expect(
      bench.ask(Filter(authors: [Bench.key("bob").publicKey], kinds: [30300]), on: id).refusal
        == text)
    bench.machine.rules.reading.kindsGatedByAuthor = []
    #expect(bench.ask(Filter(kinds: [30300]), on: id).refusal == nil)
  }

  @Test(arguments: [true, false])
  func `one more event can come after a CLOSE`(sends: Bool) {
    var bench = buzz { $0.reading.sendsAfterClose = sends }
    bench.found("a", by: "ann")
    let reader = listen([.group("a", kinds: [9])], as: "bob", on: &bench)
    bench.say(.close("live"), on: reader)
    let ann = bench.connect(as: "ann")
    for number in 0..<2 {
      _ = bench.publish(Bench.event(by: "ann", 9, [["h", "a"]], "\(number)"), on: ann)
    }
    #expect(bench.takeEvents(reader).count == (sends ? 1 : 0))
  }

  @Test func `subscriptions can be closed at the relay's will`() {
    var bench = buzz()
    let reader = listen([Filter(kinds: [0])], as: "bob", on: &bench)
    let effects = bench.machine.closeSubscriptions(
      because: "error: shutting down", now: bench.now, uptime: bench.uptime)
    for effect in effects { bench.perform(effect) }
    #expect(bench.take(reader) == [.closed("live", "error: shutting down")])
    _ = bench.publish(Bench.event(by: "ann", 0, [], "{}"), on: bench.connect(as: "ann"))
    #expect(bench.takeEvents(reader).isEmpty)
  }
}
