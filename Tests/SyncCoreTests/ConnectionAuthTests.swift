import Nostr
import SyncCore
import Testing

@Suite struct ConnectionAuthTests {
  private func challenged(_ canSign: Bool = true) -> ConnectionBench {
    var bench = ConnectionBench(canSign: canSign)
    bench.take(.start)
    bench.take(.opened)
    bench.take(.received(.auth(challenge: "one")))
    return bench
  }

  private static let auth = ConnectionBench.event(900, kind: 22242)

  @Test func `a challenge is answered at once, and its OK makes the connection ready`() {
    var bench = challenged()
    #expect(bench.takeEffects().contains(.sign(challenge: "one")))
    bench.take(.signed(Self.auth, challenge: "one"))
    #expect(bench.takeAuths() == [Self.auth.id])
    bench.take(.want("a", [Filter(kinds: [9])]))
    #expect(bench.takeRequests().isEmpty)
    bench.take(.received(.ok(Self.auth.id, accepted: true, "")))
    #expect(bench.machine.state == .ready && bench.machine.isAuthenticated)
    #expect(bench.takeRequests().count == 1)
  }

  @Test func `three challenges while a signer works make two signatures and answer the last`() {
    var bench = challenged()
    bench.take(.received(.auth(challenge: "two")))
    bench.take(.received(.auth(challenge: "three")))
    bench.take(.signed(Self.auth, challenge: "one"))
    #expect(bench.takeAuths().isEmpty)
    let last = ConnectionBench.event(901, kind: 22242)
    bench.take(.signed(last, challenge: "three"))
    #expect(bench.takeAuths() == [last.id])
    let asked = bench.takeEffects().count { if case .sign = $0 { true } else { false } }
    #expect(asked == 2)
  }

  @Test func `already authenticated is success`() {
    var bench = challenged()
    bench.take(.signed(Self.auth, challenge: "one"))
    bench.take(
      .received(.ok(Self.auth.id, accepted: false, "auth-required: already authenticated")))
    #expect(bench.machine.state == .ready)
  }

  /// Refuses the AUTH at hand and goes on to the next challenge.
  ///
  /// - Returns: How that one is to be signed.
  private func refused(_ bench: inout ConnectionBench, _ why: Text) -> AuthShape? {
    bench.take(.signed(Self.auth, challenge: "one"))
    bench.take(.received(.ok(Self.auth.id, accepted: false, why)))
    if why.string.contains("time"), bench.machine.clockSkew == nil {
      bench.take(.clock(skew: 109))
    }
    _ = bench.takeEffects()
    while bench.machine.state.name == "backing-off" { bench.pass(.milliseconds(100)) }
    bench.take(.opened)
    bench.take(.received(.auth(challenge: "one")))
    return bench.takeEffects().compactMap { effect in
      if case .sign(_, let shape) = effect { shape } else { nil }
    }.first
  }

  @Test func `a clock that is off is measured, told, and corrected by once`() throws {
    var bench = challenged()
    bench.take(.clock(skew: 109))
    let shape = try #require(refused(&bench, "restricted: auth event is too old"))
    #expect(shape.correction == 109 && shape.address == .plain)
    #expect(shape.date(at: 1000) == 1109)
    #expect(bench.machine.lastError?.string.contains("109 s behind") == true)
    bench.take(.signed(Self.auth, challenge: "one"))
    bench.take(.received(.ok(Self.auth.id, accepted: true, "")))
    #expect(bench.machine.state == .ready && bench.opens == 0)
  }

  @Test func `a clock not yet known is asked for before the next AUTH`() throws {
    var bench = challenged()
    bench.take(.signed(Self.auth, challenge: "one"))
    bench.take(.received(.ok(Self.auth.id, accepted: false, "invalid: bad timestamp")))
    #expect(bench.takeEffects().contains(.measureClock))
    bench.pass(.milliseconds(1900))
    #expect(bench.machine.state.name == "backing-off")
  }

  @Test func `a clock that is right is not corrected, and the address is not to blame for time`()
    throws
  {
    var bench = challenged()
    bench.take(.clock(skew: 3))
    let shape = try #require(refused(&bench, "invalid: created_at out of the time window"))
    #expect(shape == AuthShape())
  }

