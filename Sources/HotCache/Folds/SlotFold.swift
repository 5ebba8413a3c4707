import Nostr

/// Folds an addressable event to its slot (kind, author, first `d`). All versions stand there; the
/// newest, a tie going to the lowest id, is current, and the others never come back.
///
/// The slot of a replaceable event is its author's key for that kind, so it has no row here.
enum SlotFold {
  static func fold(_ folded: FoldedEvent, into batch: inout RowBatch) {
    let event = folded.event
    guard event.kind.storage == .addressable else { return }
    batch.add(
      .slot(kind: event.kind, author: event.pubkey, identifier: event.identifier), folded.entry)
  }
}
