import EventLog
import HotCache
import Nostr
import SearchStore
import SyncCore
import SyncEngine

/// What one does to messages that are there: reactions, edits, deletions. Each is an event of one's
/// own that goes through the outbox like any other; who may do it is known beforehand only in part,
/// and the relay's refusal is shown as it is.
extension ChatSession {
  /// What relays take at most as a reaction.
  private static let reactionMax = 64

  func react(to reference: MessageReference, _ emoji: String) async throws {
    let target = try await target(reference)
    guard emoji.unicodeScalars.count <= Self.reactionMax else {
      throw ChatFailure("text", "a reaction has at most \(Self.reactionMax) characters")
    }
    let content = try composed(emoji)
    if try await ownReactions(to: target).contains(where: { $0.emoji == content }) {
      throw ChatFailure(
        "already",
        "you have reacted with \(SafeText.reaction(content)) already; /unreact takes it back")
    }
    var tags: [[Text]] = [["e", Text(target.id.hex)]]
    tags.append(["p", Text(target.author.hex)])
    tags.append(["k", Text(String(target.kind.number))])
    if let group = target.group { tags.append(["h", group]) }
    if let code = content.emojiCode {
      let time = now
      let image = try await read { view throws(CacheError) in
        try view.emojiImage(code, now: time)
      }
      guard let image else {
        throw ChatFailure(
          "unknown-emoji", "no emoji set here has \(SafeText.line(content, cells: 40))")
      }
      tags.append(["emoji", code, image])
    }
    try await write(
      EventDraft(
        createdAt: try await nextDate(), kind: .reaction, tags: Tags(tags), content: content))
    try await show(target.id)
  }

  func unreact(to reference: MessageReference, _ emoji: String?) async throws {
    let target = try await target(reference)
    var own = try await ownReactions(to: target)
    if let emoji { own = own.filter { $0.emoji == Text(emoji) || (emoji == "+" && $0.isHeart) } }
    guard let first = own.first else {
      throw ChatFailure("no-reaction", "there is no such reaction of yours")
    }
    guard own.allSatisfy({ $0.emoji == first.emoji }) else {
      throw ChatFailure(
        "ambiguous-reaction",
        "say which: " + own.map { SafeText.reaction($0.emoji) }.joined(separator: " "))
    }
    // One deletion a reaction: some relays take no more than one target.
    for reaction in own {
      if try await takeBack(reaction.id) { continue }
      try await write(try await deletion(of: reaction.id, kind: .reaction, in: target.group))
    }
    try await show(target.id)
  }

  func edit(_ reference: MessageReference, _ text: String) async throws {
    let target = try await target(reference)
    guard target.author == me else {
      throw ChatFailure("not-yours", "only who wrote a message can change its text")
    }
    try await write(
      EventDraft(
        createdAt: try await nextDate(), kind: .edit,
        tags: Tags([["h", try group(of: target)], ["e", Text(target.id.hex)]]),
        content: try composed(text)))
    try await show(target.id)
  }

  /// One's own message by a deletion (NIP-09), another's by the group's command (NIP-29).
  ///
  /// - Returns: Whether there was nothing to delete, as no relay was ever handed it.
  func delete(_ reference: MessageReference) async throws -> Bool {
    let target = try await target(reference)
    if target.author == me {
      if try await takeBack(target.id) {
        try output.say("it had not been sent yet: it is given up, and nobody will see it")
        return true
      }
      try await write(
        try await deletion(of: target.id, kind: target.kind, in: target.group))
    } else {
      let group = try group(of: target)
      guard try await mayModerate(group) else {
        throw ChatFailure("not-yours", "only who wrote it, and who moderates here, can delete it")
      }
      try await write(
        EventDraft(
          createdAt: try await nextDate(), kind: .groupDeleteEvent,
          tags: Tags([["h", group], ["e", Text(target.id.hex)]]), content: .empty))
    }
    try await show(target.id)
    return false
  }

  /// Ends what no relay was ever handed, so that it is never said; a deletion would only follow it.
  private func takeBack(_ id: EventID) async throws -> Bool {
    guard let message = try store.reader.message(eventID: id),
      try await engine.takeBack(message.id)
    else { return false }
    await store.caughtUp()
    return true
  }

  private func deletion(
    of id: EventID, kind: EventKind, in group: Text?
  ) async throws -> EventDraft {
    var tags: [[Text]] = [["e", Text(id.hex)], ["k", Text(String(kind.number))]]
    if let group { tags.insert(["h", group], at: 0) }
    return EventDraft(
      createdAt: try await nextDate(), kind: .deletion, tags: Tags(tags), content: .empty)
  }

