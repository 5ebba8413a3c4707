import Nostr
import NostrCrypto
import RelayServer
package import SimulationKit
import SyncCore

/// Several people write and read over lines that break, stall and go silent, while the relay
/// restarts, answers late or not at all, and the clients crash.
///
/// Promised while it lasts: nothing is called complete or sent that is not, nothing is held that
/// the relay never took, and no message is there twice. Promised once it is healed: every message
/// is at the relay exactly once, and every client holds what the relay holds.
package struct FlakyLinks: Scenario {
  private static let groups: [Text] = ["a", "b"]
  private static let storm = Duration.seconds(600)
  private static let healingMax = Duration.seconds(2400)

  package init() {}

  package var name: String { "flaky-links" }
  package var summary: String {
    "people write and read while lines break, the relay restarts and clients crash"
  }

  package func run(in world: World, flaw: SimulatedClient.Flaw?) {
    var random = world.generator("flaky-links")
    var plan = FaultPlan.drawn(from: &random)
    let calm = FlakyLinks.calmRules(&random)
    let relay = SimulatedRelay("flaky.test", in: world, rules: calm)
    relay.load(FlakyLinks.groups.map { FlakyLinks.metadata(of: $0, in: world) })
    relay.setRules { FlakyLinks.trouble(&$0, &random) }

    var settings = SimulatedClient.Settings()
    settings.scopes = FlakyLinks.groups.map { Scope(.group($0, kinds: [.message])) }
    settings.feeds = settings.scopes
    settings.fullRoundEvery = .seconds(300)
    settings.flaw = flaw
    let clients = (0..<random.number(in: 2..<4)).map { number in
      SimulatedClient("client\(number)", at: relay, in: world, settings: settings) { plan }
    }
    for client in clients { client.start() }
    let written = FlakyLinks.scheduleWriting(by: clients, in: world, &random)
    FlakyLinks.scheduleRestarts(of: relay, in: world, plan, &random)
    for client in clients { FlakyLinks.scheduleCrashes(of: client, in: world, plan, &random) }
    world.run(until: FlakyLinks.storm)

    world.note("healed")
    plan = .none
    relay.setRules { $0 = calm }
    if !relay.isUp { relay.start() }
    for client in clients where !client.isRunning { client.start() }
    heal(clients, relay, settings.scopes, in: world)
    FlakyLinks.judge(written, clients, relay, in: world)
    for client in clients { client.crash() }
  }

  private func heal(
    _ clients: [SimulatedClient], _ relay: SimulatedRelay, _ scopes: [Scope], in world: World
  ) {
    func isSettled(_ client: SimulatedClient) -> Bool {
      client.disk.deliveries.values.allSatisfy { $0.state == .sent }
    }
    func isWhole(_ client: SimulatedClient) -> Bool {
      scopes.allSatisfy { client.lacks($0).isEmpty && client.disk.coverage[$0] != nil }
    }
    world.run(
      for: FlakyLinks.healingMax,
      until: { clients.allSatisfy { isSettled($0) && isWhole($0) } },
      otherwise: clients.map { client in
        let open = client.disk.deliveries.values.filter { $0.state != .sent }
          .sorted { $0.message < $1.message }.map { "\($0.message) \($0.state)" }
        let lacking = scopes.reduce(0) { $0 + client.lacks($1).count }
        return "\(client.name) has open \(open) and lacks \(lacking)"
      }.joined(separator: "; "))
  }

  private static func judge(
    _ written: Writing, _ clients: [SimulatedClient], _ relay: SimulatedRelay, in world: World
  ) {
    guard world.failure == nil else { return }
    var counts: [Text: Int] = [:]
    for event in relay.accepted where event.kind == .message {
      counts[event.content, default: 0] += 1
    }
    for text in written.texts {
      world.check(
        counts[text] == 1, "the message \"\(text)\" is at the relay \(counts[text] ?? 0) times")
    }
  }

  // MARK: What the seed draws

  private static func calmRules(_ random: inout SplitMix64) -> RelayRules {
    var rules = random.chance(30) ? RelayRules.buzz : RelayRules()
    rules.authentication.isNeededToRead = random.chance(60)
    rules.authentication.challenges =
      rules.authentication.isNeededToRead || rules.authentication.isNeededToWrite
    rules.reading.pageMax = random.number(in: 3..<200)
    if random.chance(30) {
      rules.writing.ageMax = 900
      rules.writing.leadMax = 900
    }
    // The dense second that a small cap cannot be walked over is the other scenario's business.
    rules.reading.pageMax = max(rules.reading.pageMax, 20)
    return rules
  }

  private static func trouble(_ rules: inout RelayRules, _ random: inout SplitMix64) {
    switch random.number(in: 0..<6) {
    case 0: rules.answers.toEvent = .late(.seconds(random.number(in: 1..<60)))
    case 1: rules.answers.toEvent = .never
    case 2: rules.answers.endOfStored = .late(.seconds(random.number(in: 1..<30)))
    case 3: rules.answers.endOfStored = .never
    case 4:
      rules.limits.budget = RateBudget(
        framesMax: random.number(in: 3..<20), window: .seconds(5),
        form: random.chance(50) ? .addressed : .noticeForEvents)
    default: break
    }
  }

  private static func metadata(of group: Text, in world: World) -> Event {
    SimulationKeys.sign(
      EventDraft(
        createdAt: world.epoch - 1000, kind: .groupMetadata,
        tags: Tags([["d", group], ["name", group]]), content: ""),
      with: SimulationKeys.key("relay flaky.test"))
  }

  /// What was really written: a client that is down writes nothing.
  private final class Writing {
    var texts: [Text] = []
  }

  private static func scheduleWriting(
    by clients: [SimulatedClient], in world: World, _ random: inout SplitMix64
  ) -> Writing {
    let writing = Writing()
    for number in 0..<random.number(in: 5..<60) {
      let client = random.element(of: clients)
      let group = random.element(of: groups)
      let text = "message \(number)"
      world.after(.milliseconds(random.number(in: 0..<550_000))) {
        guard client.isRunning else { return }
        writing.texts.append(Text(text))
        client.write(text, in: group)
      }
    }
    return writing
  }

  private static func scheduleRestarts(
    of relay: SimulatedRelay, in world: World, _ plan: FaultPlan, _ random: inout SplitMix64
  ) {
    guard let mean = plan.relayRestartEvery else { return }
    var time = Duration.zero
    while true {
      time += mean * (0.5 + random.fraction())
      let down = plan.relayDownMax * random.fraction()
      guard time + down < storm else { return }
      world.after(time) {
        world.count(fault: "relay-restart")
        relay.stop()
      }
      world.after(time + down) { relay.start() }
      time += down
    }
  }

  private static func scheduleCrashes(
    of client: SimulatedClient, in world: World, _ plan: FaultPlan, _ random: inout SplitMix64
  ) {
    guard let mean = plan.clientCrashEvery else { return }
    var time = Duration.zero
    while true {
      time += mean * (0.5 + random.fraction())
      let down = Duration.seconds(random.number(in: 0..<60))
      guard time + down < storm else { return }
      world.after(time) {
        world.count(fault: "client-crash")
        client.crash()
      }
      world.after(time + down) { client.start() }
      time += down
    }
  }
}
