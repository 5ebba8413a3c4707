import Nostr

/// Folds an event to the index rows from which any NIP-01 filter is answered, and to the rows that
/// lead from an event to what refers to it.
///
/// An `e` tag that means something to us (deletion, edit, reaction) is kept under the target as a
/// reference of its class, and any other under the letter; a query for `#e` asks both. Likewise
/// an `h` tag carries whether the event is a row of the group's timeline.
enum QueryFold {
  static func fold(_ folded: FoldedEvent, into batch: inout RowBatch) {
    let event = folded.event
    batch.add(.kind(event.kind), folded.entry)
    batch.add(.author(event.pubkey, event.kind), folded.entry)
    let roles = TagRoles(event)
    event.tags.withPackedBytes { raw in
      var scan = TagScan(raw)
      var groupsSeen = 0
      var referencesSeen = 0
      while let tag = scan.next() {
        guard let letter = tag.letter, let value = tag.value else { continue }
        switch letter {
        case UInt8(ascii: "h"):
          let sub = groupsSeen == 0 ? roles.groupClass : GroupClass.other
          groupsSeen += 1
          batch.add(IndexKey(space: letter, hash: tag.hash(value), sub: sub), folded.entry)
        case UInt8(ascii: "e"):
          referencesSeen += 1
          let isLast = referencesSeen == roles.referenceCount
          batch.add(referenceKey(value, tag, isLast: isLast, folded), folded.entry)
        case UInt8(ascii: "a") where event.kind == .deletion:
          let sub = AddressClass.deletion(by: folded.authorBits)
          batch.add(IndexKey(space: letter, hash: tag.hash(value), sub: sub), folded.entry)
        default:
          batch.add(IndexKey(space: letter, hash: tag.hash(value)), folded.entry)
        }
      }
    }
  }

  private static func referenceKey(
    _ value: UnsafeRawBufferPointer, _ tag: TagScan.Item, isLast: Bool, _ folded: FoldedEvent
  ) -> IndexKey {
    let hash = tag.hash(value)
    guard value.count == 64, Hex.decode64(value) != nil else {
      return IndexKey(space: UInt8(ascii: "e"), hash: hash)
    }
    switch folded.event.kind {
    case .deletion: return .reference(hash, .deletion, folded.authorBits)
    case .groupDeleteEvent: return .reference(hash, .moderation)
    case .edit where isLast: return .reference(hash, .edit, folded.authorBits)
    case .reaction where isLast: return .reference(hash, .reaction)
    default: return IndexKey(space: UInt8(ascii: "e"), hash: hash)
    }
  }
}

/// `sub` in the space of `a`.
enum AddressClass {
  static func deletion(by authorBits: UInt64) -> UInt32 {
    1 << 28 | UInt32(truncatingIfNeeded: authorBits & UInt64(Reference.maskOfNarrowing))
  }
}

/// What must be known of an event's tags as a whole before they are walked.
private struct TagRoles {
  var groupClass = GroupClass.other
  var referenceCount = 0

  init(_ event: Event) {
    if event.kind == .edit || event.kind == .reaction {
      for tag in event.tags where tag.letter == UInt8(ascii: "e") && tag.count > 1 {
        referenceCount += 1
      }
    }
    if event.isMessage {
      groupClass = event.isThreadOnly ? GroupClass.threadOnly : GroupClass.timeline
    }
  }
}

/// Walks packed tags without making texts.
struct TagScan {
  struct Item {
    /// The letter of a tag whose name is one.
    let letter: UInt8?
    /// Element 1.
    let value: UnsafeRawBufferPointer?

    func hash(_ value: UnsafeRawBufferPointer) -> UInt64 {
      if value.count == 64, let binary = Hex.decode64(value) { return binary.prefix }
      return StableHash.value(value)
    }
  }

  private let bytes: UnsafeRawBufferPointer
  private var offset = 0

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  mutating func next() -> Item? {
    guard offset < bytes.count else { return nil }
    let elements = Varint.read(bytes, at: &offset)
    var letter: UInt8?
    var value: UnsafeRawBufferPointer?
    for index in 0..<elements {
      let length = Varint.read(bytes, at: &offset)
      if index == 0, length == 1, isLetter(bytes[offset]) { letter = bytes[offset] }
      if index == 1 { value = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + length]) }
      offset += length
    }
    return Item(letter: letter, value: value)
  }

  private func isLetter(_ byte: UInt8) -> Bool {
    (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
  }
}
