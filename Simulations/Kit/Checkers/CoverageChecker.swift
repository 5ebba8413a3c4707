import EventLog
import Nostr
import SyncCore
import SyncEngine

/// I5: coverage never claims what no query proved. The relay's own store is the witness: whatever
/// it serves in a proved span, and had well before the proof, is in the log.
package final class CoverageChecker {
  /// How long before a proof an event must have been there to be held to it: no page and no session
  /// may take longer.
  private static let leadMin = Duration.seconds(600)

  private struct Claim: Hashable {
    let relay: RelayURL
    let scope: Text
    let interval: CoverageInterval
  }

  private let device: Device
  private let world: World
  private let log: LogChecker
  /// When each claim was met first, at the latest; a later life does not make it any newer.
  private var metAfter: [Claim: Duration] = [:]
  /// The claims that were looked at in this life.
  private var seen: Set<Claim> = []
  private var lifeSeen = 0
  private var lookedAt = Duration.zero

  package init(_ device: Device, log: LogChecker) {
    self.device = device
    self.log = log
    world = device.world
  }

  /// Looks at every claim that was not there at the last look.
  package func look() {
    guard let life = device.life, let reader = life.store?.reader, !life.disk.isDead else { return }
    if life.number != lifeSeen {
      // After a crash coverage and log must still agree.
      lifeSeen = life.number
      seen = []
    }
    log.look()
    do throws(LogError) {
      for row in try reader.coverage(asOf: device.clock.now()) {
        for interval in row.intervals {
          let claim = Claim(relay: row.relay, scope: row.scope, interval: interval)
          if seen.insert(claim).inserted { try check(claim) }
        }
      }
    } catch {
      guard !life.disk.isDead, !life.disk.failsWrites else { return }
      world.fail(.safety, "\(device.name): its coverage cannot be read: \(error)")
    }
    lookedAt = world.now
  }

  private func check(_ claim: Claim) throws(LogError) {
    guard let relay = device.relays.first(where: { $0.url == claim.relay }) else { return }
    var filter: Filter
    do throws(FilterError) {
      filter = try Filter(json: claim.scope.utf8)
    } catch {
      return world.fail(.safety, "\(device.name) proves a scope that is no filter: \(claim.scope)")
    }
    // Neighbours are told as one under the earlier of their times. A clock that jumps dates nothing.
    let isClockSound = device.settings.clockOffset == 0 && world.faults["clock-jump"] == nil
    world.check(
      !isClockSound || claim.interval.to <= claim.interval.provedAt + CoverageMap.joinSeconds,
      "\(device.name) proves what was still to come: \(claim.interval.to) of \(claim.scope)")
    filter.since = claim.interval.from
    filter.until = claim.interval.to
    // The claim was made after the last look at which it was not there; what it says of its own
    // time is by a clock that may have been ahead.
    let met = metAfter[claim] ?? lookedAt
    metAfter[claim] = met
    let told = claim.interval.provedAt.seconds - world.epoch.seconds - device.clock.offsetMax
    let before = min(met, .seconds(told)) - CoverageChecker.leadMin
    for event in relay.served(filter) where !log.held.contains(event.id) {
      guard let time = relay.acceptedTimes[event.id], time < before else { continue }
      world.fail(
        .safety,
        """
        \(device.name) calls \(claim.interval.from)…\(claim.interval.to) of \(claim.scope) at \
        \(relay.name) complete and lacks \(event.id.hex.prefix(8)) at \(event.createdAt)
        """)
    }
  }
}
