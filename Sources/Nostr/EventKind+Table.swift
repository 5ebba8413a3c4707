/// What is known of the kinds: their names, where they come from and who may read them.
///
/// A kind that is missing here is as good as any other; nothing may depend on finding one.
extension EventKind {
  public enum Origin: Sendable, Hashable {
    /// A NIP that any relay may follow.
    case nostr
    /// Buzz only: whoever uses such a kind needs an answer for relays without it.
    case buzz
  }

  /// What a filter must say before a Buzz relay lets it ask for a kind. A filter that says less
  /// closes its whole REQ, so kinds of different gates never share one.
  public enum Gate: Sendable, Hashable {
    case open
    /// Every `#p` value is the reader's own key.
    case addressee
    /// `authors` is the reader's own key.
    case author
    case authorOrAddressee
  }

  public struct Entry: Sendable, Hashable {
    public let kind: EventKind
    public let name: String
    public let origin: Origin
    public let gate: Gate

    init(_ kind: EventKind, _ name: String, _ origin: Origin, _ gate: Gate = .open) {
      self.kind = kind
      self.name = name
      self.origin = origin
      self.gate = gate
    }
  }

  /// All known kinds, ascending.
  public static let table: [Entry] = [
    Entry(.profile, "profile", .nostr),
    Entry(.note, "note", .nostr),
    Entry(.contacts, "contact list", .nostr),
    Entry(.deletion, "deletion", .nostr),
    Entry(.reaction, "reaction", .nostr),
    Entry(.message, "message", .nostr),
    Entry(.threadRoot, "thread", .nostr),
    Entry(.seal, "seal", .nostr),
    Entry(.directMessage, "direct message", .nostr),
    Entry(.giftWrap, "gift wrap", .nostr, .addressee),
    Entry(.comment, "comment", .nostr),
    Entry(.report, "report", .nostr),
    Entry(.relayMemberAdded, "relay member added", .nostr),
    Entry(.relayMemberRemoved, "relay member removed", .nostr),
    Entry(.identityArchived, "identity archived", .buzz),
    Entry(.identityRestored, "identity restored", .buzz),
    Entry(.groupPutUser, "add user", .nostr),
    Entry(.groupRemoveUser, "remove user", .nostr),
    Entry(.groupEditMetadata, "edit metadata", .nostr),
    Entry(.groupDeleteEvent, "delete event", .nostr),
    Entry(.groupCreate, "create group", .nostr),
    Entry(.groupDelete, "delete group", .nostr),
    Entry(.groupCreateInvite, "create invite", .nostr),
    Entry(.groupJoinRequest, "join request", .nostr),
    Entry(.groupLeaveRequest, "leave request", .nostr),
    Entry(.relayAddMember, "add relay member", .buzz),
    Entry(.relayRemoveMember, "remove relay member", .buzz),
    Entry(.relaySetRole, "set relay role", .buzz),
    Entry(.relayEditWorkspace, "edit workspace profile", .buzz),
    Entry(.identityArchiveRequest, "archive identity", .buzz),
    Entry(.identityRestoreRequest, "restore identity", .buzz),
    Entry(.ban, "ban", .buzz),
    Entry(.unban, "unban", .buzz),
    Entry(.timeout, "timeout", .buzz),
    Entry(.untimeout, "end timeout", .buzz),
    Entry(.resolveReport, "resolve report", .buzz),
    Entry(.zapRequest, "zap request", .nostr),
    Entry(.zapReceipt, "zap receipt", .nostr),
    Entry(.groupList, "group list", .nostr),
    Entry(.walletInfo, "wallet info", .nostr),
    Entry(.relayMembers, "relay members", .nostr),
    Entry(.archivedIdentities, "archived identities", .buzz),
    Entry(.presence, "presence", .buzz),
    Entry(.typing, "typing", .buzz),
    Entry(.relayAuth, "relay authentication", .nostr),
    Entry(.walletRequest, "wallet request", .nostr),
    Entry(.walletResponse, "wallet response", .nostr),
    Entry(.walletNotification, "wallet notification", .nostr),
    Entry(.pairing, "pairing", .buzz),
    Entry(.agentObserver, "agent frame", .buzz, .addressee),
    Entry(.mediaAuth, "media authorisation", .nostr),
    Entry(.httpAuth, "HTTP authorisation", .nostr),
    Entry(.relayLeave, "leave relay", .nostr),
    Entry(.emojiSet, "emoji set", .nostr),
    Entry(.appData, "application data", .nostr),
    Entry(.agentMemory, "agent memory", .buzz, .authorOrAddressee),
    Entry(.agentSettings, "agent settings", .buzz, .author),
    Entry(.eventReminder, "event reminder", .buzz, .author),
    Entry(.userStatus, "user status", .nostr),
    Entry(.draft, "draft", .buzz, .author),
    Entry(.dmVisibility, "direct message visibility", .buzz, .addressee),
    Entry(.groupMetadata, "group metadata", .nostr),
    Entry(.groupAdmins, "group admins", .nostr),
    Entry(.groupMembers, "group members", .nostr),
    Entry(.groupRoles, "group roles", .nostr),
    Entry(.groupLive, "live participants", .nostr),
    Entry(.threadSummary, "thread summary", .buzz),
    Entry(.windowBounds, "window bounds", .buzz),
    Entry(.legacyMessage, "legacy message", .buzz),
    Entry(.messageV2, "message", .buzz),
    Entry(.edit, "edit", .buzz),
    Entry(.pinned, "pinned message", .buzz),
    Entry(.bookmarked, "bookmarked message", .buzz),
    Entry(.scheduledMessage, "scheduled message", .buzz),
    Entry(.reminder, "reminder", .buzz),
    Entry(.diff, "diff", .buzz),
    Entry(.systemMessage, "system message", .buzz),
    Entry(.canvas, "canvas", .buzz),
    Entry(.dmOpen, "open direct message", .buzz),
    Entry(.dmAdd, "add to direct message", .buzz),
    Entry(.dmHide, "hide direct message", .buzz),
    Entry(43001, "agent job", .buzz),
    Entry(43002, "agent job", .buzz),
    Entry(43003, "agent job", .buzz),
    Entry(43004, "agent job", .buzz),
    Entry(43005, "agent job", .buzz),
    Entry(43006, "agent job", .buzz),
    Entry(.memberAdded, "member added", .buzz, .addressee),
    Entry(.memberRemoved, "member removed", .buzz, .addressee),
    Entry(.agentMetric, "agent metric", .buzz, .addressee),
    Entry(.forumPost, "forum post", .buzz),
    Entry(.forumVote, "forum vote", .buzz),
    Entry(.forumComment, "forum comment", .buzz),
    Entry(48100, "huddle", .buzz),
    Entry(48101, "huddle", .buzz),
    Entry(48102, "huddle", .buzz),
    Entry(48103, "huddle", .buzz),
    Entry(48104, "huddle", .buzz),
  ]

