import Nostr
import NostrCrypto
import RelayServer
import SyncCore

/// Runs a recipe: devices with the engine that ships, at relays that a recipe spoils, until the
/// faults end and everything has to come to rest.
///
/// Phase 1, faults on: whatever changes is checked before time moves on. Phase 2, healed: within a
/// bound of virtual time everybody holds what the relays serve, and every outbox is empty or says why
/// not.
package final class Storm: @unchecked Sendable {
  // Unchecked: as for the world it is in.
  let recipe: Recipe
  let world: World
  let community: StormCommunity
  private(set) var devices: [Device] = []
  private(set) var watches: [DeviceWatch] = []
  private let secrets: SecretChecker
  private var herd: HerdChecker?
  var plan = FaultPlan.none
  private(set) var isHealed = false
  /// Whether people start their programs anew once all is well.
  private var isAided = true
  private var lookedAt = Duration.zero

  /// In which time a healed world comes to rest where every program is started anew.
  private static let restMax = Duration.seconds(3600)
  /// The same where it just goes on: the last week is read again every six hours.
  private static let restUnaidedMax = Duration.seconds(7 * 3600)
  private static let groupsLiveMax = 10
  private static let lookEvery = Duration.seconds(60)

  package init(_ recipe: Recipe, in world: World) {
    self.recipe = recipe
    self.world = world
    community = StormCommunity(recipe, in: world)
    let people = (0..<max(1, recipe[.people])).map { "p\($0)" }
    secrets = SecretChecker(people: people)
    plan = Storm.plan(recipe)
    var random = world.generator("devices")
    for number in 0..<recipe[.devices] {
      devices.append(device(number, of: people[number % people.count], &random))
    }
    watches = devices.map { DeviceWatch($0, groups: community.groups.count) }
    herd = HerdChecker(devices, in: world)
  }

  private func device(_ number: Int, of person: String, _ random: inout SplitMix64) -> Device {
    var settings = Device.Settings()
    // A watch that looks every second finds no more than one that looks every five, for a fifth of
    // the steps.
    settings.limits.watchInterval = .seconds(5)
    settings.diskDelayMax = .milliseconds(recipe[.diskDelay])
    let skew = recipe[.clockSkewMax]
    if skew > 0 { settings.clockOffset = Int64(random.number(in: -skew..<skew + 1)) }
    let percent = recipe[.clockRatePercent]
    if percent > 0 {
      settings.clockRate = 1 + Double(random.number(in: -percent..<percent + 1)) / 100
    }
    if recipe[.cacheMapKibibytes] > 0 {
      settings.cacheMapBytesMax = max(64, recipe[.cacheMapKibibytes]) << 10
    }
    return Device(
      "d\(number)", of: person, at: community.relays, in: world, settings: settings
    ) { [unowned self] in plan }
  }

  // MARK: The two phases

  package func run() {
    world.watch = { [unowned self] in look() }
    world.onFrame = { [unowned self] name, frame in
      if secrets.isFound(in: frame) {
        world.fail(.safety, "\(name) sends a secret key", file: "SecretChecker")
      }
      for watch in watches where name.hasPrefix(watch.linkPrefix) {
        watch.wire.look(at: frame, on: name)
      }
    }
    for device in devices { device.start() }
    StormScript(self).schedule()
    world.run(until: end)
    guard world.failure == nil else { return dispose() }
    heal()
    settle()
    probe()
    judge()
    dispose()
  }

  var end: Duration { .seconds(recipe[.minutes] * 60) }

  private func heal() {
    isHealed = true
    world.note("healed")
    plan = .none
    community.heal()
    var random = world.generator("healing")
    isAided = random.chance(50)
    for device in devices {
      let clockWasWrong = device.clock.offset != 0
      device.clock.offset = 0
      let wasFaulty = device.life?.disk.wasFaulty ?? true
      if let disk = device.life?.disk {
        disk.failsSyncs = false
        disk.failsWrites = false
        disk.setRoom(nil)
      }
      // A store that has failed stays so until the program is started again.
      guard isAided || wasFaulty else {
        if clockWasWrong { device.wakes() }
        continue
      }
      device.crash(.kill)
      device.start()
    }
  }

  private func settle() {
    world.run(
      for: isAided ? Storm.restMax : Storm.restUnaidedMax,
      every: .seconds(isAided ? 1 : 20), until: { isAtRest },
      otherwise: zip(devices, watches).map { device, watch in
        let lacking = ConvergenceChecker.lacking(device, watch.log, groups: community.groups)
        return """
          \(device.name) has open \(watch.outbox.open()) and lacks \(lacking.count)\
          \(lacking.first.map { " such as \($0.hex.prefix(8))" } ?? "")
          """
      }.joined(separator: "; "))
  }

  private var isAtRest: Bool {
    zip(devices, watches).allSatisfy { device, watch in
      device.store != nil && watch.outbox.open().isEmpty
        && ConvergenceChecker.lacking(device, watch.log, groups: community.groups).isEmpty
    }
  }

  /// What is written now reaches everybody at once: their feeds are live, and not only their copies
  /// complete.
  private func probe() {
    // Where there are more groups than a relay keeps feeds open, they take turns.
    guard world.failure == nil, community.groups.count <= Storm.groupsLiveMax else { return }
    world.run(until: world.now + .seconds(60))
    let number = community.home.accepted.count
    community.somebodyWrites(isLate: false)
    let written = community.home.accepted.dropFirst(number).filter { $0.group != nil }.map(\.id)
    world.run(
      for: .seconds(60),
      until: {
        watches.allSatisfy { watch in
          watch.look()
          return written.allSatisfy { watch.log.held.contains($0) }
        }
      }, otherwise: "what is written now does not arrive")
  }

  private func judge() {
    guard world.failure == nil else { return }
    for watch in watches {
      watch.look()
      watch.outbox.judge()
    }
    if recipe.isCalm {
      for watch in watches { CalmChecker(device: watch.wire.device, wire: watch.wire).judge() }
    }
    let comparisons =
      devices.map { CacheChecker.compare($0) }
      + devices.map { AnswerChecker.compare($0, groups: community.groups) }
    world.run(
      for: .seconds(600), until: { comparisons.allSatisfy(\.isDone) },
      otherwise: "a cache does not answer")
    for device in devices { secrets.look(at: device) }
  }

  /// Ends everything while there is still somebody for it to end with.
  private func dispose() {
    if world.failure != nil { StormReport.explain(self) }
    for device in devices { device.dispose() }
    world.drain()
  }

  // MARK: Looking

  /// What is cheap is looked at whenever time moves on, the rest once a minute and at every start.
  private func look() {
    for watch in watches { watch.lookBriefly() }
    guard world.now >= lookedAt + Storm.lookEvery else { return }
    lookedAt = world.now
    for watch in watches { watch.look() }
    herd?.look()
  }

  /// The lines as the recipe has them.
  private static func plan(_ recipe: Recipe) -> FaultPlan {
    var plan = FaultPlan()
    plan.latency = .milliseconds(recipe[.latency])
    plan.jitter = .milliseconds(recipe[.jitter])
    plan.cutEvery = recipe.seconds(.cutEvery)
    plan.silentPercent = recipe[.silentPercent]
    plan.oneWayPercent = recipe[.oneWayPercent]
    plan.stallEvery = recipe.seconds(.stallEvery)
    plan.stallMax = .seconds(recipe[.stallMax])
    plan.refusedPercent = recipe[.refusedPercent]
    plan.bytesPerSecond = recipe[.bytesPerSecond] > 0 ? recipe[.bytesPerSecond] : nil
    return plan
  }
}

/// The checkers of one device.
final class DeviceWatch {
  let log: LogChecker
  let coverage: CoverageChecker
  let outbox: OutboxChecker
  let budget: BudgetChecker
  let wire: WireChecker
  /// How the names of the device's lines begin.
  let linkPrefix: String

  init(_ device: Device, groups: Int) {
    linkPrefix = "\(device.name)."
    wire = WireChecker(device, groups: groups)
    log = LogChecker(device)
    coverage = CoverageChecker(device, log: log)
    outbox = OutboxChecker(device)
    budget = BudgetChecker(device)
  }

  func lookBriefly() { log.look() }

  func look() {
    log.look()
    coverage.look()
    outbox.look()
    budget.look()
  }
}
