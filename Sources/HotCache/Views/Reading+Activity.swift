import Nostr

/// What concerns one person: who named them, answered them, or reacted to what they wrote.
///
/// Nothing is kept for it. An answer and a reaction name their message in an `e` tag, so they stand
/// in the index under it: the viewer's own newest messages are listed, and what stands under each
/// of them is merged with what names the viewer in a `p` tag.
extension Reading {
  func activity(of me: PublicKey, limit: Int, now: Timestamp) throws(StoreError) -> [ActivityRow] {
    let hash = me.bytes.prefix
    var keys = try store.keys(
      from: IndexKey(space: UInt8(ascii: "p"), hash: hash),
      through: IndexKey(space: UInt8(ascii: "p"), hash: hash, sub: .max), limit: .max)
    keys += try keysUnderOwn(me)
    // Who dates ahead must not stand above everybody.
    let horizon = now + ViewLimits.clockSkew
    var merge = EntryMerge(keys, order: .falling, until: horizon)
    var left = ViewLimits.activityReadMax
    var departed: [Text: Bool] = [:]
    var result: [ActivityRow] = []
    while result.count < limit, left > 0, let candidate = try merge.next(self) {
      left -= 1
      let row = try row(candidate.entry)
      guard row.pubkey != me, row.createdAt <= horizon, !blocked.contains(row.pubkey),
        let activity = try activity(row, me: me, now: now), try isVisible(row, now: now)
      else { continue }
      if let group = activity.group {
        if departed[group] == nil { departed[group] = try hasLeft(group, me, now: now) }
        if departed[group] == true { continue }
      }
      result.append(activity)
    }
    return result
  }

  /// The keys under which answers and reactions to the viewer's newest messages stand.
  private func keysUnderOwn(_ me: PublicKey) throws(StoreError) -> [IndexKey] {
    let kinds = MessageKinds.rows.sorted { $0.number < $1.number }
    var own = EntryMerge(kinds.map { .author(me, $0) }, order: .falling)
    var left = ViewLimits.activityOwnMax
    var keys: [IndexKey] = []
    while left > 0, let candidate = try own.next(self) {
      left -= 1
      let target = candidate.entry.prefix
      let letter = UInt8(ascii: "e")
      keys += try store.keys(
        from: IndexKey(space: letter, hash: target),
        through: IndexKey(space: letter, hash: target, sub: .max), limit: .max)
      let reactions = IndexKey.reference(target, .reaction)
      if try store.count(reactions) > 0 { keys.append(reactions) }
    }
    return keys
  }

  private func activity(_ row: BodyRow, me: PublicKey, now: Timestamp) throws(StoreError)
    -> ActivityRow?
  {
    let event = row.event
    func made(_ reason: ActivityRow.Reason, _ text: Text, _ target: EventID) -> ActivityRow {
      ActivityRow(
        reason: reason, id: row.id, author: row.pubkey, createdAt: row.createdAt,
        group: event.group?.owned(), text: text.owned(), target: target)
    }
    if row.kind == .reaction {
      guard row.isBriefReaction, let target = event.lastReference, try isMessage(target, of: me)
      else { return nil }
      return made(.reaction, Self.emoji(event).text, target)
    }
    guard event.isMessage, row.kind != .systemMessage else { return nil }
    let text = try edit(of: row, now: now)?.content ?? row.content
    // An answer that also names the viewer is an answer.
    if let parent = event.place.parent, try isMessage(parent, of: me) {
      return made(.reply, text, parent)
    }
    let isNamed = event.tags.contains {
      $0.letter == UInt8(ascii: "p") && $0.bytes32(1) == me.bytes
    }
    return isNamed ? made(.mention, text, row.id) : nil
  }

  private func isMessage(_ id: EventID, of author: PublicKey) throws(StoreError) -> Bool {
    guard let target = try row(id) else { return false }
    return target.pubkey == author && MessageKinds.rows.contains(target.kind)
  }

  private func hasLeft(_ group: Text, _ me: PublicKey, now: Timestamp) throws(StoreError) -> Bool {
    try groups(named: group, now: now, me: me).first?.isMember == false
  }
}
