/// Where an event stands among others: what it answers, and the start of that conversation.
public struct ThreadPosition: Hashable, Sendable {
  /// The first message of the thread.
  public let root: EventID?
  /// The message that is answered; nil for what is no reply.
  public let parent: EventID?
  /// A reply that is shown in the channel as well as in its thread.
  public let isBroadcast: Bool

  public static let none = ThreadPosition(root: nil, parent: nil, isBroadcast: false)

  public init(root: EventID?, parent: EventID?, isBroadcast: Bool) {
    self.root = root
    self.parent = parent
    self.isBroadcast = isBroadcast
  }

  public var isReply: Bool { parent != nil }

  /// Shown in its thread and not in the channel.
  public var isThreadOnly: Bool { isReply && !isBroadcast }
}

extension Event {
  /// The position by NIP-10's markers, and for a comment by NIP-22's tags.
  ///
  /// An `e` tag without a marker never threads, and neither does a `root` without a `reply`:
  /// plain mentions look like that. An id that is not lowercase hex counts as absent.
  public var threadPosition: ThreadPosition {
    kind == .comment ? commentPosition : markedPosition
  }

  /// The position by NIP-10's markers alone, whatever the kind.
  package var markedPosition: ThreadPosition {
    var root: EventID?
    var parent: EventID?
    var isBroadcast = false
    for tag in tags {
      if tag.letter == UInt8(ascii: "e") {
        guard tag.count >= 4, let id = tag.bytes32(1).map(EventID.init) else { continue }
        let marker = tag[3]
        if marker == "reply" { parent = id }
        if marker == "root", root == nil { root = id }
      } else if tag.name == "broadcast", tag.value(1) == "1" {
        isBroadcast = true
      }
    }
    guard let parent else { return .none }
    return ThreadPosition(root: root ?? parent, parent: parent, isBroadcast: isBroadcast)
  }

  /// `E` names the root and `e` the parent; a comment on something that is no event (`A`, `I`)
  /// has neither.
  private var commentPosition: ThreadPosition {
    let root = reference(UInt8(ascii: "E"))
    let parent = reference(UInt8(ascii: "e"))
    guard let parent = parent ?? root else { return .none }
    return ThreadPosition(root: root ?? parent, parent: parent, isBroadcast: false)
  }

  private func reference(_ letter: UInt8) -> EventID? {
    for tag in tags where tag.letter == letter {
      if let id = tag.bytes32(1) { return EventID(id) }
    }
    return nil
  }
}
