import Nostr
import RelayServer

/// Puts down on the world's agenda what a recipe wants to happen, and when.
struct StormScript {
  private let storm: Storm
  private let world: World
  private let recipe: Recipe

  init(_ storm: Storm) {
    self.storm = storm
    world = storm.world
    recipe = storm.recipe
  }

  func schedule() {
    scheduleWriting()
    scheduleRelays()
    for device in storm.devices {
      scheduleCrashes(of: device)
      scheduleDisk(of: device)
      scheduleClock(of: device)
      scheduleAbsence(of: device)
    }
  }

  // MARK: When

  /// Calls `run` at times about so many seconds apart, until the faults end.
  private func every(
    _ knob: Knob, _ purpose: String, _ run: @escaping (inout SplitMix64) -> Void
  ) {
    guard recipe[knob] > 0 else { return }
    repeatedly(Double(recipe[knob]), Chance(world.generator("\(knob.rawValue) \(purpose)")), run)
  }

  private final class Chance {
    var random: SplitMix64

    init(_ random: SplitMix64) { self.random = random }
  }

  private func repeatedly(
    _ seconds: Double, _ chance: Chance, _ run: @escaping (inout SplitMix64) -> Void
  ) {
    let delay = Duration.seconds(seconds * (0.2 + 1.6 * chance.random.fraction()))
    guard world.now + delay < storm.end else { return }
    world.after(delay) {
      guard !storm.isHealed else { return }
      run(&chance.random)
      repeatedly(seconds, chance, run)
    }
  }

  /// A length of time up to what a knob says.
  private func length(_ knob: Knob, _ random: inout SplitMix64) -> Duration {
    .milliseconds(random.number(in: 1..<1000 * recipe[knob] + 2))
  }

  // MARK: People

  private func scheduleWriting() {
    var random = world.generator("writing")
    let milliseconds = Int(storm.end.components.seconds) * 1000
    for number in 0..<recipe[.writes] {
      let device = random.element(of: storm.devices)
      let group = random.element(of: storm.community.groups)
      let isReply = random.chance(recipe[.replyPercent])
      world.after(.milliseconds(random.number(in: 1..<milliseconds))) {
        let parent = isReply ? device.memory.written.last?.event : nil
        device.write(Text("message \(number)"), in: group, replyingTo: parent)
      }
    }
    for _ in 0..<recipe[.others] {
      world.after(.milliseconds(random.number(in: 1..<milliseconds))) {
        storm.community.somebodyWrites(isLate: false)
      }
    }
    every(.lateEvery, "") { _ in storm.community.somebodyWrites(isLate: true) }
  }

  private func scheduleAbsence(of device: Device) {
    every(.offlineEvery, device.name) { random in
      world.count(fault: "offline")
      device.goOffline()
      world.after(length(.offlineMax, &random)) { device.goOnline() }
    }
  }

  // MARK: Relays

  private func scheduleRelays() {
    every(.troubleEvery, "") { random in
      storm.community.makeTrouble(for: length(.troubleMax, &random))
    }
    every(.relayRestartEvery, "") { random in
      storm.community.restart(for: length(.relayDownMax, &random))
    }
  }

  // MARK: Computers

  private func scheduleCrashes(of device: Device) {
    every(.crashEvery, device.name) { random in
      let isPower = random.chance(recipe[.powerPercent])
      let down = length(.downMax, &random)
      if isPower, random.chance(recipe[.cutInWritePercent]), let disk = device.life?.disk {
        disk.cutPower(afterWrites: random.number(in: 0..<40))
      } else {
        if device.isRunning { world.count(fault: isPower ? "power-cut" : "kill") }
        device.crash(isPower ? .power : .kill)
      }
      if random.chance(recipe[.cacheDamagePercent]) {
        world.count(fault: "cache-damage")
        device.damageCache(random.element(of: CacheDamage.allCases))
      }
      world.after(down) { device.start() }
    }
  }

  private func scheduleDisk(of device: Device) {
    every(.diskFullEvery, device.name) { random in
      guard let disk = device.life?.disk else { return }
      world.count(fault: "disk-full")
      disk.setRoom(random.number(in: 0..<100_000))
      world.after(length(.diskFaultMax, &random)) {
        disk.setRoom(nil)
        restart(device)
      }
    }
    every(.syncFailEvery, device.name) { random in
      guard let disk = device.life?.disk else { return }
      world.count(fault: "sync-failure")
      if random.chance(50) { disk.failsSyncs = true } else { disk.failsWrites = true }
      world.after(length(.diskFaultMax, &random)) {
        disk.failsSyncs = false
        disk.failsWrites = false
        restart(device)
      }
    }
  }

  /// A person whose program says that the disk has failed starts it again.
  private func restart(_ device: Device) {
    device.crash(.kill)
    device.start()
  }

  private func scheduleClock(of device: Device) {
    every(.clockJumpEvery, device.name) { random in
      let skew = recipe[.clockSkewMax]
      guard skew > 0 else { return }
      world.count(fault: "clock-jump")
      device.clock.offset = Int64(random.number(in: -skew..<skew + 1))
      device.wakes()
    }
  }
}
