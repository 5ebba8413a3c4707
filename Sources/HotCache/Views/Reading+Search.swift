import Nostr

/// Whether what full-text search has found is what a message says now.
///
/// The index of words keeps every text that a message ever had, its own and each edit's. A text
/// counts only while it is the one that is shown, so that an edit replaces and a deletion removes
/// in whatever order they came.
extension Reading {
  func found(at sequence: UInt64, now: Timestamp) throws(StoreError) -> FoundMessage? {
    guard let text = try store.body(at: sequence) else { return nil }
    guard text.kind == .edit else {
      guard try edit(of: text, now: now) == nil else { return nil }
      return try found(text, saying: text, now: now)
    }
    guard let id = text.event.lastReference, let message = try row(id),
      message.pubkey == text.pubkey, try edit(of: message, now: now)?.sequence == sequence
    else { return nil }
    return try found(message, saying: text, now: now)
  }

  private func found(
    _ message: BodyRow, saying text: BodyRow, now: Timestamp
  ) throws(StoreError) -> FoundMessage? {
    guard !blocked.contains(message.pubkey), message.event.isMessage,
      try isVisible(message, now: now)
    else { return nil }
    return FoundMessage(
      id: message.id, group: message.tags.firstValue("h")?.owned(), author: message.pubkey,
      createdAt: message.createdAt, kind: message.kind, text: text.content.owned())
  }
}
