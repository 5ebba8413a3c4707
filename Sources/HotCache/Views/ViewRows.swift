public import Nostr
public import SyncCore

/// How much of a group's state is vouched for.
public enum GroupTrust: String, Sendable, Hashable {
  /// Signed by the key that the relay says is its own.
  case relay
  /// Signed by somebody, served by a relay whose key is not known; shown, and decides nothing.
  case unverified
  /// Messages name the group, and no state of it was ever seen.
  case unmanaged
}

/// One group in the list.
public struct GroupRow: Sendable, Hashable {
  public let id: Text
  /// The key that signed the state; nil unless `state` is `relay`.
  public let authority: PublicKey?
  /// The relay that the state comes from, where that is known.
  public let relay: RelayURL?
  public let state: GroupTrust
  public let name: Text?
  public let about: Text?
  public let picture: Text?
  public let topic: Text?
  public let isPrivate: Bool
  /// A bare `hidden` tag: a direct message group on Buzz.
  public let isHidden: Bool
  public let isArchived: Bool
  /// The `p` tags of a hidden group's metadata.
  public let participants: [PublicKey]
  /// When the newest message was written, leaving out ones that were deleted or date from the
  /// future.
  public let lastAt: Timestamp?
  public let preview: Preview?
  /// The size of the roster, where there is one.
  public let members: Int?
  /// Whether the viewer belongs to it; nil where nothing tells.
  public let isMember: Bool?

  public struct Preview: Sendable, Hashable {
    public let id: EventID
    public let author: PublicKey
    public let createdAt: Timestamp
    public let kind: EventKind
    public let text: Text
  }
}

/// One member of a group.
public struct MemberRow: Sendable, Hashable {
  public let pubkey: PublicKey
  /// In byte order; none means unknown, not "member".
  public let roles: [Text]
  /// False only where it is known that they may do no more than any member.
  public let mayModerate: Bool
}

/// What somebody says about themselves.
public struct ProfileRow: Sendable, Hashable {
  public let pubkey: PublicKey
  public let createdAt: Timestamp
  public let name: Text?
  public let displayName: Text?
  public let about: Text?
  public let picture: Text?
  public let nip05: Text?
  public let lud16: Text?
  /// The content as published, for whoever publishes it again with a change.
  public let content: Text

  /// The name to show: the display name, else the name.
  public var shownName: Text? { displayName ?? name }
}

/// One message of a timeline or a thread, as it reads now.
public struct MessageRow: Sendable, Hashable {
  public let sequence: LogSequence
  public let id: EventID
  public let group: Text?
  public let author: PublicKey
  public let createdAt: Timestamp
  public let kind: EventKind
  /// Edits applied; empty once deleted.
  public let text: Text
  /// The `title` (or `subject`) of a thread or a forum post.
  public let title: Text?
  public let isDeleted: Bool
  public let isEdited: Bool
  public let replyTo: EventID?
  public let root: EventID?
  /// A reply that is shown in the channel too.
  public let isBroadcast: Bool
  /// A reply whose thread has no beginning here: it is shown in the channel until that comes.
  public let isStray: Bool
  /// Named by the group's list of pinned messages.
  public let isPinned: Bool
  /// Replies in the thread of this message that were not deleted; counted up to
  /// `ViewLimits.repliesMax`.
  public let replies: Int
  public let lastReplyAt: Timestamp?
  public let reactions: [ReactionRow]
  /// The id that this message had before it was dated anew.
  public let redatedFrom: EventID?
  /// Its date lies ahead of the viewer's clock by more than clocks usually differ.
  public let isFuture: Bool

  public var position: EventPosition { EventPosition(createdAt: createdAt, id: id) }
}

/// How often a message got one emoji.
public struct ReactionRow: Sendable, Hashable {
  /// An emoji or a `:code:`; a heart for an empty content and for `+`.
  public let emoji: Text
  /// The image of a `:code:` (NIP-30).
  public let image: Text?
  /// The number of people.
  public let count: Int
  public let isMine: Bool
}

/// A message that full-text search has found, as it reads now.
public struct FoundMessage: Sendable, Hashable {
  public let id: EventID
  public let group: Text?
  public let author: PublicKey
  public let createdAt: Timestamp
  public let kind: EventKind
  public let text: Text
}

/// A reaction of one's own.
public struct OwnReaction: Sendable, Hashable {
  public let id: EventID
  public let emoji: Text
}

/// Something that somebody did and that concerns the viewer.
public struct ActivityRow: Sendable, Hashable {
  public enum Reason: String, Sendable, Hashable {
    /// It names the viewer.
    case mention
    /// It answers a message of the viewer's.
    case reply
    /// It is a reaction to one.
    case reaction
  }

  public let reason: Reason
  public let id: EventID
  public let author: PublicKey
  public let createdAt: Timestamp
  public let group: Text?
  /// The text with edits applied, or the emoji.
  public let text: Text
  /// What to open: the message itself where it is a mention, else the viewer's message.
  public let target: EventID
}

/// Where a page lies. Pages always come in rising order of (created_at, id).
public enum PageCursor: Sendable, Hashable {
  /// The newest messages.
  case newest
  /// The messages next before a position.
  case before(EventPosition)
  /// The messages next after a position.
  case after(EventPosition)
  /// The message at a position, with as many before it as after it.
  case around(EventPosition)
}

/// The bounds of views, so that hostile shapes cost bounded time.
public enum ViewLimits {
  /// How far ahead of the viewer's clock a date may be before it counts as the future.
  public static let clockSkew: Int64 = 900
  public static let repliesMax = 1000
  /// Reactions looked at for one message, the newest.
  public static let reactionsReadMax = 4000
  /// A longer reaction is not tallied.
  public static let reactionBytesMax = 256
  /// Emoji sets looked at for one code, the newest.
  public static let emojiSetsReadMax = 1000
  /// Messages of the viewer's own whose answers and reactions are looked for, the newest.
  public static let activityOwnMax = 4096
  /// Events looked at for one list of activity.
  public static let activityReadMax = 8192
  /// Commands about one person's membership looked at, the newest.
  public static let membershipReadMax = 1024
  /// People whose profiles are looked at to name a direct message.
  public static let titleReadMax = 64
  /// Pinned messages of a group, the first.
  public static let pinsMax = 256
  /// Different emoji listed for one message.
  public static let emojiMax = 64
  /// Messages looked at to find the newest that may be shown as a group's preview.
  public static let previewReadMax = 256
  /// Replies looked at for one page of a timeline to find those whose thread has no beginning here.
  public static let strayReadMax = 2000
  /// Versions of one group's unverified state looked at, the newest.
  public static let unverifiedReadMax = 64
  /// Profiles looked at for one lookup by name.
  public static let namesReadMax = 2000
}
