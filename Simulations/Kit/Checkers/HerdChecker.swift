import Nostr
import SyncCore

/// I8 for several: those who lost a relay at the same moment do not come back to it in step, time
/// after time, or it would meet all of its clients at once.
final class HerdChecker {
  /// Attempts so close to each other are one knock on the door.
  private static let closeness = Duration.milliseconds(250)
  /// After so many in step it is no chance any more.
  private static let stepsMax = 7

  private let devices: [Device]
  private let world: World

  init(_ devices: [Device], in world: World) {
    self.devices = devices
    self.world = world
  }

  func look() {
    for (index, device) in devices.enumerated() {
      for other in devices[..<index] {
        guard let mine = device.life?.network.attempts, let theirs = other.life?.network.attempts
        else { continue }
        for (relay, times) in mine.sorted(by: { $0.key < $1.key }) {
          let inStep = HerdChecker.inStep(times, theirs[relay] ?? [])
          world.check(
            inStep < HerdChecker.stepsMax,
            "\(device.name) and \(other.name) come to \(relay) together, \(inStep) times in a row")
        }
      }
    }
  }

  /// How many of the last attempts each came together with one of the others.
  private static func inStep(_ mine: [Duration], _ theirs: [Duration]) -> Int {
    zip(mine.reversed(), theirs.reversed()).prefix { left, right in
      max(left, right) - min(left, right) < closeness
    }.count
  }
}
