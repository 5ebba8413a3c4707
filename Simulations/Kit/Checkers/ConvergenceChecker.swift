package import Nostr
import SyncCore

/// I6: once the faults are over, everybody holds what every relay serves.
package enum ConvergenceChecker {
  /// What a device lacks of the groups, as far as a relay of its serves it.
  package static func lacking(
    _ device: Device, _ log: LogChecker, groups: [Text]
  ) -> [EventID] {
    log.look()
    var lacking: [EventID] = []
    for relay in device.relays where relay.isUp {
      for group in groups {
        for event in relay.served(.group(group)) where !log.held.contains(event.id) {
          lacking.append(event.id)
        }
      }
    }
    return lacking
  }
}
