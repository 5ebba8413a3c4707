import HotCache
import Nostr
import SyncCore
import SyncEngine

/// A message with all that a row shows of it.
struct ShownMessage {
  let number: Int
  let row: MessageRow
  /// Nil where the person never published a name.
  let authorName: Text?
  /// Whether whoever looks at it wrote it.
  var isMine = false
  /// What became of it at the home relay; nil for what is not waiting to be sent.
  let delivery: Delivery?
  /// The number of the message it answers, where that was shown or is held.
  let repliesTo: Int?

  var state: String {
    delivery.map { $0.state == .sent ? "stored" : $0.state.rawValue } ?? "stored"
  }
}

/// The rows of `chat --json`, whose keys are a contract.
enum ChatRows {
  static func message(_ shown: ShownMessage) -> JSON {
    let row = shown.row
    return [
      "type": "message", "n": JSON(shown.number), "id": JSON(row.id.hex), "group": JSON(row.group),
      "author": ["pubkey": JSON(row.author.hex), "name": JSON(shown.authorName)],
      "created_at": JSON(row.createdAt), "kind": .int(Int64(row.kind.number)),
      "text": .text(row.text), "title": JSON(row.title), "state": JSON(shown.state),
      "reason": JSON(shown.delivery?.reason), "deleted": JSON(row.isDeleted),
      "edited": JSON(row.isEdited), "reply_to": JSON(row.replyTo?.hex), "root": JSON(row.root?.hex),
      "root_held": row.root == nil ? nil : JSON(!row.isStray), "replies": JSON(row.replies),
      "reactions": .array(
        row.reactions.map { reaction in
          [
            "emoji": .text(reaction.emoji), "count": JSON(reaction.count),
            "mine": JSON(reaction.isMine), "url": JSON(reaction.image),
          ]
        }),
      "redated_from": JSON(row.redatedFrom?.hex), "future": JSON(row.isFuture),
      "pinned": JSON(row.isPinned),
    ]
  }

  /// Unread counts need read marks, which this version does not keep: they are unknown, not zero.
  static func channel(
    _ group: GroupRow, number: Int, name: Text?, hasAccess: Bool
  ) -> JSON {
    [
      "type": "channel", "n": JSON(number), "id": .text(group.id), "name": JSON(name),
      "about": JSON(group.about),
      "members": JSON(group.members), "unread": nil, "mentions": nil,
      "last_at": JSON(group.lastAt), "member": JSON(group.isMember),
      "state": JSON(group.state.rawValue), "private": JSON(group.isPrivate),
      "dm": JSON(group.isHidden), "access": JSON(hasAccess ? "ok" : "none"),
    ]
  }

  static func member(_ member: MemberRow, name: Text?) -> JSON {
    [
      "type": "member", "pubkey": JSON(member.pubkey.hex), "name": JSON(name),
      "roles": .array(member.roles.map { .text($0) }),
    ]
  }

  static func activity(_ row: ActivityRow, number: Int, name: Text?) -> JSON {
    [
      "type": "activity", "n": JSON(number), "reason": JSON(row.reason.rawValue),
      "id": JSON(row.id.hex), "group": JSON(row.group),
      "author": ["pubkey": JSON(row.author.hex), "name": JSON(name)],
      "created_at": JSON(row.createdAt), "text": .text(row.text), "target": JSON(row.target.hex),
    ]
  }

  static func blocked(_ entry: Blocks.Entry, name: Text?) -> JSON {
    [
      "type": "blocked", "pubkey": JSON(entry.key.hex), "name": JSON(name),
      "since": JSON(entry.since),
    ]
  }

  static func gap(_ gap: OpenSpan) -> JSON {
    [
      "type": "gap", "group": JSON(gap.scope.group), "from": JSON(gap.from), "to": JSON(gap.to),
      "why": .text(gap.why), "relay": JSON(gap.relay?.description),
      "scope": .raw(gap.scope.filter.json()),
    ]
  }

  static func profile(_ key: PublicKey, _ profile: ProfileRow?) -> JSON {
    [
      "type": "profile", "pubkey": JSON(key.hex), "npub": JSON(NameWords.npub(key)),
      "name": JSON(profile?.name), "display_name": JSON(profile?.displayName),
      "about": JSON(profile?.about), "picture": JSON(profile?.picture),
      "nip05": JSON(profile?.nip05), "lud16": JSON(profile?.lud16),
    ]
  }

  static func done(_ command: String, _ failure: ChatFailure?) -> JSON {
    [
      "type": "done", "command": JSON(command), "ok": JSON(failure == nil),
      "error": failure.map { ["code": JSON($0.code), "message": JSON($0.message)] } ?? nil,
    ]
  }
}

/// Why a line came to nothing; the client says so and goes on.
struct ChatFailure: Error, Equatable {
  let code: String
  let message: String

  init(_ code: String, _ message: String) {
    self.code = code
    self.message = message
  }
}
