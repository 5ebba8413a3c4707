import Nostr
import SyncCore
import Testing

/// NIP-77 on the wire.
@Suite struct NegotiationTests {
  private let opening: [UInt8] = [0x61, 0, 0, 2, 0]
  private let filter = Filter(kinds: [9])

  private func opened(
    _ limits: Limits = Limits(), canSign: Bool = true, for openMax: Duration = .seconds(15)
  ) throws -> (ConnectionBench, SubscriptionID) {
    var bench = ConnectionBench(canSign: canSign, limits: limits)
    bench.becomeReady()
    bench.take(.negotiate(AskID(1), filter, opening, openMax: openMax))
    let id = try #require(bench.takeOpenings().first)
    return (bench, id)
  }

  // F170.
  @Test(arguments: [
    "ERROR: bad msg: negentropy disabled", "ERROR: bad msg: unknown cmd: NEG-OPEN",
    "unknown message type NEG-OPEN", "blocked: negentropy is disabled",
    "unsupported: NEG-OPEN", "invalid: negentropy not enabled",
  ])
  func `a NOTICE about it before its first message means that it is not done here`(text: String)
    throws
  {
    var (bench, _) = try opened()
    bench.take(.received(.notice(Text(text))))
    guard case .negotiationEnded(AskID(1), .refused)? = bench.ends.last else {
      Issue.record("\(bench.effects)")
      return
    }
    #expect(bench.takeEffects().contains(.notice(Text(text))))
  }

  @Test(arguments: ["ERROR: bad msg: unknown cmd", "could not parse command", "please be kind"])
  func `any other NOTICE leaves it a last moment`(text: String) throws {
    var (bench, _) = try opened()
    bench.take(.received(.notice(Text(text))))
    #expect(bench.ends.isEmpty)
    bench.pass(.seconds(3))
    #expect(bench.ends == [.negotiationEnded(AskID(1), .refused(.unsupported(Text(text))))])
  }

  @Test func `a NOTICE does not end a session that has heard a message`() throws {
    var (bench, id) = try opened()
    bench.take(.received(.negMessage(id, opening)))
    bench.take(.reply(AskID(1), opening))
    bench.take(.received(.notice("ERROR: bad msg: negentropy disabled")))
    bench.pass(.seconds(4))
    #expect(bench.ends.isEmpty)
    bench.take(.received(.negMessage(id, opening)))
    #expect(bench.effects.count { $0 == .negotiated(AskID(1), opening) } == 2)
  }

