package import Nostr

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
    guard folded.event.isMessage,
      let root = folded.event.place.root
    else { return }
    batch.add(.thread(root: root, group: folded.event.group), folded.entry)
  }
}

extension Event {
  /// Whether it is a row of a timeline or a thread.
  ///
  /// Kind 40002 is a message where Buzz runs; older clients gave it to what lies over a message: an
  /// `e` without a marker, and an object as content.
  package var isMessage: Bool {
    guard MessageKinds.rows.contains(kind) else { return false }
    guard kind == .messageV2, content.utf8.first == UInt8(ascii: "{"),
      tags.contains(where: { $0.letter == UInt8(ascii: "e") && $0.count == 2 })
    else { return true }
    // What cannot be read as an object is text.
    return (try? JSONValue.parse(content.utf8))?.members == nil
  }

  /// Whether the message is shown in a thread and not in the timeline. A comment always is, even
  /// where it comments on something that is no event.
  var isThreadOnly: Bool { kind == .comment || place.isThreadOnly }

  /// The place in a thread; a relay's notice has none.
  var place: ThreadPosition { kind == .systemMessage ? .none : threadPosition }

  /// What an edit or a reaction is about: its last `e` tag.
  var lastReference: EventID? {
    var last: Tag?
    for tag in tags where tag.letter == UInt8(ascii: "e") && tag.count > 1 { last = tag }
    return last?.bytes32(1).map(EventID.init)
  }
}
