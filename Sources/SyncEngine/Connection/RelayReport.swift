import EventLog
import Nostr
import NostrCrypto
import SyncCore

/// What a connection tells the engine, beside the answers to what it was asked.
enum RelayReport: Sendable {
  case state(ConnectionState)
  case information(RelayInformation?)
  case subscription(SubscriptionName, SubscriptionState)
  /// A feed is live again that was not for a while on a connection that held.
  case resumed(SubscriptionName)
  /// Events of live feeds, verified, and what was refused among them.
  case live([VerifiedEvent], [Reject])
  case verdict(EventID, accepted: Bool, Text)
  case unanswered(EventID, isHanded: Bool, Text)
  case notice(Text)
  /// What the relay sent that it should not have, since the last report.
  case faults([(reason: PeerFaults.Reason, count: Int)])
  /// What a later run should begin with.
  case lessons(RelayLessons)
}

/// Who a connection reports to. It is waited for, so that a slow store slows the socket.
protocol RelayReportSink: Sendable {
  func take(_ report: RelayReport, from relay: RelayURL) async
}

/// A page of stored events as it was received.
struct FetchedPage: Sendable {
  /// The verified events that were not handed on while the page was still coming.
  var events: [VerifiedEvent] = []
  var rejected: [Reject] = []
  var tally: PageTally
  var end: PageEnd
}

/// Takes the verified part of a page that grows beyond what is kept in memory.
typealias PageOverflow = @Sendable ([VerifiedEvent], [Reject]) async -> Void
