import Nostr

/// Reactions: tallies for a message, one's own, and the images of custom emoji.
extension Reading {
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
      guard row.kind == .reaction, !blocked.contains(row.pubkey), row.isBriefReaction else {
        continue
      }
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

  static func emoji(_ event: Event) -> (text: Text, image: Text?) {
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

  /// The reactions of one author to an event that still count, newest first.
  func reactions(to id: EventID, by author: PublicKey, now: Timestamp) throws(StoreError)
    -> [OwnReaction]
  {
    // Whichever list is shorter: those of the author, or those to the event.
    let own = IndexKey.author(author, .reaction)
    let all = IndexKey.reference(id.bytes.prefix, .reaction)
    let key = try store.count(own) < store.count(all) ? own : all
    var result: [OwnReaction] = []
    var stream = EntryStream(key, order: .newestFirst)
    while let candidate = try stream.next(self) {
      let row = try self.row(candidate.entry)
      guard row.kind == .reaction, row.pubkey == author, row.event.lastReference == id,
        try isVisible(row, now: now)
      else { continue }
      result.append(OwnReaction(id: row.id, emoji: Self.emoji(row.event).text))
    }
    return result
  }

  /// The image of a code in the emoji sets of the community (NIP-30, NIP-51): of the newest set
  /// that has it, a tie going to the lowest id.
  func emojiImage(_ code: Text, now: Timestamp) throws(StoreError) -> Text? {
    var left = ViewLimits.emojiSetsReadMax
    var stream = EntryStream(.kind(.emojiSet), order: .newestFirst)
    while left > 0, let candidate = try stream.next(self) {
      left -= 1
      let row = try self.row(candidate.entry)
      guard !blocked.contains(row.pubkey) else { continue }
      let tags = row.tags
      let image = tags.first { $0.count > 2 && $0.name == "emoji" && $0[1] == code }?[2]
      if let image, try isVisible(row, now: now) { return image.owned() }
    }
    return nil
  }
}

extension BodyRow {
  /// A reaction is an emoji or a `:code:`; what is longer is stored and not tallied, so that a
  /// flood of long ones costs a look at their heads.
  var isBriefReaction: Bool { contentCount <= ViewLimits.reactionBytesMax }
}
