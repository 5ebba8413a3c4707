import EventLog
import Nostr
import NostrCrypto
import SyncCore
import SyncEngine

/// I4: a message is called sent only when its relay took it, and a relay sees one event a message, or
/// the re-dated one after it refused the first.
package final class OutboxChecker {
  private let device: Device
  private let world: World
  private var sentSeen: Set<EventID> = []

  package init(_ device: Device) {
    self.device = device
    world = device.world
  }

  package func look() {
    guard let life = device.life, let reader = life.store?.reader, !life.disk.isDead else { return }
    do throws(LogError) {
      for delivery in try reader.deliveries(includingSent: true) {
        if delivery.state == .sent, sentSeen.insert(delivery.eventID).inserted {
          checkSent(delivery)
        }
        if delivery.state == .refused { checkRefused(delivery) }
      }
    } catch {
      guard !life.disk.isDead, !life.disk.failsWrites else { return }
      world.fail(.safety, "\(device.name): its outbox cannot be read: \(error)")
    }
  }

  private func checkSent(_ delivery: Delivery) {
    world.check(
      device.relays.contains { $0.url == delivery.relay && $0.hasSaid(delivery.eventID) },
      "\(device.name) calls message \(delivery.message) sent, and \(delivery.relay) never took it")
  }

  /// Only a relay's lasting no, or one that was said again and again, ends a message.
  private func checkRefused(_ delivery: Delivery) {
    let limits = device.settings.limits
    let isPassing =
      switch delivery.reason.map({ RefusalClass($0) }) {
      case .rateLimited, .authRequired, .timedOut, .duplicate: true
      case .error: delivery.attempts < limits.errorAttemptsMax
      default: false
      }
    world.check(
      !isPassing,
      "\(device.name) gives message \(delivery.message) up over \(delivery.reason ?? "nothing")")
  }

  /// What is not settled yet, with the reason of each.
  package func open() -> [String] {
    guard let reader = device.store?.reader,
      let deliveries = try? reader.deliveries(includingSent: false)
    else { return ["the outbox cannot be read"] }
    let explained = OutboxChecker.explained(deliveries)
    return deliveries.filter { !explained.contains($0.message) }.map {
      "\($0.message) \($0.state.rawValue) \($0.reason ?? "")"
    }
  }

  /// Those that have ended badly and say why, and those that wait for one of them: what becomes of
  /// these is for their writer to say.
  private static func explained(_ deliveries: [Delivery]) -> Set<MessageID> {
    let ended = Set(deliveries.filter { !$0.state.isOpen }.map(\.message))
    var explained = ended
    for delivery in deliveries.sorted(by: { $0.message < $1.message }) where delivery.state == .held
    {
      let hasParent = delivery.waitsFor.map(explained.contains) == true
      let isBehind = deliveries.contains {
        $0.message < delivery.message && $0.group == delivery.group
          && explained.contains($0.message) && !ended.contains($0.message)
      }
      if hasParent || isBehind { explained.insert(delivery.message) }
    }
    return explained
  }

  /// Everything that was written is at the home relay once, or its end is explained.
  package func judge() {
    guard let home = device.relays.first, let reader = device.store?.reader else { return }
    var counts: [Text: Int] = [:]
    for event in home.accepted where event.pubkey == device.key.publicKey {
      counts[event.content, default: 0] += 1
    }
    for text in device.memory.attempted.sorted() where counts[text, default: 0] > 1 {
      world.fail(.safety, "\(home.name) has the message \(text) \(counts[text] ?? 0) times")
    }
    checkOrder(at: home, reader)
    let deliveries = (try? reader.deliveries(includingSent: false)) ?? []
    let explained = OutboxChecker.explained(deliveries)
    for written in device.memory.written
    where counts[written.text] == nil && !explained.contains(written.message) {
      let state = (try? reader.message(id: written.message))?.deliveries.first?.state.rawValue
      world.fail(
        .safety,
        """
        \(device.name) calls the message \(written.text) \(state ?? "nothing"), and \(home.name) \
        never took it
        """)
    }
  }

  /// The messages of a group reach the relay in the order in which they were written, but for those
  /// that it refused once and those that waited for another.
  private func checkOrder(at home: SimulatedRelay, _ reader: LogReader) {
    var places: [EventID: Int] = [:]
    for (place, event) in home.accepted.enumerated() { places[event.id] = place }
    var last: [Text: (message: MessageID, place: Int)] = [:]
    let deliveries = (try? reader.deliveries(includingSent: true)) ?? []
    for delivery in deliveries.sorted(by: { $0.message < $1.message }) {
      guard delivery.state == .sent, delivery.waitsFor == nil, let group = delivery.group,
        let place = places[delivery.eventID]
      else { continue }
      if let before = last[group] {
        world.check(
          before.place < place,
          "\(home.name) has message \(delivery.message) of \(device.name) before \(before.message)")
      }
      last[group] = (delivery.message, place)
    }
  }
}