  /// A message that can still be acted on.
  private func target(_ reference: MessageReference) async throws -> MessageRow {
    let id = try event(reference)
    let (time, viewer) = (now, me)
    let row = try await read { view throws(CacheError) in
      try view.message(id, now: time, me: viewer)
    }
    guard let row else {
      throw ChatFailure("unknown-message", "that message is not held, or its author is blocked")
    }
    guard !row.isDeleted else { throw ChatFailure("deleted", "that message was deleted") }
    return row
  }

  private func group(of target: MessageRow) throws -> Text {
    guard let group = target.group else {
      throw ChatFailure("no-channel", "that message belongs to no channel")
    }
    return group
  }

  private func ownReactions(to target: MessageRow) async throws -> [OwnReaction] {
    guard let me else { return [] }
    let time = now
    return try await read { view throws(CacheError) in
      try view.reactions(to: target.id, by: me, now: time)
    }
  }

  /// False only where a roster says that the viewer is something else; the relay decides.
  private func mayModerate(_ group: Text) async throws -> Bool {
    let time = now
    let members = try await read { view throws(CacheError) in
      try view.members(of: group, now: time)
    }
    return members.first { $0.pubkey == me }?.mayModerate ?? true
  }

  // MARK: Activity

  func listActivity() async throws {
    guard let me else {
      throw ChatFailure("no-key", "you have no key yet; “skep key new” makes one")
    }
    let time = now
    let (rows, names) = try await read { view throws(CacheError) in
      let rows = try view.activity(of: me, now: time)
      var names: [PublicKey: Text] = [:]
      for author in Set(rows.map(\.author)) {
        names[author] = try view.profile(author, now: time)?.shownName
      }
      return (rows, names)
    }
    if rows.isEmpty { try output.say("nobody has named you, answered you or reacted to you yet") }
    for row in rows {
      let number = numbers.number(of: row.target)
      try output.write(
        ChatRows.activity(row, number: number, name: names[row.author]),
        [output.rendering.activity(row, number: number, name: names[row.author])])
    }
  }

  // MARK: Search

  private static let foundMax = 50

  func search(_ words: String) async throws {
    let query = SearchQuery(Text(words), limit: Self.foundMax)
    guard query.isSearchable else {
      throw ChatFailure("syntax", "there is no letter or number to look for in this text")
    }
    let (time, viewer) = (now, me)
    let found = try await store.find(query, now: time)
    let rows = try await read { view throws(CacheError) in
      var rows: [MessageRow] = []
      for message in found {
        if let row = try view.message(message.id, now: time, me: viewer) { rows.append(row) }
      }
      return rows
    }
    if rows.isEmpty { try output.say("nothing is found") }
    for shown in try await shown(rows) {
      try output.write(ChatRows.message(shown), output.rendering.message(shown))
    }
  }

  // MARK: Blocking

  func block(_ word: String?) async throws {
    guard let word else { return try await listBlocks() }
    let key = try await person(word)
    guard key != me else { throw ChatFailure("yourself", "that is you") }
    try await store.setBlocked(key, true, at: now)
    try output.say("what they write is hidden here; nobody is told, and /unblock shows it again")
  }

  func unblock(_ word: String) async throws {
    let key = try await person(word)
    guard store.views.blocked.contains(key) else {
      throw ChatFailure("not-blocked", "that person is not blocked; /block lists who is")
    }
    try await store.setBlocked(key, false, at: now)
  }

  private func listBlocks() async throws {
    let blocks = try Blocks(store.reader).entries
    if blocks.isEmpty { try output.say("nobody is blocked") }
    for entry in blocks {
      let time = now
      let name = try await read { view throws(CacheError) in
        try view.profile(entry.key, now: time)?.shownName
      }
      try output.write(
        ChatRows.blocked(entry, name: name),
        ["  " + (SafeText.name(name ?? .empty) ?? "") + "  " + NameWords.npub(entry.key)])
    }
  }

  /// The one person whom a word means.
  private func person(_ word: String) async throws -> PublicKey {
    let keys = try await people(named: word)
    guard keys.count > 1 else { return keys[0] }
    throw ChatFailure(
      "ambiguous-person",
      "several people fit: " + keys.map { NameWords.npub($0) }.joined(separator: ", "))
  }
}

extension OwnReaction {
  /// What a `+` is shown as.
  fileprivate var isHeart: Bool { emoji == "❤️" }
}

extension Text {
  /// What stands between the colons of a `:code:`.
  fileprivate var emojiCode: Text? {
    guard count > 2, utf8.first == UInt8(ascii: ":"), utf8.last == UInt8(ascii: ":") else {
      return nil
    }
    return Text(utf8: utf8.dropFirst().dropLast())
  }
}
