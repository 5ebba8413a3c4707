import Nostr
import SyncCore

/// Timelines, threads and edits.
extension Reading {
  /// A page of a group's timeline: top-level messages, broadcast replies, and replies whose thread
  /// has no beginning here, as nothing else would lead to them; deleted ones marked.
  func timeline(_ group: Text, _ cursor: PageCursor, limit: Int, now: Timestamp, me: PublicKey?)
    throws(StoreError) -> [MessageRow]
  {
    let letter = UInt8(ascii: "h")
    let own = IndexKey.tag(letter, group, sub: GroupClass.timeline)
    let inThreads = IndexKey.tag(letter, group, sub: GroupClass.threadOnly)
    var left = ViewLimits.strayReadMax
    return try page([own, inThreads], cursor, limit: limit, now: now, me: me) {
      row throws(StoreError) in
      guard row.tags.firstValue("h") == group else { return .skip }
      let event = row.event
      guard event.isThreadOnly else { return .take }
      left -= 1
      if left < 0 { return .goOn([own]) }
      guard let root = event.place.root else { return .skip }
      return try isShown(root: root, in: group, now: now) ? .skip : .take
    }
  }

  /// Whether the beginning of a thread is a message of the group that pages show, so that it leads to
  /// the thread. One that was deleted leaves a mark in its place, which does.
  private func isShown(
    root: EventID, in group: Text?, now: Timestamp
  ) throws(StoreError) -> Bool {
    let start = ThreadStart(root: root, group: group?.owned(), now: now)
    if let known = memo.roots[start] { return known }
    var isShown = false
    if let row = try row(root), row.event.group == group {
      isShown = try mayShow(row, now: now) && row.event.isMessage
    }
    memo.roots[start] = isShown
    return isShown
  }

  /// Whether nothing keeps the row off every page: its kind, its author, its time, or its having
  /// been given up.
  private func mayShow(_ row: BodyRow, now: Timestamp) throws(StoreError) -> Bool {
    guard MessageKinds.rows.contains(row.kind), !blocked.contains(row.pubkey),
      !isExpired(row, now: now)
    else { return false }
    return try !isHidden(row.id)
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
      Self.isInThread(row, root: root, group: known) ? .take : .skip
    }
  }

  private static func isInThread(_ row: BodyRow, root: EventID, group: Text?) -> Bool {
    let event = row.event
    return event.place.root == root && event.group == group
  }

  private func page(
    _ keys: [IndexKey], _ cursor: PageCursor, limit: Int, now: Timestamp, me: PublicKey?,
    choose: (BodyRow) throws(StoreError) -> Choice
  ) throws(StoreError) -> [MessageRow] {
    if case .around(let position) = cursor {
      return try pageAround(position, keys, limit: limit, now: now, me: me, choose: choose)
    }
    var place = cursor
    var merge = Self.merge(keys, place)
    var result: [MessageRow] = []
    while result.count < limit, let candidate = try merge.next(self) {
      let row = try row(candidate.entry)
      switch place {
      case .newest: break
      case .before(let position) where row.position >= position: continue
      case .after(let position) where row.position <= position: continue
      case .before, .after, .around: break
      }
      switch try choose(row) {
      case .take:
        if let message = try message(row, now: now, me: me) { result.append(message) }
      case .skip: continue
      case .goOn(let keys):
        if case .after = place {
          place = .after(row.position)
        } else {
          place = .before(row.position)
        }
        merge = Self.merge(keys, place)
      }
    }
    if case .after = cursor { return result }
    return result.reversed()
  }

  private func pageAround(
    _ position: EventPosition, _ keys: [IndexKey], limit: Int, now: Timestamp, me: PublicKey?,
    choose: (BodyRow) throws(StoreError) -> Choice
  ) throws(StoreError) -> [MessageRow] {
    var middle: [MessageRow] = []
    if limit > 0, let row = try row(position.id), case .take = try choose(row),
      let message = try message(row, now: now, me: me)
    {
      middle = [message]
    }
    let older = try page(
      keys, .before(position), limit: (limit - middle.count) / 2, now: now, me: me,
      choose: choose)
    let newer = try page(
      keys, .after(position), limit: limit - middle.count - older.count, now: now, me: me,
      choose: choose)
    return older + middle + newer
  }

  /// What to do with a row that a page comes to.
  private enum Choice {
    case take
    case skip
    /// Leave it out, and go on behind it with these keys alone.
    case goOn([IndexKey])
  }

  private static func merge(_ keys: [IndexKey], _ cursor: PageCursor) -> EntryMerge {
    switch cursor {
    case .newest, .around: EntryMerge(keys, order: .falling)
    case .before(let position): EntryMerge(keys, order: .falling, until: position.createdAt)
    case .after(let position): EntryMerge(keys, order: .rising, since: position.createdAt)
    }
  }

  /// A message as it reads now; nil for what is not a message, was discarded, has expired, or is
  /// by somebody who is blocked.
  func message(_ row: BodyRow, now: Timestamp, me: PublicKey?) throws(StoreError) -> MessageRow? {
    guard try mayShow(row, now: now) else { return nil }
    let event = row.event
    guard event.isMessage else { return nil }
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
    var isStray = false
    if event.isThreadOnly, let root = place.root {
      isStray = try !isShown(root: root, in: event.group, now: now)
    }
    return MessageRow(
      sequence: LogSequence(Int64(row.sequence)), id: row.id, group: event.group?.owned(),
      author: row.pubkey, createdAt: row.createdAt, kind: row.kind, text: text.owned(),
      title: isDeleted
        ? nil
        : (event.tags.firstValue("title") ?? event.tags.firstValue("subject"))?
          .owned(),
      isDeleted: isDeleted, isEdited: edit != nil, replyTo: place.parent, root: place.root,
      isBroadcast: place.isBroadcast, isStray: isStray,
      isPinned: try isPinned(row.id, in: event.group),
      replies: replies.0, lastReplyAt: replies.1,
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

  private func countReplies(_ root: EventID, _ group: Text?, _ now: Timestamp) throws(StoreError)
    -> (Int, Timestamp?)
  {
    var stream = EntryStream(.thread(root: root, group: group), order: .falling)
    var count = 0
    var newest: Timestamp?
    while count < ViewLimits.repliesMax, let candidate = try stream.next(self) {
      let row = try self.row(candidate.entry)
      guard !blocked.contains(row.pubkey), Self.isInThread(row, root: root, group: group),
        try isVisible(row, now: now)
      else { continue }
      count += 1
      // Dates from the future say nothing about when the thread was last alive.
      if newest == nil, row.createdAt <= now + ViewLimits.clockSkew { newest = row.createdAt }
    }
    return (count, newest)
  }
}
