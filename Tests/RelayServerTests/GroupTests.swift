import Nostr
import NostrCrypto
import RelayServer
import Testing

@Suite struct GroupTests {
  private let h = UInt8(ascii: "h")
  private let d = UInt8(ascii: "d")

  private func state(_ kind: EventKind, of group: Text, in bench: inout Bench) -> Event? {
    let id = bench.connect(as: "ann")
    let answer = bench.ask(Filter(kinds: [kind], tags: [d: [group]]), on: id)
    #expect(answer.events.count <= 1)
    return answer.events.first
  }

  private func people(_ kind: EventKind, of group: Text, in bench: inout Bench) -> Set<String> {
    Set(state(kind, of: group, in: &bench)?.tags.values("p").map(\.string) ?? [])
  }

  @Test func `whoever makes a group is its admin, and the relay signs its state`() throws {
    var bench = Bench()
    bench.found("g", by: "ann", [["about", "things"]])
    for kind: EventKind in [39000, 39001, 39002, 39003] {
      let event = try #require(state(kind, of: "g", in: &bench))
      #expect(event.pubkey == Bench.relayKey.publicKey)
    }
    #expect(people(39001, of: "g", in: &bench) == [Bench.hex("ann")])
    #expect(people(39002, of: "g", in: &bench) == [Bench.hex("ann")])
    let id = bench.connect(as: "bob")
    let again = bench.publish(Bench.event(by: "bob", 9007, [["h", "g"]]), on: id)
    #expect(again?.text == "duplicate: that group already exists")
  }

