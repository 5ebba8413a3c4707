import EventLog
import HotCache
import SyncEngine

/// I3: the cache is what folding the log anew would give, whatever order things came in.
package enum CacheChecker {
  /// Starts the comparison; `isDone` turns true in the course of the world's next steps.
  package static func compare(_ device: Device) -> Comparison {
    let comparison = Comparison()
    guard let life = device.life, let store = life.store else {
      comparison.isDone = true
      return comparison
    }
    let world = device.world
    world.spawn {
      await store.caughtUp()
      let scratch = ScratchFolder.make()
      defer { ScratchFolder.remove(scratch) }
      do throws(CacheError) {
        let live = try store.views.read { view throws(CacheError) in try view.digest() }
        let fresh = await HotCache.open(
          directory: scratch, log: store.reader, executor: life.desk,
          options: CacheOptions(mapBytes: 4 << 20, mapBytesMax: 256 << 20))
        try await fresh.catchUp()
        let rebuilt = try fresh.views.read { view throws(CacheError) in try view.digest() }
        await fresh.close()
        world.check(live == rebuilt, "\(device.name): its cache is not what its log says")
      } catch {
        if !life.isDead { world.fail(.safety, "\(device.name): its cache fails: \(error)") }
      }
      comparison.isDone = true
    }
    return comparison
  }

  package final class Comparison: @unchecked Sendable {
    // Unchecked: as for the world it is in.
    package internal(set) var isDone = false
  }
}
