import Nostr
import SyncCore
import Testing

/// A NOTICE names no request; several are open.
@Suite struct ConnectionNoticeTests {
  /// A relay that refuses some requests by NOTICE and answers the others after a while.
  private struct Relay {
    var delay: Duration = .zero
    let refuses: (SubscriptionID, Filter) -> Bool
    private var due: [(at: Duration, id: SubscriptionID)] = []
    private(set) var asked: [Filter] = []
    /// The most that was open unanswered at once, since the last look.
    var openMost = 0

    init(delay: Duration = .zero, refuses: @escaping (SubscriptionID, Filter) -> Bool) {
      self.delay = delay
      self.refuses = refuses
    }

    mutating func run(_ bench: inout ConnectionBench, for time: Duration) {
      let end = bench.now + time
      while bench.now < end {
        var isBusy = true
        while isBusy {
          let requests = bench.takeRequests()
          isBusy = !requests.isEmpty
          openMost = max(openMost, requests.count)
          for (id, filters) in requests {
            asked += filters
            if refuses(id, filters[0]) {
              bench.take(.received(.notice("invalid: not in this form")))
            } else {
              due.append((at: bench.now + delay, id: id))
            }
          }
          let ripe = due.filter { $0.at <= bench.now }
          due.removeAll { $0.at <= bench.now }
          for (_, id) in ripe { bench.take(.received(.eose(id, hints: []))) }
        }
        bench.pass(.milliseconds(100))
        bench.take(.heard)
      }
    }
  }

  private func ready() -> ConnectionBench {
    var bench = ConnectionBench()
    bench.becomeReady()
    return bench
  }

  private func ends(_ bench: inout ConnectionBench) -> [AskID: PageEnd] {
    var ends: [AskID: PageEnd] = [:]
    for case .answered(let id, let end) in bench.takeEffects() { ends[id] = end }
    return ends
  }

  @Test(arguments: [Duration.zero, .seconds(3)])
  func `of several requests the one that a NOTICE meant is found, and the others are answered`(
    delay: Duration
  ) {
    var bench = ready()
    var relay = Relay(delay: delay) { _, filter in filter.kinds == [7] }
    for number in 1...4 {
      bench.take(.ask(AskID(UInt64(number)), .init(filter: Filter(kinds: [number == 2 ? 7 : 9]))))
    }
    // One deadline, though three requests may have been meant.
    relay.run(&bench, for: Limits().answerIdleMax + delay)
    let ends = ends(&bench)
    #expect(ends[AskID(2)] == .noticed("invalid: not in this form"))
    for number in [1, 3, 4] as [UInt64] { #expect(ends[AskID(number)] == .complete(.none)) }
    #expect(bench.opens == 0 && bench.machine.state == .ready)
  }

  @Test
  func `three requests that are all refused by NOTICE end in one deadline, each with its own`() {
    var bench = ready()
    var relay = Relay { _, _ in true }
    for number in 1...3 { bench.take(.ask(AskID(UInt64(number)), ConnectionBench.request())) }
    relay.run(&bench, for: Limits().answerIdleMax)
    let ends = ends(&bench)
    #expect(ends.count == 3)
    #expect(ends.values.allSatisfy { $0 == .noticed("invalid: not in this form") })
  }

  @Test func `a feed that a NOTICE meant is refused, and the others are live`() {
    var bench = ready()
    var relay = Relay { _, filter in filter.kinds == [7] }
    for number in 0..<5 {
      bench.take(.want(Text("\(number)"), [Filter(kinds: [number == 2 ? 7 : 9])]))
    }
    bench.take(.ask(AskID(1), ConnectionBench.request()))
    relay.run(&bench, for: Limits().answerIdleMax)
    for number in [0, 1, 3, 4] {
      #expect(bench.machine.subscription(Text("\(number)")) == .live)
    }
    #expect(bench.machine.subscription("2") == .refused("invalid: not in this form"))
    #expect(ends(&bench) == [AskID(1): .complete(.none)])
    #expect(bench.machine.state == .ready)
  }

  // F31
  @Test func `a relay that takes no long ids is asked under short ones, at first for the next`() {
    var bench = ready()
    var relay = Relay { id, _ in id.count > 8 }
    bench.take(.want("feed", [Filter(kinds: [9])]))
    for number in 1...3 { bench.take(.ask(AskID(UInt64(number)), ConnectionBench.request())) }
    relay.run(&bench, for: Limits().answerIdleMax)
    #expect(ends(&bench).values.filter { $0 == .complete(.none) }.count == 3)
    #expect(bench.machine.subscription("feed") == .live)
    let before = relay.asked.count
    bench.take(.ask(AskID(4), ConnectionBench.request()))
    relay.run(&bench, for: .seconds(1))
    #expect(ends(&bench) == [AskID(4): .complete(.none)] && relay.asked.count == before + 1)
  }

  @Test(arguments: [false, true])
  func `a relay that refuses by NOTICE is asked for one thing at a time`(isRefusing: Bool) {
    var bench = ready()
    var relay = Relay(delay: .seconds(1)) { _, filter in isRefusing && filter.kinds == [7] }
    bench.take(.ask(AskID(1), .init(filter: Filter(kinds: [7]))))
    relay.run(&bench, for: .seconds(10))
    relay.openMost = 0
    for number in 2...4 { bench.take(.ask(AskID(UInt64(number)), ConnectionBench.request())) }
    relay.run(&bench, for: .seconds(10))
    #expect(relay.openMost == (isRefusing ? 1 : 3))
    #expect(ends(&bench).values.filter { $0 == .complete(.none) }.count == (isRefusing ? 3 : 4))
  }

  @Test func `what a NOTICE left open when the connection ended goes on with the next one`() {
    var bench = ready()
    for number in 1...3 { bench.take(.ask(AskID(UInt64(number)), ConnectionBench.request())) }
    bench.take(.received(.notice("invalid: not in this form")))
    bench.pass(.seconds(2))
    // One is being asked again, two wait.
    bench.take(.ended("gone"))
    while bench.machine.state.name != "connecting" { bench.pass(.milliseconds(100)) }
    bench.sent = []
    bench.take(.opened)
    var relay = Relay { _, _ in false }
    relay.run(&bench, for: .seconds(10))
    let ends = ends(&bench)
    #expect(ends.values.filter { $0 == .complete(.none) }.count == 2)
    #expect(ends.values.filter { $0 == .disconnected }.count == 1)
  }
}
