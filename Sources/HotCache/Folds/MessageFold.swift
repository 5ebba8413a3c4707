import Nostr

/// The kinds that are rows of a timeline or a thread.
enum MessageKinds {
  static let rows: Set<EventKind> = [
    .message, .threadRoot, .comment, .legacyMessage, .messageV2, .diff, .systemMessage,
    .forumPost, .forumComment,
  ]
}

/// Folds a message to its place in a thread.
///
/// The key joins root and group: a reply that claims another group is in no thread of this one,
/// whatever root it names.
enum MessageFold {
  static func fold(_ folded: FoldedEvent, into batch: inout RowBatch) {
    guard MessageKinds.rows.contains(folded.event.kind),
      let root = folded.event.threadPlace.root
    else { return }
    batch.add(.thread(root: root, group: folded.event.group), folded.entry)
  }
}

/// Where a message stands among others.
struct ThreadPlace: Hashable, Sendable {
  var root: EventID?
  var parent: EventID?
  /// A reply that is shown in the channel too.
  var isBroadcast = false
  /// A NIP-22 comment: never a row of the timeline, even without a root that we can follow.
  var isComment = false

  var isThreadOnly: Bool { isComment || (parent != nil && !isBroadcast) }
}

extension Event {
  /// NIP-10 with markers only, and NIP-22 for comments. Unmarked `e` tags never thread, and a lone
  /// `root` marker does not make a reply.
  var threadPlace: ThreadPlace {
    var place = ThreadPlace()
    switch kind {
    case .comment:
      place.isComment = true
      for tag in tags where tag.count > 1 {
        if place.root == nil, tag.name == "E" { place.root = tag.bytes32(1).map(EventID.init) }
        if place.parent == nil, tag.name == "e" { place.parent = tag.bytes32(1).map(EventID.init) }
      }
    case .systemMessage: break
    default:
      for tag in tags {
        if tag.name == "broadcast", tag.value(1) == "1" { place.isBroadcast = true }
        guard tag.count >= 4, tag.letter == UInt8(ascii: "e"), let id = tag.bytes32(1) else {
          continue
        }
        if tag[3] == "reply" { place.parent = EventID(id) }
        if tag[3] == "root", place.root == nil { place.root = EventID(id) }
      }
      if place.parent == nil { place.root = nil } else { place.root = place.root ?? place.parent }
    }
    return place
  }

  /// What an edit or a reaction is about: its last `e` tag.
  var lastReference: EventID? {
    var last: Tag?
    for tag in tags where tag.letter == UInt8(ascii: "e") && tag.count > 1 { last = tag }
    return last?.bytes32(1).map(EventID.init)
  }
}
