import EventLog
import HotCache
import Nostr
import NostrCrypto
import SyncCore
import SyncEngine

/// I3 and I6 for what people see: at rest every question is answered as its relay answers it, so that
/// what was deleted or replaced is gone, and nothing else is.
enum AnswerChecker {
  static func compare(_ device: Device, groups: [Text]) -> CacheChecker.Comparison {
    let comparison = CacheChecker.Comparison()
    // A relay that has lost what it was told has other answers than it had.
    guard let life = device.life, let store = life.store,
      device.world.faults["relay-forgets"] == nil
    else {
      comparison.isDone = true
      return comparison
    }
    let world = device.world
    world.spawn {
      await store.caughtUp()
      do throws(CacheError) {
        for filter in questions(groups) {
          let asked = filter
          let now = device.clock.now()
          let held = try store.views.read { view throws(CacheError) in
            try view.items(asked, after: nil, limit: .max, now: now)
          }
          compare(Set(held.map(\.id)), with: filter, by: device)
        }
      } catch {
        if !life.isDead { world.fail(.safety, "\(device.name) gives no answer: \(error)") }
      }
      comparison.isDone = true
    }
    return comparison
  }

  private static func questions(_ groups: [Text]) -> [Filter] {
    groups.map { Filter.group($0) } + [Filter(kinds: [.profile]), Filter(kinds: [.groupMetadata])]
  }

  private static func compare(
    _ held: Set<EventID>, with filter: Filter, by device: Device
  ) {
    guard let home = device.relays.first else { return }
    let served = Set(home.served(filter).map(\.id))
    let missing = served.subtracting(held).sorted()
    device.world.check(
      missing.isEmpty,
      "\(device.name) does not show \(missing.first?.hex.prefix(8) ?? ""), which is current")
    // What the home relay never took is not its to judge.
    let stale = held.subtracting(served).filter { home.hasSaid($0) }.sorted()
    device.world.check(
      stale.isEmpty, "\(device.name) shows \(stale.first?.hex.prefix(8) ?? ""), which is gone")
  }
}