  @Test func `after a refusal that may lie in the address the other spelling is tried`() throws {
    var bench = challenged()
    let other = try #require(refused(&bench, "auth-required: wrong relay url"))
    #expect(other.address == .other)
    let again = try #require(
      refused(&bench, "restricted: auth event is for a different relay"))
    #expect(again.address == .plain)
    let bare = try #require(RelayURL("wss://relay.test"))
    let deep = try #require(RelayURL("wss://relay.test:4433/chat"))
    #expect(AuthShape().text(of: bare) == "wss://relay.test")
    #expect(other.text(of: bare) == "wss://relay.test/")
    #expect(AuthShape().text(of: deep) == "wss://relay.test:4433/chat")
    #expect(other.text(of: deep) == "wss://relay.test:4433")
  }

  @Test func `the spelling that a relay took is used again`() throws {
    var bench = challenged()
    _ = refused(&bench, "auth-required: wrong relay url")
    bench.take(.signed(Self.auth, challenge: "one"))
    bench.take(.received(.ok(Self.auth.id, accepted: true, "")))
    bench.take(.ended("gone"))
    while bench.machine.state.name == "backing-off" { bench.pass(.milliseconds(100)) }
    bench.take(.opened)
    bench.take(.received(.auth(challenge: "one")))
    var shape = AuthShape()
    shape.address = .other
    #expect(bench.takeEffects().contains(.sign(challenge: "one", as: shape)))
  }

  @Test func `a relay that never answers an AUTH is tried after a grace`() {
    var bench = challenged()
    bench.take(.signed(Self.auth, challenge: "one"))
    bench.pass(.seconds(3))
    #expect(bench.machine.state == .ready)
  }

  @Test func `an OK without an id is the verdict on the AUTH where nothing else is in flight`() {
    var bench = challenged()
    bench.take(.signed(Self.auth, challenge: "one"))
    bench.take(.received(.ok(nil, accepted: false, "restricted: not you")))
    #expect(bench.machine.state == .refused("restricted: not you"))
  }

  @Test func `a refusal that may pass is tried on a new connection, which forgets it`() {
    var bench = challenged()
    bench.take(.signed(Self.auth, challenge: "one"))
    bench.take(.received(.ok(Self.auth.id, accepted: false, "error: database")))
    #expect(bench.machine.state.name == "backing-off")
    bench.pass(.seconds(31))
    bench.take(.opened)
    bench.take(.received(.auth(challenge: "two")))
    bench.take(.signed(Self.auth, challenge: "two"))
    bench.take(.received(.ok(Self.auth.id, accepted: true, "")))
    #expect(bench.machine.state == .ready)
  }

  @Test(arguments: ["restricted: not a relay member", "blocked: you are banned"] as [Text])
  func `a key that will not do ends the attempts until the user acts`(why: Text) {
    var bench = challenged()
    bench.take(.signed(Self.auth, challenge: "one"))
    bench.take(.received(.ok(Self.auth.id, accepted: false, why)))
    #expect(bench.machine.state == .refused(why))
    bench.pass(.seconds(3600))
    bench.take(.resume)
    #expect(bench.opens == 1)
    bench.take(.start)
    #expect(bench.opens == 2)
  }

  @Test func `a refused REQ is asked again once under a new id after AUTH`() throws {
    var bench = ConnectionBench()
    bench.take(.want("a", [Filter(kinds: [9])]))
    bench.becomeReady()
    let first = try #require(bench.takeRequests().first)
    bench.take(.received(.auth(challenge: "one")))
    bench.take(.received(.closed(first.id, "auth-required: who are you")))
    #expect(bench.takeRequests().isEmpty)
    bench.take(.signed(Self.auth, challenge: "one"))
    #expect(bench.takeAuths() == [Self.auth.id])
    bench.take(.received(.ok(Self.auth.id, accepted: true, "")))
    let second = try #require(bench.takeRequests().first)
    #expect(second.id != first.id)
    bench.take(.received(.closed(second.id, "auth-required: not in whitelist")))
    #expect(bench.machine.subscription("a") == .refused("auth-required: not in whitelist"))
    bench.pass(.seconds(60))
    #expect(bench.takeRequests().isEmpty)
  }

  @Test func `CLOSED before the challenge waits for it`() throws {
    var bench = ConnectionBench()
    bench.becomeReady()
    bench.take(.ask(AskID(1), ConnectionBench.request()))
    let first = try #require(bench.takeRequests().first)
    bench.take(.received(.closed(first.id, "auth-required: x")))
    bench.take(.received(.auth(challenge: "one")))
    bench.take(.signed(Self.auth, challenge: "one"))
    bench.take(.received(.ok(Self.auth.id, accepted: true, "")))
    #expect(bench.takeRequests().count == 1)
  }

  @Test func `a document that rules AUTH out is a hint, and the socket's word counts`() throws {
    var information = RelayInformation()
    information.authRequired = false
    var bench = ConnectionBench()
    bench.take(.start)
    bench.take(.opened)
    bench.take(.information(information))
    bench.take(.ask(AskID(1), ConnectionBench.request()))
    let first = try #require(bench.takeRequests().first)
    bench.take(.received(.closed(first.id, "auth-required: members only")))
    bench.take(.received(.auth(challenge: "one")))
    bench.take(.signed(Self.auth, challenge: "one"))
    bench.take(.received(.ok(Self.auth.id, accepted: true, "")))
    #expect(bench.takeRequests().count == 1)
  }

  @Test func `without a key the refusal is the answer`() throws {
    var bench = challenged(false)
    #expect(bench.machine.state == .ready)
    bench.take(.ask(AskID(1), ConnectionBench.request()))
    let asked = try #require(bench.takeRequests().first)
    bench.take(.received(.closed(asked.id, "auth-required: x")))
    #expect(bench.takeEffects().contains(.answered(AskID(1), .refused("auth-required: x"))))
  }

  @Test func `an event refused for AUTH is sent again once`() {
    var bench = ConnectionBench()
    bench.becomeReady()
    let event = ConnectionBench.event(1)
    bench.take(.publish(event))
    #expect(bench.takeEvents() == [event.id])
    bench.take(.received(.auth(challenge: "one")))
    bench.take(.received(.ok(event.id, accepted: false, "auth-required: x")))
    bench.take(.signed(Self.auth, challenge: "one"))
    bench.take(.received(.ok(Self.auth.id, accepted: true, "")))
    #expect(bench.takeEvents() == [event.id])
    bench.take(.received(.ok(event.id, accepted: false, "auth-required: not in whitelist")))
    #expect(
      bench.takeEffects().contains(
        .verdict(event.id, accepted: false, "auth-required: not in whitelist")))
  }

  @Test func `a relay that asks for AUTH and sends no challenge is heard in its own words`() throws
  {
    var bench = ConnectionBench()
    bench.take(.want("a", [Filter(kinds: [9])]))
    bench.becomeReady()
    bench.take(.ask(AskID(1), ConnectionBench.request()))
    let event = ConnectionBench.event(1)
    bench.take(.publish(event))
    bench.pass(.seconds(1))
    let requests = bench.takeRequests()
    #expect(requests.count == 2)
    for request in requests {
      bench.take(.received(.closed(request.id, "auth-required: only members read")))
    }
    bench.take(.received(.ok(event.id, accepted: false, "auth-required: only members write")))
    #expect(!bench.takeEffects().contains { if case .verdict = $0 { true } else { false } })
    bench.pass(.seconds(10))
    let note = "(it asked for AUTH and sent no challenge)"
    let effects = bench.takeEffects()
    #expect(
      effects.contains(
        .verdict(event.id, accepted: false, Text("auth-required: only members write \(note)"))))
    let unread = Text("auth-required: only members read \(note)")
    #expect(effects.contains(.answered(AskID(1), .refused(unread))))
    #expect(bench.machine.subscription("a") == .refused(unread))
    #expect(RefusalClass(unread) == .authRequired)
  }

  @Test func `a relay that challenges without end is not signed for without end`() {
    var bench = challenged()
    for _ in 0..<200 {
      bench.take(.signed(Self.auth, challenge: "one"))
      bench.take(.received(.auth(challenge: "one")))
    }
    let asked = bench.takeEffects().count { if case .sign = $0 { true } else { false } }
    #expect(asked <= 16)
  }

  @Test func `a relay that challenges every hour for a month is answered each time`() {
    var bench = challenged()
    for hour in 0..<720 {
      let challenge = Text("hour \(hour)")
      bench.take(.received(.auth(challenge: challenge)))
      if hour == 0 { bench.take(.signed(Self.auth, challenge: "one")) }
      bench.take(.signed(Self.auth, challenge: challenge))
      #expect(bench.takeAuths().last == Self.auth.id, "hour \(hour)")
      bench.take(.received(.ok(Self.auth.id, accepted: true, "")))
      for _ in 0..<180 {
        bench.pass(.seconds(20))
        bench.take(.heard)
      }
    }
    #expect(bench.opens == 1)
  }

  @Test
  func `a challenge that came too soon is answered as soon as the pace allows, the newest only`() {
    var bench = challenged()
    for number in 0..<40 {
      bench.take(.signed(Self.auth, challenge: number == 0 ? "one" : Text("\(number - 1)")))
      bench.take(.received(.ok(Self.auth.id, accepted: true, "")))
      bench.take(.received(.auth(challenge: Text("\(number)"))))
    }
    func signs(_ bench: inout ConnectionBench) -> [Text] {
      bench.takeEffects().compactMap { effect in
        if case .sign(let challenge, _) = effect { challenge } else { nil }
      }
    }
    #expect(signs(&bench).count == 16)
    for _ in 0..<2 {
      bench.pass(.seconds(25))
      bench.take(.heard)
    }
    #expect(signs(&bench).isEmpty)
    bench.pass(.seconds(11))
    #expect(signs(&bench) == ["39"])
    bench.take(.signed(Self.auth, challenge: "39"))
    for _ in 0..<600 {
      bench.take(.received(.auth(challenge: "again")))
      bench.take(.signed(Self.auth, challenge: "again"))
      bench.pass(.seconds(1))
    }
    // Ten minutes of nothing but challenges.
    #expect(signs(&bench).count <= 10)
  }

  /// How the relay of a bench answers whatever is asked until nothing more is.
  private func refuseAll(_ bench: inout ConnectionBench, challenges: inout Int) {
    for _ in 0..<4 {
      for request in bench.takeRequests() {
        challenges += 1
        let challenge = Text("challenge \(challenges)")
        bench.take(.received(.auth(challenge: challenge)))
        bench.take(.received(.closed(request.id, "auth-required: not in whitelist")))
        bench.take(.signed(Self.auth, challenge: challenge))
        guard !bench.takeAuths().isEmpty else { continue }
        bench.take(.received(.ok(Self.auth.id, accepted: true, "")))
      }
      bench.pass(.seconds(1))
      // A signature that came late, because there had been too many.
      let asked = bench.effects.compactMap { effect -> Text? in
        if case .sign(let challenge, _) = effect { challenge } else { nil }
      }
      guard let challenge = asked.last else { continue }
      bench.take(.signed(Self.auth, challenge: challenge))
      bench.take(.received(.ok(Self.auth.id, accepted: true, "")))
    }
  }

  @Test func `a request that would need one signature too many is refused in the relay's words`() {
    var bench = ConnectionBench()
    bench.becomeReady()
    var challenges = 0
    for number in 1...40 {
      bench.take(.ask(AskID(UInt64(number)), ConnectionBench.request()))
      bench.pass(.seconds(1))
      refuseAll(&bench, challenges: &challenges)
      let end = ConnectionMachine.Effect.answered(
        AskID(UInt64(number)), .refused("auth-required: not in whitelist"))
      #expect(bench.takeEffects().contains(end), "request \(number)")
    }
    #expect(challenges > 40)
  }

  @Test func `a signer that never answers a newer challenge keeps no request waiting`() throws {
    var bench = challenged()
    bench.take(.signed(Self.auth, challenge: "one"))
    bench.take(.received(.auth(challenge: "two")))
    bench.take(.received(.ok(Self.auth.id, accepted: true, "")))
    bench.take(.ask(AskID(1), ConnectionBench.request()))
    bench.pass(.seconds(1))
    let request = try #require(bench.takeRequests().last)
    bench.take(.received(.closed(request.id, "auth-required: x")))
    _ = bench.takeEffects()
    for _ in 0..<4 {
      bench.pass(.seconds(10))
      bench.take(.heard)
    }
    let ended = bench.takeEffects().contains { effect in
      if case .answered(AskID(1), _) = effect { true } else { false }
    }
    #expect(ended)
  }

  /// Challenges, refusals, signatures and OKs in any order, then a relay that only stays alive.
  @Test(arguments: 0..<200)
  func `whatever waits for AUTH ends, however the exchange went`(seed: Int) {
    let random = SeededRandom(UInt64(seed))
    var bench = ConnectionBench()
    bench.take(.start)
    bench.take(.opened)
    var requests: [SubscriptionID] = []
    var challenges: [Text] = ["none"]
    var asked = 0
    for _ in 0..<120 {
      switch random.next() % 7 {
      case 0, 1:
        challenges.append(Text("challenge \(challenges.count)"))
        bench.take(.received(.auth(challenge: challenges[challenges.count - 1])))
      case 2: bench.take(.received(.ok(Self.auth.id, accepted: true, "")))
      case 3:
        let one = Int(random.next() % UInt64(min(challenges.count, 3)))
        bench.take(.signed(Self.auth, challenge: challenges[challenges.count - 1 - one]))
      case 4:
        asked += 1
        bench.take(.ask(AskID(UInt64(asked)), ConnectionBench.request()))
      case 5: bench.pass(.milliseconds(300))
      default:
        requests += bench.takeRequests().map(\.id)
        if let id = requests.popLast() {
          bench.take(.received(.closed(id, "auth-required: x")))
        }
      }
    }
    for _ in 0..<20 {
      bench.pass(.seconds(10))
      bench.take(.heard)
    }
    let ended = bench.takeEffects().reduce(into: Set<AskID>()) { ended, effect in
      if case .answered(let id, _) = effect { ended.insert(id) }
    }
    #expect(ended.count == asked, "seed \(seed)")
  }
}
