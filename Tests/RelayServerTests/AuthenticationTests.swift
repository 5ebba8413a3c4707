import Nostr
import NostrCrypto
import RelayServer
import Testing

@Suite struct AuthenticationTests {
  private func verdict(_ message: RelayMessage?) -> (accepted: Bool, text: String)? {
    guard case .ok(_, let accepted, let text) = message else { return nil }
    return (accepted, text.string)
  }

  @Test func `every connection gets a challenge of its own, unless the relay never challenges`() {
    var bench = Bench()
    let first = bench.connect()
    let second = bench.connect()
    #expect(bench.take(first) == [.auth(challenge: "challenge-1")])
    #expect(bench.take(second) == [.auth(challenge: "challenge-2")])
    bench.machine.rules.authentication.challenges = false
    let third = bench.connect()
    #expect(bench.take(third).isEmpty)
  }

  @Test func `a right answer is accepted`() {
    var bench = Bench(.membersOnly)
    let id = bench.connect()
    #expect(
      bench.ask(Filter(), on: id).refusal == "auth-required: we only serve authenticated users")
    #expect(verdict(bench.authenticate(id, as: "ann"))?.accepted == true)
    #expect(bench.ask(Filter(), on: id).refusal == nil)
  }

  @Test func `reading and writing need authentication where the rules say so`() {
    var bench = Bench()
    let id = bench.connect()
    let profile = Bench.event(by: "ann", 0, [], "{}")
    #expect(bench.ask(Filter(), on: id).refusal == nil)
    #expect(
      bench.publish(profile, on: id)?.text
        == "auth-required: we only accept events from authenticated users")
    bench.machine.rules.authentication.isNeededToWrite = false
    #expect(bench.publish(profile, on: id)?.accepted == true)
  }

  @Test func `the challenge must be this connection's`() {
    var bench = Bench()
    let id = bench.connect()
    let other = bench.authenticate(id, as: "ann", challenge: "challenge-9")
    #expect(verdict(other)?.text == "restricted: wrong challenge")
    bench.machine.rules.authentication.checksChallenge = false
    #expect(verdict(bench.authenticate(id, as: "ann", challenge: "challenge-9"))?.accepted == true)
  }

  @Test func `the relay tag must name this relay, however its address is spelled`() {
    var bench = Bench()
    let id = bench.connect()
    let foreign = bench.authenticate(id, as: "ann", url: "wss://other.test")
    #expect(verdict(foreign)?.text == "restricted: auth event is for a different relay")
    #expect(
      verdict(bench.authenticate(id, as: "ann", url: "WS://Relay.Test:7000/"))?.accepted == true)
    bench.machine.rules.authentication.checksHost = false
    #expect(verdict(bench.authenticate(id, as: "bob", url: "wss://other.test"))?.accepted == true)
  }

  @Test func `an old answer is refused`() {
    var bench = Bench()
    let id = bench.connect()
    let old = bench.authenticate(id, as: "ann", at: Bench.start - 601)
    #expect(verdict(old)?.text == "restricted: auth event is too old")
    #expect(verdict(bench.authenticate(id, as: "ann", at: Bench.start - 600))?.accepted == true)
    bench.machine.rules.authentication.ageMax = nil
    #expect(verdict(bench.authenticate(id, as: "bob", at: Bench.start - 9999))?.accepted == true)
  }

  @Test(arguments: [
    [["relay", Bench.url], ["relay", Bench.url]],
    [["challenge", "challenge-1"], ["challenge", "challenge-1"]],
    [["relay", Bench.url]],
  ])
  func `two tags of one name do not stand in for one of each`(tags: [[String]]) {
    var bench = Bench()
    let id = bench.connect()
    _ = bench.take(id)
    bench.say(.auth(Bench.event(by: "ann", 22242, tags)), on: id)
    #expect(verdict(bench.take(id).last)?.text == "invalid: not a valid auth event")
  }

  @Test func `an answer of another kind, or with a broken signature, is refused`() {
    var bench = Bench()
    let id = bench.connect()
    let tags = [["relay", Bench.url], ["challenge", "challenge-1"]]
    let right = Bench.event(by: "ann", 22242, tags)
    let broken = Event(
      id: right.id, pubkey: Bench.key("bob").publicKey, createdAt: right.createdAt,
      kind: right.kind, tags: right.tags, content: right.content, sig: right.sig)
    for event in [Bench.event(by: "ann", 22243, tags), broken] {
      bench.say(.auth(event), on: id)
      #expect(verdict(bench.take(id).last)?.text == "invalid: not a valid auth event")
    }
    bench.say(.auth(right), on: id)
    #expect(verdict(bench.take(id).last)?.accepted == true)
  }

  @Test func `an answer is never stored, nor taken as an event`() {
    var bench = Bench()
    let id = bench.connect(as: "ann")
    let tags = [["relay", Bench.url], ["challenge", "challenge-1"]]
    let refusal = bench.publish(Bench.event(by: "ann", 22242, tags), on: id)
    #expect(refusal?.text == "invalid: AUTH events cannot be submitted via EVENT")
    #expect(bench.kept.isEmpty)
  }

  @Test func `one answer a socket, where the rule says so`() {
    var bench = Bench()
    bench.machine.rules.authentication.isOncePerSocket = true
    let id = bench.connect()
    _ = bench.authenticate(id, as: "ann")
    #expect(
      verdict(bench.authenticate(id, as: "ann"))?.text == "auth-required: already authenticated")
    let spoiled = bench.connect()
    _ = bench.authenticate(spoiled, as: "ann", challenge: "wrong")
    #expect(
      verdict(bench.authenticate(spoiled, as: "ann"))?.text
        == "auth-required: authentication already failed")
    bench.machine.rules.authentication.isOncePerSocket = false
    #expect(verdict(bench.authenticate(spoiled, as: "ann"))?.accepted == true)
  }

  @Test func `a socket that does not authenticate in time is closed`() {
    var bench = Bench()
    let patient = bench.connect()
    bench.pass(.seconds(60))
    #expect(bench.closed[patient] == nil)
    bench.machine.rules.authentication.deadline = .seconds(5)
    let late = bench.connect()
    let inTime = bench.connect()
    _ = bench.authenticate(inTime, as: "ann")
    bench.pass(.seconds(4))
    #expect(bench.closed[late] == nil)
    bench.pass(.seconds(1))
    #expect(bench.closed[late] == 1008)
    #expect(bench.closed[inTime] == nil)
  }

  @Test func `strangers and the banned are told so`() {
    var bench = Bench()
    bench.machine.rules.authentication.members = [
      Bench.key("ann").publicKey, Bench.key("bob").publicKey,
    ]
    bench.machine.rules.authentication.banned = [Bench.key("bob").publicKey]
    let stranger = bench.connect()
    #expect(
      verdict(bench.authenticate(stranger, as: "eve"))?.text == "restricted: not a relay member")
    let banned = bench.connect()
    #expect(
      verdict(bench.authenticate(banned, as: "bob"))?.text
        == "blocked: you are banned from this community")
    #expect(bench.closed[banned] == 1008)
    let member = bench.connect()
    #expect(verdict(bench.authenticate(member, as: "ann"))?.accepted == true)
  }

  @Test(arguments: [
    (RateBudget.Form.addressed, true, true), (.noticeForEvents, true, false),
    (.notice, false, false),
  ])
  func `over its budget a key is refused in the form of the rule, on all its connections`(
    form: RateBudget.Form, closesRequests: Bool, answersEvents: Bool
  ) {
    var bench = Bench()
    let first = bench.connect(as: "ann")
    let second = bench.connect(as: "ann")
    let other = bench.connect(as: "bob")
    for _ in 0..<10 { #expect(bench.ask(Filter(), on: first).refusal == nil) }
    bench.machine.rules.limits.budget = RateBudget(framesMax: 3, window: .seconds(5), form: form)
    #expect(bench.ask(Filter(), on: first).refusal == nil)
    #expect(bench.ask(Filter(), on: second).refusal == nil)
    #expect(bench.ask(Filter(), on: first).refusal == nil)
    let request = bench.ask(Filter(), on: second)
    let text = "rate-limited: quota exceeded; retry in 5s"
    #expect(request.refusal == (closesRequests ? text : nil) && request.hints == nil)
    let event = Bench.event(by: "ann", 0, [], "{}")
    #expect(bench.publish(event, on: first)?.text == (answersEvents ? text : nil))
    #expect(bench.ask(Filter(), on: other).refusal == nil)
    bench.pass(.seconds(5))
    #expect(bench.publish(event, on: first)?.accepted == true)
  }
}
