import Nostr
import SyncCore

/// Where nothing goes wrong, nothing is done twice: one connection a relay and start, one EVENT a
/// message, a few requests a group, and no more work for the disk than what was written asks for.
struct CalmChecker {
  let device: Device
  let wire: WireChecker

  func judge() {
    let world = device.world
    let (starts, relays) = (device.livesCount, device.relays.count)
    let (written, groups) = (device.memory.written.count, wire.groups)
    let minutes = Int(world.now.components.seconds / 60)
    let syncs = device.syncs
    world.note(
      """
      \(device.name) in calm: \(starts) starts, \(wire.connections) connections, \
      \(wire.frames) frames, \(wire.submitted) messages, \(syncs) syncs
      """)
    expect(wire.connections, atMost: starts * relays, "connections")
    expect(wire.submitted, atMost: written, "EVENT frames for \(written) messages")
    let requests = (30 + 8 * groups) * starts + (1 + groups) * minutes / 2
    expect(wire.frames - wire.submitted, atMost: requests * relays, "frames besides")
    expect(syncs, atMost: 4 * written + 60 * starts + 6 * minutes, "syncs")
  }

  private func expect(_ count: Int, atMost most: Int, _ what: String) {
    device.world.check(
      count <= most, "\(device.name) needs \(count) \(what) where \(most) will do")
  }
}
