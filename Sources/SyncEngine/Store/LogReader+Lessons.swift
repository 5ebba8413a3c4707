import EventLog
import Nostr
import SyncCore

// What is kept of relays' refusals for later runs.
extension LogReader {
  func lessons(of relay: RelayURL) throws(LogError) -> RelayLessons {
    let kept = try setting(RelayLessons.key(relay))
    return RelayLessons(text: kept.map { String(decoding: $0, as: UTF8.self) } ?? "")
  }
}

extension EventLog {
  func setLessons(_ lessons: RelayLessons, of relay: RelayURL) throws(LogError) {
    let text = lessons.text
    try setSetting(RelayLessons.key(relay), text.isEmpty ? nil : Array(text.utf8))
  }
}

extension RelayLessons {
  fileprivate static func key(_ relay: RelayURL) -> String { "relay.lessons \(relay)" }
}