  @Test(arguments: [true, false])
  func `a message without h is refused unless the rule is off`(needs: Bool) {
    var bench = Bench()
    if !needs { bench.machine.rules.groups.kindsNeedingGroup = [] }
    let id = bench.connect(as: "ann")
    let verdict = bench.publish(Bench.event(by: "ann", 9, [], "hello"), on: id)
    #expect(verdict?.accepted == !needs)
    if needs { #expect(verdict?.text == "invalid: missing h tag") }
  }

  @Test func `profiles, reports, presence and withdrawn reactions need no group`() {
    var bench = Bench()
    let id = bench.connect(as: "ann")
    for kind: EventKind in [0, 1984, 20001, 5, 30078] {
      #expect(bench.publish(Bench.event(by: "ann", kind, [], "{}"), on: id)?.accepted == true)
    }
  }

  @Test(arguments: [true, false])
  func `an unknown group is refused unless the rule is off`(refuses: Bool) {
    var bench = Bench()
    bench.machine.rules.groups.refusesUnknownGroups = refuses
    let id = bench.connect(as: "ann")
    let verdict = bench.publish(Bench.event(by: "ann", 9, [["h", "nowhere"]]), on: id)
    #expect(verdict?.accepted == !refuses)
    if refuses { #expect(verdict?.text == "invalid: no such group") }
  }

  @Test(arguments: [true, false])
  func `only members write into a restricted group unless the rule is off`(scopes: Bool) {
    var bench = Bench()
    bench.machine.rules.groups.scopesWriting = scopes
    bench.found("g", by: "ann", [["restricted"]], members: ["bob"])
    let message: (String) -> Event = { Bench.event(by: $0, 9, [["h", "g"]], "hello") }
    let member = bench.connect(as: "bob")
    #expect(bench.publish(message("bob"), on: member)?.accepted == true)
    let stranger = bench.connect(as: "eve")
    let refused = bench.publish(message("eve"), on: stranger)
    #expect(refused?.accepted == !scopes)
    if scopes { #expect(refused?.text == "restricted: you are not a member of that group") }
  }

  @Test(arguments: [true, false])
  func `only members read a private group unless the rule is off`(scopes: Bool) {
    var bench = Bench()
    bench.machine.rules.groups.scopesReading = scopes
    bench.found("g", by: "ann", [["private"]], members: ["bob"])
    let member = bench.connect(as: "bob")
    let message = Bench.event(by: "bob", 9, [["h", "g"]], "secret")
    #expect(bench.publish(message, on: member)?.accepted == true)
    #expect(bench.ask(.group("g", kinds: [9]), on: member).ids == [message.id])
    let stranger = bench.connect(as: "eve")
    let asked = bench.ask(.group("g", kinds: [9]), on: stranger)
    #expect(asked.refusal == (scopes ? "restricted: not a channel member" : nil))
    #expect(asked.events.isEmpty == scopes)
    #expect(bench.ask(Filter(kinds: [9]), on: stranger).events.isEmpty == scopes)
    #expect(bench.ask(Filter(ids: [message.id]), on: stranger).events.isEmpty == scopes)
    #expect(bench.ask(Filter(kinds: [39002]), on: stranger).events.isEmpty == scopes)
    #expect(bench.ask(Filter(kinds: [39000]), on: stranger).events.count == 1)
    bench.say(.count("c", [Filter(kinds: [9])]), on: stranger)
    #expect(bench.take(stranger).last == .count("c", scopes ? 0 : 1, approximate: false))
    let nobody = bench.connect()
    let unknown = bench.ask(.group("g", kinds: [9]), on: nobody).refusal
    #expect(unknown?.hasPrefix("auth-required:") == (scopes ? true : nil))
  }

  @Test func `a reaction without h is as private as what it reacts to`() {
    var bench = Bench()
    bench.found("g", by: "ann", [["private"]])
    let member = bench.connect(as: "ann")
    let message = Bench.event(by: "ann", 9, [["h", "g"]], "secret")
    _ = bench.publish(message, on: member)
    _ = bench.publish(Bench.event(by: "ann", 7, [["e", message.id.hex]], "+"), on: member)
    #expect(bench.ask(Filter(kinds: [7]), on: member).events.count == 1)
    #expect(bench.ask(Filter(kinds: [7]), on: bench.connect(as: "eve")).events.isEmpty)
  }

  @Test func `a hidden group is not listed to strangers`() {
    var bench = Bench()
    bench.found("g", by: "ann", [["hidden"]])
    #expect(bench.ask(Filter(kinds: [39000]), on: bench.connect(as: "eve")).events.isEmpty)
    #expect(bench.ask(Filter(kinds: [39000]), on: bench.connect(as: "ann")).events.count == 1)
  }

  @Test func `joining and leaving change the roster`() {
    var bench = Bench()
    bench.found("g", by: "ann")
    let bob = bench.connect(as: "bob")
    let join = Bench.event(by: "bob", 9021, [["h", "g"]])
    #expect(bench.publish(join, on: bob)?.accepted == true)
    #expect(people(39002, of: "g", in: &bench) == [Bench.hex("ann"), Bench.hex("bob")])
    let again = Bench.event(by: "bob", 9021, [["h", "g"]], "again")
    let refusal = bench.publish(again, on: bob)
    #expect(refusal?.accepted == false && refusal?.text.hasPrefix("duplicate:") == true)
    bench.machine.rules.groups.acceptsRepeatedJoins = true
    #expect(bench.publish(again, on: bob)?.accepted == true)
    #expect(bench.publish(Bench.event(by: "bob", 9022, [["h", "g"]]), on: bob)?.accepted == true)
    #expect(people(39002, of: "g", in: &bench) == [Bench.hex("ann")])
    let ann = bench.connect(as: "ann")
    #expect(
      bench.publish(Bench.event(by: "ann", 9022, [["h", "g"]]), on: ann)?.text
        == "invalid: cannot remove the last owner")
  }

  @Test func `a closed group admits by code only`() {
    var bench = Bench()
    bench.found("g", by: "ann", [["closed"]])
    let bob = bench.connect(as: "bob")
    let bare = bench.publish(Bench.event(by: "bob", 9021, [["h", "g"]]), on: bob)
    #expect(bare?.text.hasPrefix("restricted:") == true)
    let ann = bench.connect(as: "ann")
    _ = bench.publish(Bench.event(by: "ann", 9009, [["h", "g"], ["code", "sesame"]]), on: ann)
    let coded = Bench.event(by: "bob", 9021, [["h", "g"], ["code", "sesame"]])
    #expect(bench.publish(coded, on: bob)?.accepted == true)
    #expect(people(39002, of: "g", in: &bench).contains(Bench.hex("bob")))
  }

  @Test func `moderation is for admins, and roles are given in the p tag`() {
    var bench = Bench()
    bench.found("g", by: "ann", members: ["bob"])
    let bob = bench.connect(as: "bob")
    let ann = bench.connect(as: "ann")
    let rename: (String) -> Event = { Bench.event(by: $0, 9002, [["h", "g"], ["name", "New"]]) }
    #expect(bench.publish(rename("bob"), on: bob)?.text == "restricted: actor not authorized")
    #expect(bench.publish(rename("ann"), on: ann)?.accepted == true)
    #expect(state(39000, of: "g", in: &bench)?.tags.firstValue("name") == "New")
    let promote = Bench.event(
      by: "ann", 9000, [["h", "g"], ["p", Bench.hex("bob"), "moderator"]])
    _ = bench.publish(promote, on: ann)
    #expect(people(39001, of: "g", in: &bench) == [Bench.hex("ann"), Bench.hex("bob")])
    #expect(
      bench.publish(Bench.event(by: "bob", 9002, [["h", "g"], ["about", "x"]]), on: bob)?.accepted
        == true)
    let remove = Bench.event(by: "ann", 9001, [["h", "g"], ["p", Bench.hex("bob")]])
    _ = bench.publish(remove, on: ann)
    #expect(people(39001, of: "g", in: &bench) == [Bench.hex("ann")])
    #expect(people(39002, of: "g", in: &bench) == [Bench.hex("ann")])
  }

  @Test func `a 9005 removes for good, by an admin or of one's own work`() {
    var bench = Bench()
    bench.found("g", by: "ann", members: ["bob", "eve"])
    let bob = bench.connect(as: "bob")
    let eve = bench.connect(as: "eve")
    let first = Bench.event(by: "bob", 9, [["h", "g"]], "first")
    let second = Bench.event(by: "bob", 9, [["h", "g"]], "second")
    for message in [first, second] { _ = bench.publish(message, on: bob) }
    func removal(_ name: String, _ target: Event) -> Event {
      Bench.event(by: name, 9005, [["h", "g"], ["e", target.id.hex]])
    }
    #expect(bench.publish(removal("eve", first), on: eve)?.accepted == false)
    #expect(bench.publish(removal("bob", first), on: bob)?.accepted == true)
    #expect(bench.publish(removal("ann", second), on: bench.connect(as: "ann"))?.accepted == true)
    #expect(bench.ask(.group("g", kinds: [9]), on: bob).events.isEmpty)
    #expect(bench.publish(first, on: bob)?.accepted == false)
  }

  @Test func `two changes in one second keep their order`() {
    var bench = Bench()
    bench.found("g", by: "ann")
    let ann = bench.connect(as: "ann")
    for number in 0..<6 {
      let edit = Bench.event(by: "ann", 9002, [["h", "g"], ["name", "name \(number)"]])
      #expect(bench.publish(edit, on: ann)?.accepted == true)
      #expect(state(39000, of: "g", in: &bench)?.tags.firstValue("name") == Text("name \(number)"))
    }
  }

  @Test func `the end of a group takes its messages and its state along`() {
    var bench = Bench()
    bench.found("g", by: "ann", [["private"]])
    let ann = bench.connect(as: "ann")
    _ = bench.publish(Bench.event(by: "ann", 9, [["h", "g"]], "secret"), on: ann)
    #expect(bench.publish(Bench.event(by: "ann", 9008, [["h", "g"]]), on: ann)?.accepted == true)
    let eve = bench.connect(as: "eve")
    #expect(bench.ask(Filter(kinds: [9, 39000, 39002, 9007]), on: eve).events.isEmpty)
  }

  @Test func `groups come back from what the relay wrote down`() throws {
    var bench = Bench()
    bench.found("g", by: "ann", [["private"], ["closed"]], members: ["bob", "eve"])
    let ann = bench.connect(as: "ann")
    _ = bench.publish(Bench.event(by: "ann", 9009, [["h", "g"], ["code", "sesame"]]), on: ann)
    _ = bench.publish(
      Bench.event(by: "ann", 9001, [["h", "g"], ["p", Bench.hex("eve")]]), on: ann)
    var again = Bench()
    try again.machine.load(bench.kept)
    let bob = again.connect(as: "bob")
    #expect(again.ask(.group("g", kinds: [9]), on: bob).refusal == nil)
    let eve = again.connect(as: "eve")
    #expect(
      again.ask(.group("g", kinds: [9]), on: eve).refusal == "restricted: not a channel member")
    let admin = again.connect(as: "ann")
    #expect(
      again.publish(Bench.event(by: "ann", 9002, [["h", "g"], ["name", "n"]]), on: admin)?.accepted
        == true)
    let coded = Bench.event(by: "fay", 9021, [["h", "g"], ["code", "sesame"]])
    #expect(again.publish(coded, on: again.connect(as: "fay"))?.accepted == true)
  }
}
