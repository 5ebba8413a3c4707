import Nostr

/// I8: attempts to connect, open connections and what waits to be read stay within their bounds.
package final class BudgetChecker {
  /// Five at once, one in 25 seconds after these, and a try when the network changes: more than this
  /// in a minute is a storm.
  private static let attemptsAMinuteMax = 12
  private static let framesWaitingMax = 5000

  private let device: Device
  private let world: World

  package init(_ device: Device) {
    self.device = device
    world = device.world
  }

  package func look() {
    guard let network = device.life?.network else { return }
    world.check(
      network.openCount <= device.relays.count,
      "\(device.name) has \(network.openCount) connections to \(device.relays.count) relays")
    world.check(
      network.framesWaitingMax <= BudgetChecker.framesWaitingMax,
      "\(device.name) leaves \(network.framesWaitingMax) frames unread")
    for (relay, times) in network.attempts.sorted(by: { $0.key < $1.key }) {
      let recent = times.reversed().prefix { $0 > world.now - .seconds(60) }
      world.check(
        recent.count <= BudgetChecker.attemptsAMinuteMax,
        "\(device.name) tried to reach \(relay) \(recent.count) times in a minute")
    }
  }
}
