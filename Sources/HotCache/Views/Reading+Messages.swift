import Nostr
import SyncCore

/// Timelines, threads, edits and reactions.
extension Reading {
  /// A page of a group's timeline: top-level messages and broadcast replies, deleted ones marked.
  func timeline(_ group: Text, _ cursor: PageCursor, limit: Int, now: Timestamp, me: PublicKey?)
    throws(StoreError) -> [MessageRow]
  {
    let key = IndexKey.tag(UInt8(ascii: "h"), group, sub: GroupClass.timeline)
    return try page([key], cursor, limit: limit, now: now, me: me) { row in
      row.tags.firstValue("h") == group
    }
  }

  /// The replies of a thread. The root itself is not among them.
  ///
  /// - Parameter group: The root's group; nil takes it from the root, if that is known.
  func thread(
    _ root: EventID, group: Text?, _ cursor: PageCursor, limit: Int, now: Timestamp,
    me: PublicKey?
  ) throws(StoreError) -> [MessageRow] {
    var known = group
    if known == nil { known = try row(root)?.tags.firstValue("h") }
    return try page(
      [.thread(root: root, group: known)], cursor, limit: limit, now: now, me: me
    ) { row in
      Self.isInThread(row, root: root, group: known)
    }
  }

  private static func isInThread(_ row: BodyRow, root: EventID, group: Text?) -> Bool {
    let event = row.event
    return event.place.root == root && event.group == group
  }

  private func page(
    _ keys: [IndexKey], _ cursor: PageCursor, limit: Int, now: Timestamp, me: PublicKey?,
    where isWanted: (BodyRow) -> Bool
  ) throws(StoreError) -> [MessageRow] {
    var merge: EntryMerge
    switch cursor {
    case .newest: merge = EntryMerge(keys, order: .falling)
    case .before(let position):
      merge = EntryMerge(keys, order: .falling, until: position.createdAt)
    case .after(let position):
      merge = EntryMerge(keys, order: .rising, since: position.createdAt)
    }
    var result: [MessageRow] = []
    while result.count < limit, let candidate = try merge.next(self) {
      let row = try row(candidate.entry)
      switch cursor {
      case .newest: break
      case .before(let position) where row.position >= position: continue
      case .after(let position) where row.position <= position: continue
      case .before, .after: break
      }
      guard isWanted(row), let message = try message(row, now: now, me: me) else { continue }
      result.append(message)
    }
    if case .after = cursor { return result }
    return result.reversed()
  }

  /// A message as it reads now; nil for what is not a message, was discarded, or has expired.
  func message(_ row: BodyRow, now: Timestamp, me: PublicKey?) throws(StoreError) -> MessageRow? {
    guard MessageKinds.rows.contains(row.kind), !isExpired(row, now: now),
      try !isHidden(row.id)
    else { return nil }
    let event = row.event
    let place = event.place
    // One look finds whether anything at all refers to the message.
    let prefix = row.id.bytes.prefix
    let references = try store.keys(
      from: .reference(prefix, .deletion), through: .reference(prefix, .thread, .max), limit: 64)
    func mayHave(_ reference: Reference) -> Bool {
      references.count == 64 || references.contains { $0.sub >> 28 == reference.rawValue }
    }
    var isDeleted = false
    if mayHave(.deletion) || mayHave(.moderation) { isDeleted = try self.isDeleted(row) }
    let edit = !isDeleted && mayHave(.edit) ? try self.edit(of: row, now: now) : nil
    let reactions =
      !isDeleted && mayHave(.reaction) ? try self.reactions(to: row.id, now: now, me: me) : []
    let replies = mayHave(.thread) ? try countReplies(row.id, event.group, now) : (0, nil)
    let text = isDeleted ? .empty : edit?.content ?? row.content
    return MessageRow(
      sequence: LogSequence(Int64(row.sequence)), id: row.id, group: event.group?.owned(),
      author: row.pubkey, createdAt: row.createdAt, kind: row.kind, text: text.owned(),
      title: isDeleted
        ? nil
        : (event.tags.firstValue("title") ?? event.tags.firstValue("subject"))?
          .owned(),
      isDeleted: isDeleted, isEdited: edit != nil, replyTo: place.parent, root: place.root,
      isBroadcast: place.isBroadcast, replies: replies.0, lastReplyAt: replies.1,
      reactions: reactions, redatedFrom: try redated(from: row.id),
      isFuture: row.createdAt > now + ViewLimits.clockSkew)
  }