  @Test func `CLOSED and NEG-ERR end the session they name and no other`() throws {
    var (bench, first) = try opened()
    bench.take(.negotiate(AskID(2), filter, opening, openMax: .seconds(15)))
    let second = try #require(bench.takeOpenings().first)
    bench.take(.received(.closed(first, "unsupported: no negentropy")))
    #expect(
      bench.ends == [
        .negotiationEnded(AskID(1), .refused(.unsupported("unsupported: no negentropy")))
      ])
    bench.take(.received(.negError(second, "blocked: this query is too big", recordsMax: 77)))
    #expect(
      bench.ends.last == .negotiationEnded(AskID(2), .refused(.tooMany(recordsMax: 77))))
  }

  @Test func `silence ends at the deadline, and with NEG-CLOSE`() throws {
    var (bench, id) = try opened(for: .seconds(5))
    // What else the relay says is no answer.
    for _ in 0..<4 {
      bench.pass(.seconds(1))
      bench.take(.heard)
      bench.take(.received(.ok(nil, accepted: true, "")))
    }
    #expect(bench.ends.isEmpty)
    bench.pass(.seconds(2))
    #expect(bench.ends == [.negotiationEnded(AskID(1), .refused(.silent))])
    #expect(bench.sent.contains(.negClose(id)))
  }

  @Test func `junk may have been meant as an answer`() throws {
    var (bench, _) = try opened()
    bench.take(.malformed(.shape(label: "NEG-MSG", "x")))
    bench.pass(.seconds(3))
    guard case .negotiationEnded(AskID(1), .refused(.unsupported))? = bench.ends.last else {
      Issue.record("\(bench.effects)")
      return
    }
  }

  // F178: one message every four seconds, where ten seconds of silence are too many.
  @Test func `a session that goes on slowly is not cut, one that stops is`() throws {
    var limits = Limits()
    limits.answerIdleMax = .seconds(10)
    var (bench, id) = try opened(limits)
    for _ in 0..<40 {
      bench.pass(.seconds(4))
      bench.take(.received(.negMessage(id, opening)))
      bench.take(.reply(AskID(1), opening))
    }
    #expect(bench.ends.isEmpty)
    bench.pass(.seconds(11))
    #expect(
      bench.ends == [.negotiationEnded(AskID(1), .refused(.failed("the relay stopped answering")))])
  }

  // F176.
  @Test func `every session has an id of its own and ends with NEG-CLOSE`() throws {
    var bench = ConnectionBench()
    bench.becomeReady()
    var ids: Set<SubscriptionID> = []
    for number in 0..<40 {
      bench.take(.negotiate(AskID(UInt64(number)), filter, opening, openMax: .seconds(15)))
      bench.pass(.seconds(1))
      let id = try #require(bench.takeOpenings().first)
      #expect(ids.insert(id).inserted && id.count <= 32)
      bench.take(.received(.negMessage(id, opening)))
      bench.take(.closeNegotiation(AskID(UInt64(number))))
      #expect(bench.sent == [.negClose(id)])
    }
  }

  @Test func `a message that answers none of ours is not taken`() throws {
    var (bench, id) = try opened()
    bench.take(.received(.negMessage(id, opening)))
    bench.take(.received(.negMessage(id, opening)))
    bench.take(.received(.negMessage("other", opening)))
    #expect(bench.effects.count { $0 == .negotiated(AskID(1), opening) } == 1)
    #expect(bench.machine.faults[.unknownSubscription] == 2)
  }

  @Test func `auth-required is answered with AUTH, and the session is opened again`() throws {
    var (bench, id) = try opened()
    bench.take(.received(.negError(id, "auth-required: who are you", recordsMax: nil)))
    bench.take(.received(.auth(challenge: "c")))
    #expect(bench.effects.contains(.sign(challenge: "c")))
    let auth = ConnectionBench.event(9, kind: .relayAuth)
    bench.take(.signed(auth, challenge: "c"))
    bench.take(.received(.ok(auth.id, accepted: true, "")))
    let again = bench.takeOpenings()
    #expect(again.count == 1 && again != [id])
    #expect(bench.ends.isEmpty)
  }

  @Test func `without a key it is refused in the relay's words`() throws {
    var (bench, id) = try opened(canSign: false)
    bench.take(.received(.negError(id, "auth-required: who are you", recordsMax: nil)))
    #expect(
      bench.ends == [
        .negotiationEnded(AskID(1), .refused(.unsupported("auth-required: who are you")))
      ])
  }

  @Test func `a rate limit pauses it and it is opened again`() throws {
    var (bench, id) = try opened()
    bench.take(.received(.closed(id, "rate-limited: retry in 7s")))
    bench.pass(.seconds(6))
    #expect(bench.takeOpenings().isEmpty && bench.ends.isEmpty)
    bench.pass(.seconds(2))
    #expect(bench.takeOpenings().count == 1)
  }

  @Test func `a set that is too large is no reason to wait, whatever the prefix`() throws {
    var (bench, id) = try opened()
    bench.take(.received(.negError(id, "rate-limited: too many negentropy items", recordsMax: nil)))
    #expect(bench.ends == [.negotiationEnded(AskID(1), .refused(.tooMany(recordsMax: nil)))])
  }

  @Test func `a lost connection ends what was open on it and keeps what was not`() throws {
    var (bench, _) = try opened()
    for number in 2...6 {
      bench.take(.negotiate(AskID(UInt64(number)), filter, opening, openMax: .seconds(15)))
    }
    #expect(bench.takeOpenings().count == 2)
    bench.take(.ended("gone"))
    #expect(bench.ends.count == 3)
    #expect(
      bench.ends.allSatisfy {
        if case .negotiationEnded(_, .disconnected) = $0 { true } else { false }
      })
    while bench.machine.state.name != "connecting" { bench.pass(.milliseconds(100)) }
    bench.take(.opened)
    bench.pass(.seconds(3))
    #expect(bench.takeOpenings().count == 3)
  }

  // F171.
  @Test(arguments: [
    ("blocked: Negentropy sync is disabled", false), ("blocked: too many query results", true),
    ("blocked: this query is too big", true), ("invalid: filter too large", true),
    ("blocked: too many concurrent sessions", false), ("closed: too slow", false),
    ("rate-limited: too many negentropy items", true), ("rate-limited: slow down", false),
    ("error: shutting down", false), ("restricted: members only", false),
  ])
  func `only words about the size of the answer call for smaller windows`(
    text: String, isSize: Bool
  ) {
    #expect((NegotiationRefusal(Text(text)) == .tooMany(recordsMax: nil)) == isSize)
    #expect(NegotiationRefusal(Text(text), recordsMax: 5) == .tooMany(recordsMax: 5))
  }
}

extension ConnectionBench {
  /// The sessions opened since last asked, oldest first; other frames are forgotten.
  fileprivate mutating func takeOpenings() -> [SubscriptionID] {
    defer { sent = [] }
    return sent.compactMap { message in
      if case .negOpen(let id, _, _) = message { id } else { nil }
    }
  }

  fileprivate var ends: [ConnectionMachine.Effect] {
    effects.filter { if case .negotiationEnded = $0 { true } else { false } }
  }
}
