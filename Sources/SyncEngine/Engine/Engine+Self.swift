import EventLog
import Nostr
import NostrCrypto
import SyncCore

extension Engine {
  /// A relay's document names a key as its own; `SelfPolicy` says what that is worth.
  ///
  /// One at a time, because a verdict is over what the one before it has written.
  func heard(_ key: PublicKey, from relay: RelayURL) async {
    selvesHeard.append((relay: relay, key: key))
    guard !isJudgingSelf else { return }
    isJudgingSelf = true
    while !selvesHeard.isEmpty {
      let next = selvesHeard.removeFirst()
      await judge(next.key, of: next.relay)
    }
    isJudgingSelf = false
  }

  private func judge(_ key: PublicKey, of relay: RelayURL) async {
    do throws(LogError) {
      var settings = try await desk.settings()
      // A copy that was made before keys were accepted has the home's as a fact.
      if settings.relaySelf == nil, let home = settings.home ?? relays.first {
        settings.relaySelf = try await desk.relaySelf(home)
      }
      let verdict = SelfPolicy.verdict(
        on: key, namedBy: relay, home: settings.home ?? relays.first, accepted: settings.relaySelf)
      links[relay]?.offeredSelf = verdict == .offered ? key : nil
      settings.offeredSelves[relay] = verdict == .offered ? key : nil
      if verdict == .adopted { settings.accept(key) }
      try await settings.save(to: store.log)
      guard verdict == .adopted || verdict == .trusted else { return }
      if try await desk.relaySelf(relay) != key { try await store.note(.relaySelf(relay, key)) }
      guard verdict == .adopted else { return }
      // What replicas said before the home was heard can be judged now.
      for (replica, link) in links.sorted(by: { $0.key < $1.key }) where replica != relay {
        if let named = link.information?.selfKey {
          selvesHeard.append((relay: replica, key: named))
        }
      }
    } catch {
      storeFailed(error)
    }
  }
}
