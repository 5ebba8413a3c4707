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

  @Test func `a relay that challenges without end is not signed for without end`() {
    var bench = challenged()
    for _ in 0..<200 {
      bench.take(.signed(Self.auth, challenge: "one"))
      bench.take(.received(.auth(challenge: "one")))
    }
    let asked = bench.takeEffects().count { if case .sign = $0 { true } else { false } }
    #expect(asked <= 16)
  }
}
