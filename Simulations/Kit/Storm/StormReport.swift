import EventLog
import Nostr
import SyncCore
import SyncEngine

/// Says what everybody in a storm was waiting for when it failed.
enum StormReport {
  static func explain(_ storm: Storm) {
    let world = storm.world
    for relay in storm.community.relays {
      world.explanation.append(
        "\(relay.name): \(relay.isUp ? "up" : "down"), took \(relay.accepted.count) events")
    }
    for (device, watch) in zip(storm.devices, storm.watches) {
      guard let life = device.life, let engine = life.engine else {
        world.explanation.append(
          "\(device.name): \(device.isRunning ? "starting" : "not running") \(device.life?.failure ?? "")"
        )
        continue
      }
      let outbox = watch.outbox.open()
      let held = watch.log.held.count
      world.spawn {
        let status = await engine.status()
        world.explanation += lines(device.name, status, held: held, outbox)
      }
    }
    world.finishJobs()
  }

  private static func lines(
    _ name: String, _ status: EngineStatus, held: Int, _ outbox: [String]
  ) -> [String] {
    var lines = [
      "\(name): \(status.isOnline ? "online" : "offline"), holds \(held) events, open \(outbox)"
    ]
    for relay in status.relays {
      let feeds = relay.subscriptions.map { "\($0.name) \($0.state)" }
      lines.append(
        """
        \(name) at \(relay.url): \(relay.state) since \(relay.since), \
        last error \(relay.lastError?.string ?? "none"), unsettled \(relay.unsettled?.string ?? "nothing"), \
        caught up \(relay.isCaughtUp), feeds \(feeds.joined(separator: ", "))
        """)
    }
    return lines
  }
}
