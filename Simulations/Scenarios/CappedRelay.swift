import Nostr
import NostrCrypto
import RelayServer
package import SimulationKit
import SyncCore

/// A history behind pages: the relay caps them below what is asked, some seconds hold more events
/// than a page, and the relay may be truthful, sloppy or wrong about order and bounds.
///
/// Promised: what is called complete is complete; what a truthful relay holds is read to the end,
/// and a gap is named only where a second is too dense for a page.
package struct CappedRelay: Scenario {
  /// What a relay does that does not keep its word.
  private enum Lie: CaseIterable {
    case untilIgnored, sinceIgnored, oldestFirst, ascending, forgery, truncated
  }

  package init() {}

  package var name: String { "capped-relay" }
  package var summary: String {
    "a history walk with page caps and dense seconds, against the relay's own store"
  }

  package func run(in world: World, flaw: SimulatedClient.Flaw?) {
    var random = world.generator("capped-relay")
    let isTruthful = random.chance(75)
    let lie: Lie? = isTruthful ? nil : random.element(of: Lie.allCases)
    // Nobody can see the order of a page whose events are all of one second.
    let isAboutOrder = lie == .oldestFirst || lie == .ascending
    let pageMax = random.number(in: (isAboutOrder ? 20 : 2)..<(random.chance(50) ? 21 : 300))
    let relay = SimulatedRelay(
      "capped.test", in: world,
      rules: CappedRelay.rules(pageMax: pageMax, lie, &random))
    let burstMax = isAboutOrder ? 1 : 2 * pageMax + 1
    relay.load(CappedRelay.history(burstMax: burstMax, in: world, &random))

    var settings = SimulatedClient.Settings()
    let scope = Scope(.group("g"))
    settings.scopes = [scope]
    settings.flaw = flaw
    var plan = FaultPlan.none
    plan.latency = .milliseconds(random.number(in: 1..<100))
    let client = SimulatedClient("reader", at: relay, in: world, settings: settings) { plan }
    client.start()
    CappedRelay.arriveLate(at: relay, in: world, &random)
    world.run(
      for: .seconds(40_000), until: { client.walkEnds[scope] != nil },
      otherwise: "the walk of \(scope) has not ended")
    guard world.failure == nil, let end = client.walkEnds[scope] else { return }
    CappedRelay.judge(end, client, scope, isTruthful: isTruthful, in: world)
    client.crash()
  }

  private static func judge(
    _ end: HistoryWalk.End, _ client: SimulatedClient, _ scope: Scope, isTruthful: Bool,
    in world: World
  ) {
    guard isTruthful else { return }
    if end != .drained { world.fail(.liveness, "the walk at a truthful relay ended: \(end)") }
    let gaps = client.disk.gaps[scope]?.entries ?? []
    for gap in gaps {
      var filter = scope.filter
      filter.since = gap.from
      filter.until = gap.to
      // Dense seconds beside one another are told as one gap.
      let seconds = gap.to.seconds - gap.from.seconds + 1
      let counts = Dictionary(grouping: client.relay.served(filter), by: \.createdAt)
      if counts.count != seconds || counts.values.contains(where: { $0.count < 2 }) {
        world.fail(.liveness, "a needless gap \(gap.from)…\(gap.to)")
      }
    }
  }

  // MARK: What the seed draws

  private static func rules(
    pageMax: Int, _ lie: Lie?, _ random: inout SplitMix64
  ) -> RelayRules {
    var rules = RelayRules()
    rules.authentication.isNeededToRead = random.chance(50)
    rules.reading.pageMax = pageMax
    rules.limits.advertisedPageMax = random.chance(50) ? nil : pageMax * 10
    rules.answers.hints = random.chance(30)
    if random.chance(30) {
      rules.answers.endOfStored = .late(.milliseconds(random.number(in: 1..<4000)))
    }
    if random.chance(30) {
      rules.limits.budget = RateBudget(
        framesMax: random.number(in: 5..<50), window: .seconds(5),
        form: random.chance(50) ? .addressed : .notice)
    }
    switch lie {
    case nil: break
    case .untilIgnored: rules.reading.ignoresUntil = true
    case .sinceIgnored: rules.reading.ignoresSince = true
    case .oldestFirst: rules.reading.order = .oldestFirst
    case .ascending: rules.reading.order = .newestSentAscending
    case .forgery: rules.answers.lies = [.swappedContent, .unasked, .foreignSubscription]
    // A relay that sends single events cannot be told from one that holds no more.
    case .truncated: rules.reading.truncatedTo = max(2, pageMax / 2)
    }
    return rules
  }

  private static func history(
    burstMax: Int, in world: World, _ random: inout SplitMix64
  ) -> [Event] {
    var events = [
      SimulationKeys.sign(
        EventDraft(
          createdAt: world.epoch - 1_000_000, kind: .groupMetadata,
          tags: Tags([["d", "g"], ["name", "G"]]), content: ""),
        with: SimulationKeys.key("relay capped.test"))
    ]
    let count = random.number(in: 0..<500)
    var time = world.epoch - Int64(random.number(in: 1000..<900_000))
    let author = SimulationKeys.key("author")
    while events.count < count {
      if random.chance(70) { time = time + Int64(random.number(in: 0..<600)) }
      if time > world.epoch { time = world.epoch }
      let isDense = random.chance(3)
      for _ in 0..<(isDense ? random.number(in: 1..<(burstMax + 1)) : 1) {
        events.append(message(events.count, at: time, by: author))
      }
    }
    return events
  }

  /// Events with dates in the middle of what is being walked arrive while it is walked.
  private static func arriveLate(
    at relay: SimulatedRelay, in world: World, _ random: inout SplitMix64
  ) {
    let author = SimulationKeys.key("late author")
    for number in 0..<random.number(in: 0..<40) {
      let time = world.epoch - Int64(random.number(in: 0..<500_000))
      let delay = Duration.milliseconds(random.number(in: 0..<20_000))
      world.after(delay) {
        world.count(fault: "late-arrival")
        relay.receive(message(10_000 + number, at: time, by: author))
      }
    }
  }

  private static func message(_ number: Int, at time: Timestamp, by author: SecretKey) -> Event {
    SimulationKeys.sign(
      EventDraft(
        createdAt: time, kind: .message, tags: Tags([["h", "g"]]),
        content: Text("message \(number)")),
      with: author)
  }
}
