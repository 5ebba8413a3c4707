import EventLog
import Nostr
import SyncCore

// What must not end by itself is looked after: a task that was lost is not missed by anybody else.
extension Engine {
  /// Follows a relay, and says when that has ended.
  func startFollowing(_ relay: RelayURL) {
    guard !isStopped, links[relay]?.isFollowed == false else { return }
    links[relay]?.isFollowed = true
    followers.append(
      ports.tasks.spawn("follow \(relay)") { [weak self] in
        await self?.follow(relay)
        await self?.ended(following: relay)
      })
  }

  private func ended(following relay: RelayURL) { links[relay]?.isFollowed = false }

  /// Runs as long as the engine: wakes connections after a sleep of the machine, and restarts what
  /// has ended.
  func watch() async {
    let clock = ports.clock
    var wake = WakeWatch(uptime: clock.uptime(), wall: clock.now())
    while !isStopped {
      // Cancelled only when the engine stops.
      guard (try? await clock.sleep(until: clock.uptime() + limits.watchInterval)) != nil else {
        return
      }
      if wake.hasSlept(uptime: clock.uptime(), wall: clock.now()) { await networkChanged() }
      for relay in relays {
        await links[relay]?.connection.supervise()
        if isFollowing, storeFailure == nil { startFollowing(relay) }
      }
    }
  }

  // MARK: Feeds

  func feedChanged(_ name: SubscriptionName, _ state: SubscriptionState, _ relay: RelayURL) {
    links[relay]?.feeds.changed(name, state, at: ports.clock.now())
    changed(.relay(relay))
  }

  /// A feed was not live for a while: what its group missed is asked for.
  func feedResumed(_ name: SubscriptionName, _ relay: RelayURL) {
    if let group = SyncScopes.group(ofFeed: name) {
      links[relay]?.groupsDue.insert(group)
    } else {
      links[relay]?.isDue = true
    }
    wake()
  }

  /// Reconciling found new events: were they for a feed to bring?
  func found(_ events: [Event], at relay: RelayURL) async {
    let deaf = links[relay]?.feeds.found(events, at: ports.clock.now()) ?? []
    for name in deaf { await links[relay]?.connection.renew(name) }
    await readmit(by: events, at: relay)
  }

  /// Asks again for feeds that were refused before there was this news of them.
  func readmit(by events: [Event], at relay: RelayURL) async {
    for name in links[relay]?.feeds.readmitted(by: events) ?? [] {
      await links[relay]?.connection.readmit(name)
    }
  }
}
