import Nostr
import SyncCore
import Testing

@Suite struct ConnectionStateTests {
  @Test func `a relay that never challenges is used after the grace`() {
    var bench = ConnectionBench()
    bench.take(.start)
    bench.take(.opened)
    bench.pass(.milliseconds(1900))
    #expect(bench.machine.state.name == "authenticating")
    bench.pass(.milliseconds(200))
    #expect(bench.machine.state == .ready)
    #expect(!bench.machine.isAuthenticated)
  }

  @Test func `a document that rules out a challenge makes the grace needless`() {
    var information = RelayInformation()
    information.authRequired = false
    var bench = ConnectionBench()
    bench.take(.start)
    bench.take(.opened)
    bench.take(.information(information))
    #expect(bench.machine.state == .ready)
  }

  @Test func `a connection that never opens is tried again after its deadline, for ever`() {
    var bench = ConnectionBench()
    bench.take(.start)
    bench.pass(.seconds(600))
    #expect(bench.opens >= 8)
    #expect(bench.machine.state.name != "stopped")
  }

  @Test func `accept and drop for ten minutes makes at most thirty attempts`() {
    var bench = ConnectionBench()
    bench.take(.start)
    let end: Duration = .seconds(600)
    while bench.now < end {
      if case .connecting = bench.machine.state {
        bench.take(.opened)
        bench.pass(.seconds(1))
        bench.take(.ended("closed"))
      } else {
        bench.pass(.milliseconds(100))
      }
    }
    #expect(bench.opens <= 30)
  }

  @Test func `silence is pinged, and no answer abandons the socket without waiting for it`() {
    var bench = ConnectionBench()
    bench.becomeReady()
    bench.pass(.seconds(29))
    #expect(bench.takeEffects().contains(.ping))
    bench.pass(.seconds(10))
    #expect(bench.takeEffects().contains(.abandon))
    #expect(bench.machine.state != .ready)
  }

  @Test func `a pong keeps a quiet connection`() {
    var bench = ConnectionBench()
    bench.becomeReady()
    for _ in 0..<20 {
      bench.pass(.seconds(29))
      bench.take(.heard)
    }
    #expect(bench.machine.state == .ready)
    #expect(bench.opens == 1)
  }

  @Test func `twenty wakes in a second make one attempt`() {
    var bench = ConnectionBench()
    bench.take(.start)
    bench.take(.ended("no route"))
    bench.pass(.seconds(120))
    bench.take(.ended("no route"))
    bench.now += .seconds(6)
    _ = bench.takeEffects()
    for _ in 0..<20 {
      bench.take(.resume)
      bench.take(.ended("no route"))
      bench.now += .milliseconds(50)
    }
    #expect(bench.opens <= 1)
  }

  @Test func `suspending keeps what is wanted and waking asks for it again`() {
    var bench = ConnectionBench()
    bench.take(.want("a", [Filter(kinds: [9])]))
    bench.becomeReady()
    #expect(bench.takeRequests().count == 1)
    bench.take(.suspend)
    #expect(bench.machine.state == .suspended)
    bench.pass(.seconds(3600))
    #expect(bench.machine.state == .suspended)
    bench.take(.resume)
    bench.take(.opened)
    bench.pass(.seconds(3))
    #expect(bench.takeRequests().count == 1)
  }

  @Test func `a stopped connection answers everyone and stays stopped`() {
    var bench = ConnectionBench()
    bench.becomeReady()
    bench.take(.ask(AskID(1), ConnectionBench.request()))
    bench.take(.publish(ConnectionBench.event(1)))
    bench.take(.stop)
    let effects = bench.takeEffects()
    #expect(effects.contains(.answered(AskID(1), .cancelled)))
    #expect(
      effects.contains { if case .unanswered(_, true, _) = $0 { true } else { false } })
    bench.take(.resume)
    bench.take(.ask(AskID(2), ConnectionBench.request()))
    #expect(bench.takeEffects().contains(.answered(AskID(2), .cancelled)))
    #expect(bench.machine.state == .stopped)
  }

  @Test func `nobody waits for ever for a relay that cannot be reached`() {
    var bench = ConnectionBench()
    bench.take(.start)
    bench.take(.ask(AskID(1), ConnectionBench.request()))
    for _ in 0..<40 {
      bench.take(.ended("refused"))
      bench.pass(.seconds(1))
    }
    #expect(bench.takeEffects().contains(.answered(AskID(1), .disconnected)))
  }

  @Test(arguments: Seeds.kept.prefix(60))
  func `every state that is not an end has a deadline, whatever happens`(seed: UInt64) {
    let random = SeededRandom(seed)
    var bench = ConnectionBench()
    bench.take(.start)
    for step in 0..<400 {
      bench.take(Self.anything(random, step))
      bench.pass(.milliseconds(random.below(3000)))
      switch bench.machine.state {
      case .stopped, .suspended, .refused: bench.take(.start)
      case .connecting, .authenticating, .ready, .backingOff:
        #expect(bench.machine.deadline != nil, "seed \(seed) step \(step)")
      }
    }
  }

  private static func anything(_ random: SeededRandom, _ step: Int)
    -> ConnectionMachine.Input
  {
    let id = random.chance(0.5) ? Text("x") : random.subscriptionID()
    switch random.below(15) {
    case 0: return .opened
    case 1: return .ended("gone")
    case 2: return .received(.auth(challenge: Text("\(step)")))
    case 3: return .signed(ConnectionBench.event(step, kind: 22242), challenge: Text("\(step)"))
    case 4: return .want(Text("\(random.below(9))"), [Filter(kinds: [9])])
    case 5: return .unwant(Text("\(random.below(9))"))
    case 6: return .ask(AskID(UInt64(step)), ConnectionBench.request())
    case 7: return .publish(ConnectionBench.event(step))
    case 8: return .received(.closed(id, "error: no"))
    case 9: return .received(.eose(id, hints: []))
    case 10: return .received(.notice("rate-limited: retry in 2s"))
    case 11: return .received(.ok(nil, accepted: random.chance(0.5), "auth-required: x"))
    case 12: return random.chance(0.2) ? .suspend : .resume
    case 13: return .heard
    default: return random.chance(0.1) ? .stop : .tick
    }
  }
}
