package import EventLog
import Nostr
import SyncCore

/// The fold from log entries to rows.
///
/// It decides what a row is about, and nothing else: whether an edit counts, whether a message was
/// deleted, which version is current is judged when a row is read, by the rules in `Views`. So the
/// rows are a set, and the set is the same for any order of the same events.
package enum EntryFold {
  /// Raised whenever rows of the same log would differ; a cache of another version is rebuilt.
  static let version: UInt32 = 3

  static func fold(_ entry: LogEntry, into batch: inout RowBatch) {
    let sequence = UInt64(clamping: entry.sequence.number)
    precondition(sequence <= IndexEntry.sequenceMax, "the log is longer than a cache can be")
    switch entry.body {
    case .event(let logged):
      let event = FoldedEvent(logged, sequence: sequence)
      batch.addBody(logged.event, sequence: sequence)
      QueryFold.fold(event, into: &batch)
      MessageFold.fold(event, into: &batch)
      SlotFold.fold(event, into: &batch)
      GroupFold.fold(event, into: &batch)
      ProfileFold.fold(event, into: &batch)
    case .fact(let fact):
      FactFold.fold(fact, sequence: sequence, into: &batch)
    }
  }

  /// A mark of what an entry is, kept with the watermark.
  package static func mark(_ entry: LogEntry) -> UInt64 {
    switch entry.body {
    case .event(let logged): logged.event.id.bytes.prefix
    case .fact(let fact): StableHash.value("\(fact)".utf8)
    }
  }
}

/// One event on its way through the folds.
struct FoldedEvent {
  let event: Event
  let entry: IndexEntry
  let source: RelayURL?
  /// The low bits of its author, for keys that are narrowed to one.
  let authorBits: UInt64

  init(_ logged: LoggedEvent, sequence: UInt64) {
    event = logged.event
    source = logged.source
    authorBits = event.pubkey.bytes.prefix
    entry = IndexEntry(
      time: IndexEntry.stamp(event.createdAt), prefix: event.id.bytes.prefix, sequence: sequence)
  }
}
