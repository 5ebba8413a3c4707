import EventLog
import Nostr
import SyncCore
import Testing

@testable import skep_cli

/// What counts as seen by somebody who sits before an open channel.
@Suite struct ChannelNewsTests {
  private func entry(_ number: Int64) -> LogEntry {
    let event = Event(
      id: EventID(.zero), pubkey: PublicKey(.zero), createdAt: Timestamp(number), kind: .message,
      tags: Tags([["h", "general"]]), content: "", sig: Signature(first: .zero, second: .zero))
    return LogEntry(
      sequence: LogSequence(number),
      body: .event(LoggedEvent(event: event, idForm: .standard, receivedAt: 0, source: nil)))
  }

  @Test func `what the views do not show yet is seen when they do`() {
    var news = ChannelNews(after: LogSequence(1))
    let entries = (2...5).map { entry($0) }
    #expect(news.take(entries, through: LogSequence(3)).map(\.createdAt) == [2, 3])
    #expect(news.seen == LogSequence(3))
    #expect(news.take(entries, through: LogSequence(3)).isEmpty)
    #expect(news.take(entries, through: LogSequence(9)).map(\.createdAt) == [4, 5])
    #expect(news.seen == LogSequence(5))
  }
}
