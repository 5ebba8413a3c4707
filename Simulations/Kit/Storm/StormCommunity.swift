import Nostr
import NostrCrypto
import RelayServer
import SyncCore

/// The relays of a storm, what they hold, and who else writes to them.
final class StormCommunity {
  let relays: [SimulatedRelay]
  let groups: [Text]
  private let recipe: Recipe
  private let world: World
  private let rules: RelayRules
  private var random: SplitMix64
  private var messageNext = 0
  private var deletable: [Event] = []
  private var profileDate: Timestamp?

  var home: SimulatedRelay { relays[0] }

  init(_ recipe: Recipe, in world: World) {
    self.recipe = recipe
    self.world = world
    random = world.generator("community")
    groups = (0..<max(1, recipe[.groups])).map { Text("g\($0)") }
    let rules = StormCommunity.rules(recipe)
    self.rules = rules
    var relays = [SimulatedRelay("home.test", in: world, rules: rules)]
    for number in 1..<max(2, recipe[.relays]) where number < recipe[.relays] {
      var replica = rules
      replica.writing.isReplica = true
      relays.append(
        SimulatedRelay("replica\(number).test", in: world, rules: replica, copying: relays[0]))
    }
    self.relays = relays
    loadHistory()
    copyToReplicas()
  }

  private static func rules(_ recipe: Recipe) -> RelayRules {
    var rules = recipe[.buzz] > 0 ? RelayRules.buzz : RelayRules()
    // Buzz takes an event from its author alone, so it has to know who that is.
    let authentication = recipe[.buzz] > 0 ? 2 : recipe[.authentication]
    rules.authentication.isNeededToRead = authentication == 2
    rules.authentication.isNeededToWrite = authentication >= 1
    rules.authentication.challenges = authentication >= 1
    rules.reading.pageMax = max(2, recipe[.pageMax])
    if recipe[.dateWindow] > 0 {
      rules.writing.ageMax = Int64(recipe[.dateWindow])
      rules.writing.leadMax = Int64(recipe[.dateWindow])
    }
    rules.reading.reconciliation =
      switch recipe[.negentropy] {
      case 1: .served(itemsMax: 1_000_000)
      case 2: .refusedByClosed
      case 3: .refusedByError
      case 4: .refusedByClosing
      case 5: .garbled
      case 6: .ignored
      case 7: .served(itemsMax: 50)
      default: .refusedByNotice
      }
    return rules
  }

  // MARK: What is there from the beginning

  private func loadHistory() {
    let relayKey = SimulationKeys.key("relay home.test")
    var events = groups.map { group in
      SimulationKeys.sign(
        EventDraft(
          createdAt: world.epoch - 1_000_000, kind: .groupMetadata,
          tags: Tags([["d", group], ["name", group], ["public"], ["open"]]), content: ""),
        with: relayKey)
    }
    var time = world.epoch - 900_000
    // The same few histories serve every seed, so that each is signed once.
    var draws = SplitMix64(seed: UInt64(random.number(in: 0..<4)))
    let author = SimulationKeys.key("others")
    let gap = max(1, 800_000 / max(1, recipe[.history]))
    for number in 0..<recipe[.history] {
      let isDense = draws.chance(recipe[.densePercent])
      if !isDense { time = time + Int64(draws.number(in: 0..<2 * gap)) }
      if time > world.epoch { time = world.epoch }
      events.append(
        message("history \(number)", in: groups[number % groups.count], at: time, by: author))
    }
    home.load(events)
  }

  private func copyToReplicas() {
    let events = home.accepted
    for relay in relays.dropFirst() { relay.load(events) }
    guard relays.count > 1 else { return }
    home.onAccepted = { [unowned self] event in
      for relay in relays.dropFirst() {
        let lag = Duration.milliseconds(100 + random.number(in: 0..<1000 * recipe[.replicaLag] + 1))
        world.after(lag) { if !relay.hasSaid(event.id) { relay.receive(event) } }
      }
    }
  }