  /// The edit that counts: the author's newest, a tie going to the lowest id, unless its author
  /// has deleted it. An edit is no message, so edits of edits are never asked for.
  func edit(of row: BodyRow, now: Timestamp) throws(StoreError) -> BodyRow? {
    let key = IndexKey.reference(row.id.bytes.prefix, .edit, row.pubkey.bytes.prefix)
    var stream = EntryStream(key, order: .newestFirst)
    while let candidate = try stream.next(self) {
      let edit = try self.row(candidate.entry)
      guard edit.kind == .edit, edit.pubkey == row.pubkey, edit.event.lastReference == row.id,
        try isVisible(edit, now: now)
      else { continue }
      return edit
    }
    return nil
  }

  /// Who reacted how: one vote a person and emoji, the most frequent first, then by bytes.
  func reactions(to id: EventID, now: Timestamp, me: PublicKey?) throws(StoreError)
    -> [ReactionRow]
  {
    struct Tally {
      var people: Set<PublicKey> = []
      var image: (id: EventID, url: Text)?
    }
    var tallies: [Text: Tally] = [:]
    var left = ViewLimits.reactionsReadMax
    var stream = EntryStream(.reference(id.bytes.prefix, .reaction), order: .falling)
    while left > 0, let candidate = try stream.next(self) {
      left -= 1
      let row = try self.row(candidate.entry)
      guard row.kind == .reaction else { continue }
      let event = row.event
      guard event.lastReference == id, try isVisible(row, now: now) else { continue }
      let emoji = Self.emoji(event)
      tallies[emoji.text, default: Tally()].people.insert(row.pubkey)
      if let url = emoji.image {
        // Two images for one code: the one of the lowest id, in whatever order they came.
        let known = tallies[emoji.text]?.image
        if known.map({ row.id < $0.id }) ?? true { tallies[emoji.text]?.image = (row.id, url) }
      }
    }
    let rows = tallies.map { emoji, tally in
      ReactionRow(
        emoji: emoji, image: tally.image?.url, count: tally.people.count,
        isMine: me.map(tally.people.contains) ?? false)
    }
    let sorted = rows.sorted { left, right in
      left.count != right.count ? left.count > right.count : left.emoji < right.emoji
    }
    return Array(sorted.prefix(ViewLimits.emojiMax))
  }

  private static func emoji(_ event: Event) -> (text: Text, image: Text?) {
    let content = event.content
    if content.isEmpty || content == "+" { return ("❤️", nil) }
    var image: Text?
    if content.count > 2, content.utf8.first == UInt8(ascii: ":"),
      content.utf8.last == UInt8(ascii: ":")
    {
      let code = Text(utf8: content.utf8.dropFirst().dropLast())
      for tag in event.tags where tag.count > 2 && tag.name == "emoji" && tag[1] == code {
        image = tag[2].owned()
        break
      }
    }
    return (content.owned(), image)
  }

  private func countReplies(_ root: EventID, _ group: Text?, _ now: Timestamp) throws(StoreError)
    -> (Int, Timestamp?)
  {
    var stream = EntryStream(.thread(root: root, group: group), order: .falling)
    var count = 0
    var newest: Timestamp?
    while count < ViewLimits.repliesMax, let candidate = try stream.next(self) {
      let row = try self.row(candidate.entry)
      guard Self.isInThread(row, root: root, group: group), try isVisible(row, now: now) else {
        continue
      }
      count += 1
      // Dates from the future say nothing about when the thread was last alive.
      if newest == nil, row.createdAt <= now + ViewLimits.clockSkew { newest = row.createdAt }
    }
    return (count, newest)
  }
}
