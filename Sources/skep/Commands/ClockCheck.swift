import EventLog
import Nostr
import RelaySocket
import SyncCore
import SyncEngine

/// Compares this machine's clock with those of a community's relays.
///
/// A clock that is off makes relays refuse what is written and answers to their challenges.
enum ClockCheck {
  static func relays(of folder: CommunityFolder, _ context: Context) async -> [HealthCheck] {
    // A store that cannot be read was named by its own check.
    guard let relays = try? ReadingCommunity(folder).relays() else { return [] }
    var checks: [HealthCheck] = []
    for relay in relays {
      if context.stop.isRequested { break }
      checks.append(await check(relay, context))
    }
    return checks
  }

  private static func check(_ relay: RelayURL, _ context: Context) async -> HealthCheck {
    let name = "clock against \(relay)"
    do throws(TransportError) {
      let before = context.clock.now()
      let time = try await DocumentFetcher().answer(of: relay).date
      let after = context.clock.now()
      guard let time else {
        return HealthCheck(
          name: name, isOK: true, detail: "not known: the relay does not say what time it is")
      }
      return verdict(name, skew: skew(of: time, askedAt: before, answeredAt: after))
    } catch {
      return HealthCheck(name: name, isOK: true, detail: "not known: \(error)")
    }
  }

  /// How far the relay's clock is ahead, in seconds; what the answer's way may explain is none.
  static func skew(of time: Timestamp, askedAt: Timestamp, answeredAt: Timestamp) -> Int64 {
    if time < askedAt { return time.seconds - askedAt.seconds }
    if time > answeredAt { return time.seconds - answeredAt.seconds }
    return 0
  }

  static func verdict(_ name: String, skew: Int64) -> HealthCheck {
    // HTTP counts whole seconds, so one of them says nothing.
    guard skew.magnitude > 1 else {
      return HealthCheck(name: name, isOK: true, detail: "they agree")
    }
    let detail = RelayStatus.skewWords(skew)
    guard RelayStatus.isSkewed(by: skew) else {
      return HealthCheck(name: name, isOK: true, detail: detail)
    }
    return HealthCheck(
      name: name, isOK: false,
      detail: detail + ": set it, for example with “timedatectl set-ntp true”")
  }
}