  private func message(
    _ text: String, in group: Text, at time: Timestamp, by author: SecretKey
  ) -> Event {
    SimulationKeys.sign(
      EventDraft(
        createdAt: time, kind: .message, tags: Tags([["h", group]]), content: Text(text)),
      with: author)
  }

  // MARK: What happens meanwhile

  /// Somebody else writes; sometimes what was written takes long to arrive, and sometimes it is
  /// deleted, which may arrive before it.
  func somebodyWrites(isLate: Bool) {
    messageNext += 1
    let author = SimulationKeys.key("others")
    let age = isLate ? Int64(random.number(in: 60..<500_000)) : 0
    let group = groups[random.number(in: 0..<groups.count)]
    let event = message("other \(messageNext)", in: group, at: world.wall - age, by: author)
    if isLate { world.count(fault: "late-arrival") }
    if random.chance(recipe[.versionPercent]) { changeProfile(by: author) }
    guard random.chance(recipe[.deletionPercent]) else {
      deletable.append(event)
      return home.receive(event)
    }
    let target = random.chance(50) ? event : (deletable.last ?? event)
    let deletion = SimulationKeys.sign(
      EventDraft(
        createdAt: world.wall, kind: .deletion,
        tags: Tags([["h", group], ["e", Text(target.id.hex)]]), content: ""),
      // What somebody else wants deleted stays.
      with: random.chance(25) ? SimulationKeys.key("stranger") : author)
    world.count(fault: "deletion")
    // A relay takes nothing that was deleted before it came; but another may serve it still, to
    // somebody who has heard of the deletion first.
    let isFirst = random.chance(50)
    if !isFirst { home.receive(event) }
    home.receive(deletion)
    if isFirst { home.receive(event) }
  }

  /// A new version of a profile, often in the second of the last one, where the lower id wins.
  private func changeProfile(by author: SecretKey) {
    if !random.chance(60) || profileDate == nil { profileDate = world.wall }
    let event = SimulationKeys.sign(
      EventDraft(
        createdAt: profileDate ?? world.wall, kind: .profile, tags: Tags([[Text]]()),
        content: Text("{\"name\":\"version \(messageNext)\"}")), with: author)
    home.receive(event)
  }

  // MARK: What relays do

  /// One relay does something for a while that an honest one would not.
  func makeTrouble(for length: Duration) {
    let troubles = Trouble.list(recipe[.troubles])
    guard !troubles.isEmpty else { return }
    let trouble = random.element(of: troubles)
    let relay = random.element(of: relays)
    world.count(fault: "trouble-\(trouble)")
    world.note("\(relay.name) begins: \(trouble)")
    var draws = random
    relay.setRules { trouble.apply(to: &$0, &draws) }
    random = draws
    world.after(length) { [unowned self] in
      world.note("\(relay.name) is honest again")
      relay.setRules { $0 = honestRules(of: relay) }
    }
  }

  private func honestRules(of relay: SimulatedRelay) -> RelayRules {
    var honest = rules
    honest.writing.isReplica = relay !== home
    return honest
  }

  /// One relay goes down for a while, and may have forgotten what it took last.
  func restart(for length: Duration) {
    let relay = random.element(of: relays)
    guard relay.isUp else { return }
    let isForgetful = random.chance(recipe[.relayForgetsPercent])
    world.count(fault: isForgetful ? "relay-forgets" : "relay-restart")
    let since = world.now - .seconds(random.number(in: 1..<600))
    relay.stop { !isForgetful || relay.acceptedTimes[$0.id].map { $0 <= since } != false }
    world.after(length) { relay.start() }
  }

  func heal() {
    for relay in relays {
      if !relay.isUp { relay.start() }
      relay.setRules { $0 = honestRules(of: relay) }
    }
    // What a replica missed while it was down comes to it now.
    for relay in relays.dropFirst() {
      for event in home.served(Filter()) where relay.served(Filter(ids: [event.id])).isEmpty {
        relay.receive(event)
      }
    }
  }
}
