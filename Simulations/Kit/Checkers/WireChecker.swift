import EventLog
import Nostr
import SyncCore
import SyncEngine

/// I4 and the promises about frames: no request goes under an id that was used before, and a message
/// leaves only when the disk knows that it may have left.
final class WireChecker {
  let device: Device
  private let world: World
  private var lifeSeen = 0
  private var used: Set<SubscriptionID> = []
  private var lines: Set<String> = []
  /// How many groups there are.
  let groups: Int
  private(set) var frames = 0
  /// Of those, the ones that bring a message.
  private(set) var submitted = 0

  var connections: Int { lines.count }

  init(_ device: Device, groups: Int) {
    self.device = device
    self.groups = groups
    world = device.world
  }

  func look(at frame: [UInt8], on line: String) {
    guard let life = device.life else { return }
    frames += 1
    lines.insert(line)
    if life.number != lifeSeen {
      lifeSeen = life.number
      used = []
    }
    do throws(FrameError) {
      switch try ClientMessage.parse(frame) {
      case .req(let id, _), .negOpen(let id, _, _): begins(id)
      case .event(let event): leaves(event, life)
      case .auth, .close, .count, .negMessage, .negClose: break
      }
    } catch {
      world.fail(.safety, "\(device.name) sends what is no frame: \(error)")
    }
  }

  private func begins(_ id: SubscriptionID) {
    world.check(used.insert(id).inserted, "\(device.name) uses the id \(id) for two requests")
    world.check(id.utf8.count <= 32, "\(device.name) uses an id of \(id.utf8.count) bytes")
  }

  private func leaves(_ event: Event, _ life: DeviceLife) {
    submitted += 1
    guard let reader = life.store?.reader, !life.disk.isDead else { return }
    do throws(LogError) {
      let message = try reader.message(eventID: event.id)
      world.check(
        message?.deliveries.contains { $0.eventID == event.id && $0.handedAt != nil } == true,
        "\(device.name) hands over \(event.id.hex.prefix(8)), and its disk does not know")
    } catch {
      guard !life.disk.isDead, !life.disk.isFaulty else { return }
      world.fail(.safety, "\(device.name): its outbox cannot be read: \(error)")
    }
  }
}
