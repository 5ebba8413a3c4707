import EventLog
import Nostr

/// Folds facts: what the log knows beside events. Where a later fact overrules an earlier one both
/// have rows, and the key's order puts the later one first.
enum FactFold {
  static func fold(_ fact: Fact, sequence: UInt64, into batch: inout RowBatch) {
    switch fact {
    case .served(let id, by: let relay):
      batch.add(.served(id, by: relay), Array(relay.description.utf8))
    case .relaySelf(let relay, let key):
      let value = (key?.bytes.array ?? []) + Array(relay.description.utf8)
      batch.add(.relaySelf(relay, at: sequence), [key == nil ? 0 : 1] + value)
    case .discarded(let id):
      batch.add(.hidden(id, at: sequence), [1])
    case .restored(let id):
      batch.add(.hidden(id, at: sequence), [0])
    case .redated(let old, let new):
      batch.add(.redated(old: old, new: new), [])
      batch.add(.redatedFrom(new: new, old: old), [])
      batch.add(.hidden(old, at: sequence), [1])
    }
  }
}
