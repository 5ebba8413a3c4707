import EventLog
package import Nostr
import NostrCrypto
import SyncCore
import SyncEngine

/// I1 and I2: what is in a log was said by somebody and is what it says; the log has no gap and no id
/// twice; what the program said it had taken is there after every crash.
package final class LogChecker {
  private let device: Device
  private let world: World
  private var lifeSeen = 0
  private var head = LogSequence.start
  /// What this life's log holds.
  package private(set) var held: Set<EventID> = []

  package init(_ device: Device) {
    self.device = device
    world = device.world
  }

  /// Looks at what was added since the last look.
  package func look() {
    guard let life = device.life, let reader = life.store?.reader, !life.disk.isDead else { return }
    do throws(LogError) {
      if life.number != lifeSeen {
        lifeSeen = life.number
        head = .start
        held = []
        try lookAfterStart(reader)
      }
      guard try reader.head() > head else { return }
      while true {
        let entries = try reader.entries(after: head, limit: 5000)
        if entries.isEmpty { return }
        for entry in entries {
          check(entry)
          guard case .event(let logged) = entry.body else { continue }
          world.check(
            try reader.sequence(of: logged.event.id) == entry.sequence,
            "\(device.name) tells of entry \(entry.sequence.number), which its file does not have")
        }
      }
    } catch {
      guard !life.disk.isDead, !life.disk.failsWrites else { return }
      world.fail(.safety, "\(device.name): its log cannot be read: \(error)")
    }
  }

  private func check(_ entry: LogEntry) {
    world.check(
      entry.sequence.number == head.number + 1,
      "\(device.name): entry \(entry.sequence.number) follows \(head.number)")
    head = entry.sequence
    guard case .event(let logged) = entry.body else { return }
    let event = logged.event
    world.check(
      held.insert(event.id).inserted, "\(device.name) holds \(event.id.hex.prefix(8)) twice")
    world.check(
      world.verdicts.isValid(event),
      "\(device.name) holds \(event.id.hex.prefix(8)), which is not what it says")
    guard let source = logged.source else {
      return world.check(
        device.memory.attempted.contains(event.content) && event.pubkey == device.key.publicKey,
        "\(device.name) holds \(event.id.hex.prefix(8)), which nobody wrote there")
    }
    world.check(
      device.relays.contains { $0.url == source && $0.hasSaid(event) },
      "\(device.name) holds \(event.id.hex.prefix(8)) of \(source), which never had it")
  }

  /// What was promised before is kept by whatever came since.
  private func lookAfterStart(_ reader: LogReader) throws(LogError) {
    if lifeSeen > 1 {
      for problem in try reader.integrity() {
        world.fail(.safety, "\(device.name): its log is damaged: \(problem)")
      }
    }
    for written in device.memory.written {
      let message = try reader.message(id: written.message)
      world.check(
        message?.token == written.text,
        "\(device.name) has lost the message \(written.text), which it had taken")
      guard let message else { continue }
      let event = try reader.event(id: message.eventID)
      world.check(
        event?.event.content == written.text,
        "\(device.name) has lost the event of the message \(written.text)")
    }
  }
}
