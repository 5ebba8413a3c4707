import EventLog
import HotCache
import Nostr
import SyncCore
import SyncEngine

/// What somebody who sits before an open channel has not seen yet.
struct ChannelNews {
  /// The log up to here was looked at.
  var seen: LogSequence
  /// Messages dated before the oldest of the page are history that arrives, no news.
  var floor: EventPosition?
  /// What was shown, in whatever channel.
  var shown: Set<EventID>

  init(after seen: LogSequence = .start, shown: Set<EventID> = []) {
    self.seen = seen
    self.shown = shown
  }

  /// So many are shown at once; of more, their number.
  static let linesMax = 50
  /// Of a log that grew by more than this since the last look, the end alone is looked at.
  static let entriesMax: Int64 = 20_000
  static let chunk = 500

  /// Takes the next entries of the log; those that the views do not show yet stay for the next look.
  ///
  /// - Parameter applied: The last entry that the views show.
  /// - Returns: The events among those that were taken.
  mutating func take(_ entries: [LogEntry], through applied: LogSequence) -> [Event] {
    var events: [Event] = []
    for entry in entries where entry.sequence > seen && entry.sequence <= applied {
      seen = entry.sequence
      if case .event(let logged) = entry.body { events.append(logged.event) }
    }
    return events
  }
}

extension ChatSession {
  /// New messages of the open channel, above the line that is being typed.
  func showNews(on terminal: EditedLines) async throws {
    guard open != nil else { return }
    let rows = try await newMessages()
    guard !rows.isEmpty else { return }
    let late = rows.count - ChannelNews.linesMax
    let lines = output.rendering.page(try await shown(Array(rows.suffix(ChannelNews.linesMax))))
    for row in rows { news.shown.insert(row.id) }
    try terminal.above {
      if late > 0 { try output.say("… \(late) more new messages; /history shows them") }
      for line in lines { try output.out.write(line: line) }
      try output.out.flush()
    }
  }

  /// Looks through what the log has gained, because a message may be dated before one that was
  /// shown already.
  private func newMessages() async throws -> [MessageRow] {
    let applied = try await read { view throws(CacheError) in view.applied }
    news.seen = max(news.seen, LogSequence(applied.number - ChannelNews.entriesMax))
    var ids: [EventID] = []
    while news.seen < applied {
      let entries = try store.reader.entries(after: news.seen, limit: ChannelNews.chunk)
      guard !entries.isEmpty else { break }
      ids += news.take(entries, through: applied).filter(isNews).map(\.id)
    }
    let (time, viewer, wanted) = (now, me, ids)
    let rows = try await read { view throws(CacheError) in
      var rows: [MessageRow] = []
      for id in wanted {
        if let row = try view.message(id, now: time, me: viewer), !row.isDeleted {
          rows.append(row)
        }
      }
      return rows
    }
    return rows.sorted { $0.position < $1.position }
  }

  private func isNews(_ event: Event) -> Bool {
    event.group == open && SyncScopes.contentKinds.contains(event.kind)
      && !news.shown.contains(event.id) && (news.floor.map { event.position > $0 } ?? true)
  }
}
