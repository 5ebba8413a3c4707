import EventLog
import HotCache
import Nostr
package import NostrCrypto
import Platform
import RelayServer
package import SyncCore
package import SyncEngine

/// One computer of one person: a disk, a clock, and the engine that ships, which is started, used,
/// stopped and killed.
package final class Device: @unchecked Sendable {
  // Unchecked: as for the world it is in.
  package struct Settings {
    package var limits = Limits()
    package var clockOffset: Int64 = 0
    package var clockRate = 1.0
    /// How long a piece of work on the disk takes, at most.
    package var diskDelayMax: Duration = .zero
    package var cacheMapBytesMax = 64 << 20

    package init() {}
  }

  package let name: String
  package let key: SecretKey
  package let world: World
  package let relays: [SimulatedRelay]
  package let clock: DeviceClock
  package let memory = UserMemory()
  package internal(set) var settings: Settings
  package private(set) var life: DeviceLife?
  package private(set) var livesCount = 0
  private var syncsBefore = 0
  /// What the next life finds on its disk.
  private var contents: [String: [UInt8]] = [:]
  /// A copy of the cache's folder that the next life finds; nil: none.
  private var cacheFolder: String?
  private var olderCache: String?
  private let plan: () -> FaultPlan
  private var random: SplitMix64
  private var diskRandom: SplitMix64

  /// - Parameter person: Whose key signs; devices of one person share it.
  package init(
    _ name: String, of person: String, at relays: [SimulatedRelay], in world: World,
    settings: Settings = Settings(), plan: @escaping () -> FaultPlan
  ) {
    self.name = name
    self.world = world
    self.relays = relays
    self.settings = settings
    self.plan = plan
    key = SimulationKeys.key("person \(person)")
    clock = DeviceClock(world, offset: settings.clockOffset, rate: settings.clockRate)
    random = world.generator("device \(name)")
    diskRandom = world.generator("disk of \(name)")
  }

  package var isRunning: Bool { life != nil }

  /// How often its disk was told to make sure, in all lives.
  var syncs: Int { syncsBefore + (life?.disk.syncs ?? 0) }

  /// The engine, once it is there.
  package var engine: Engine? { life?.engine }

  package var store: CommunityStore? { life?.store }

  // MARK: Start

  /// Starts the program on what is on the disk.
  package func start() {
    guard life == nil else { return }
    livesCount += 1
    let life = makeLife()
    self.life = life
    world.note("\(name) starts for the \(livesCount). time")
    world.spawn { [self] in await bringUp(life) }
  }

  private func makeLife() -> DeviceLife {
    let folder = ScratchFolder.make()
    if let cacheFolder {
      ScratchFolder.copyFiles(from: cacheFolder, to: folder + "/cache")
      ScratchFolder.remove(cacheFolder)
    }
    cacheFolder = nil
    let disk = VirtualDisk(contents, random: SplitMix64(seed: random.next()))
    VirtualFileSystem.mount(disk, at: folder)
    disk.onPowerCut = { [weak self, weak disk] in
      guard let self else { return }
      self.world.after(.zero) { [weak self] in
        guard let self, let life = self.life, life.disk === disk else { return }
        self.world.count(fault: "power-cut-in-write")
        self.crash(.power)
      }
    }
    let network = SimulatedNetwork(
      "\(name).\(livesCount)", to: relays, in: world, plan: plan)
    let ports = Ports(
      clock: clock, random: SeededRandom(seed: random.next()), tasks: WorldTasks(),
      transport: network, relayInformation: network, work: InlineWork())
    return DeviceLife(
      number: livesCount, disk: disk, folder: folder, network: network, ports: ports,
      executors: StoreExecutors(log: lane(), cache: lane()), desk: lane())
  }

  /// An executor for work on the disk, which takes its time.
  private func lane() -> LaneExecutor {
    LaneExecutor(world.jobs) { [self] begin in
      guard settings.diskDelayMax > .zero else { return begin() }
      world.afterAll(settings.diskDelayMax * diskRandom.fraction(), begin)
    }
  }

  private func bringUp(_ life: DeviceLife) async {
    var options = LogOptions()
    options.vfs = VirtualFileSystem.name
    options.logID = Array(SHA256.hash(Array("log of \(name)".utf8)).array.prefix(16))
    do throws(StoreError) {
      let store = try await CommunityStore.open(
        folder: life.folder, clock: clock, tasks: life.ports.tasks, executors: life.executors,
        logOptions: options,
        cacheOptions: CacheOptions(
          mapBytes: min(4 << 20, settings.cacheMapBytesMax), mapBytesMax: settings.cacheMapBytesMax),
        limits: settings.limits)
      life.store = store
      guard !life.isDead else { return await life.finish() }
    } catch {
      life.failure = error.description
      return startFailed(life, error)
    }
    guard let store = life.store else { return }
    var options2 = EngineOptions()
    options2.limits = settings.limits
    let engine = Engine(
      store: store, relays: relays.map(\.url), ports: life.ports, signer: signer,
      options: options2, executor: life.desk, verifier: world.verdicts.verifier)
    life.engine = engine
    await engine.start()
    if life.isDead { return await life.finish() }
    writeAgain()
  }

  private var signer: LocalSigner { LocalSigner(key, entropy: NoEntropy()) }

  private func startFailed(_ life: DeviceLife, _ error: StoreError) {
    guard self.life === life, !life.isDead else { return }
    // A disk that fails on purpose fails the start too; any other reason breaks a promise.
    if life.disk.isDead || life.disk.isFaulty {
      return world.note("\(name) cannot start: \(life.told(error))")
    }
    world.fail(.safety, "\(name) cannot start on what a crash left: \(error)")
  }

  // MARK: End

  package enum End: Sendable {
    /// The program is killed: what it wrote is there.
    case kill
    /// The power goes: what was not synced is there in part.
    case power
  }

  /// Ends the program between two steps.
  package func crash(_ end: End) {
    guard let life else { return }
    syncsBefore += life.disk.syncs
    world.note("\(name) \(end == .kill ? "is killed" : "loses its power")")
    contents = end == .kill ? life.disk.kill() : life.disk.cutPower()
    let kept = ScratchFolder.make()
    ScratchFolder.copyFiles(from: life.folder + "/cache", to: kept)
    keepOlderCache(kept)
    if end == .power {
      CacheDamage.afterPowerCut(kept, &random)
    }
    cacheFolder = kept
    bury(life)
  }

  /// What befalls the cache between two lives.
  package func damageCache(_ damage: CacheDamage) {
    guard life == nil, let cacheFolder else { return }
    if damage == .older, let olderCache {
      ScratchFolder.copyFiles(from: olderCache, to: cacheFolder)
    }
    damage.apply(to: cacheFolder, &random)
  }

  /// Keeps a copy of the cache that may be put back later.
  private func keepOlderCache(_ folder: String) {
    guard random.chance(20) else { return }
    if let olderCache { ScratchFolder.remove(olderCache) }
    let copy = ScratchFolder.make()
    ScratchFolder.copyFiles(from: folder, to: copy)
    olderCache = copy
  }

  /// Takes the process away from its actors, and lets them end.
  private func bury(_ life: DeviceLife) {
    life.isDead = true
    life.network.cutOff()
    self.life = nil
    guard life.engine != nil || life.store == nil && life.failure != nil else { return }
    world.spawn { await life.finish() }
  }

  /// Ends for good and removes what it has on real disks.
  package func dispose() {
    if let life { bury(life) }
    if let cacheFolder { ScratchFolder.remove(cacheFolder) }
    if let olderCache { ScratchFolder.remove(olderCache) }
    cacheFolder = nil
    olderCache = nil
  }
}