  private static let entries: [EventKind: Entry] = Dictionary(
    uniqueKeysWithValues: table.map { ($0.kind, $0) })

  /// The name of a known kind.
  public var name: String? { Self.entries[self]?.name }

  public var origin: Origin? { Self.entries[self]?.origin }

  public var gate: Gate { Self.entries[self]?.gate ?? .open }
}

extension EventKind {
  /// Kinds that only a relay signs; no key of a person may sign or publish one.
  public static let relaySigned: Set<EventKind> = [
    .groupMetadata, .groupAdmins, .groupMembers, .groupRoles, .relayMembers, .memberAdded,
    .memberRemoved,
  ]

  public var isRelaySigned: Bool { Self.relaySigned.contains(self) }

  /// Kinds that a Buzz relay takes from nobody, beside `relaySigned`.
  public static let buzzRelayOnly: Set<EventKind> = [
    .identityArchived, .identityRestored, .archivedIdentities, .dmVisibility, .threadSummary,
    .windowBounds, .systemMessage, 40901, 40902,
  ]

  /// What belongs to a channel's history: messages, and what changes or annotates them.
  public static let channel: Set<EventKind> = [
    .deletion, .reaction, .message, .threadRoot, .comment, .groupDeleteEvent, .legacyMessage,
    .messageV2, .edit, .diff, .systemMessage, .forumPost, .forumComment, 48100, 48101, 48102,
    48103,
  ]

  /// Events that a reader calls messages, and that count as unread.
  public static let unreadBearing: Set<EventKind> = [
    .message, .threadRoot, .comment, .messageV2, .forumPost, .forumComment,
  ]

  /// An event that relays hand on and nobody stores.
  public var isEphemeral: Bool { storage == .ephemeral }
}
