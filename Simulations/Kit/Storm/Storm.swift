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
  var plan = FaultPlan.none
  private(set) var isHealed = false
  private var lookedAt = Duration.zero

  /// In which time a healed world comes to rest.
  private static let restMax = Duration.seconds(3600)
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
    watches = devices.map { DeviceWatch($0) }
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
      if secrets.isFound(in: frame) { world.fail(.safety, "\(name) sends a secret key") }
    }
    for device in devices { device.start() }
    StormScript(self).schedule()
    world.run(until: end)
    guard world.failure == nil else { return dispose() }
    heal()
    settle()
    judge()
    dispose()
  }

  var end: Duration { .seconds(recipe[.minutes] * 60) }

  private func heal() {
    isHealed = true
    world.note("healed")
    plan = .none
    community.heal()
    for device in devices {
      device.clock.offset = 0
      if let disk = device.life?.disk {
        disk.failsSyncs = false
        disk.failsWrites = false
        disk.setRoom(nil)
      }
      // A store that has failed stays so until the program is started again, and a start proves
      // everything anew.
      device.crash(.kill)
      device.start()
    }
  }

  private func settle() {
    world.run(
      for: Storm.restMax, until: { isAtRest },
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

  private func judge() {
    guard world.failure == nil else { return }
    for watch in watches {
      watch.look()
      watch.outbox.judge()
    }
    let comparisons = devices.map { CacheChecker.compare($0) }
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

  init(_ device: Device) {
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
