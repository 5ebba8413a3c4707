public import Nostr

/// What one run is to bring over.
public struct SyncPlan: Sendable, Hashable {
  public enum Extent: Sendable, Hashable {
    /// The groups that the relay lists, their events, and the profiles of their people.
    case community
    case groups([Text])
    /// Everything that the relay serves this key.
    case everything
  }

  public var extent: Extent
  /// Only events dated from here on; what is said of groups and people is brought over from any time.
  public var since: Timestamp?
  /// Only events dated up to here.
  public var until: Timestamp?
  /// Walks all of it, whatever was proved before.
  public var isFull = false
  /// Where the relay serves NIP-77, compares all of it, whatever was proved before.
  public var provesAll = false
  /// What is proved again although it was proved before, in seconds up to now.
  public var recentWindow: Int64
  /// What is proved again because its proof has become old; nil for nothing but the recent window.
  public var schedule: ReconcileSchedule?
  /// How long to wait for a relay at all.
  public var failAfter: Duration = .seconds(30)

  public init(_ extent: Extent = .community, recentWindow: Int64 = Limits().recentWindow) {
    self.extent = extent
    self.recentWindow = recentWindow
  }

  /// Whether only events of some dates are to be brought over.
  public var isBounded: Bool { since != nil || until != nil }

  /// The same without bounds of date: of what is replaced and not added to, a relay holds only the
  /// newest version, and that is what holds within any bounds.
  public var unbounded: SyncPlan {
    var plan = self
    plan.since = nil
    plan.until = nil
    return plan
  }

  /// What of a scope is to be walked, newest first.
  ///
  /// - Parameters:
  ///   - coverage: What the relay was proved to have been read of this scope.
  ///   - now: The wall time.
  public func legs(over coverage: CoverageMap, now: Timestamp) -> [HistoryWalk.Leg] {
    let from = max(since ?? 0, 0)
    let top = until ?? now
    guard from <= top else { return until == nil ? [HistoryWalk.Leg(from: from)] : [] }
    if isFull { return [HistoryWalk.Leg(from: from, to: until)] }
    var spans = coverage.gaps(from: from, to: top)
    let recent = max(from, now - max(recentWindow, 0))
    if recent <= top { spans.append(recent...top) }
    for span in schedule?.spansDue(over: coverage, now: now) ?? [] {
      let (lower, upper) = (max(span.lowerBound, from), min(span.upperBound, top))
      if lower <= upper { spans.append(lower...upper) }
    }
    return ReconcileSchedule.joined(spans).reversed().map { span in
      HistoryWalk.Leg(
        from: span.lowerBound, to: span.upperBound == top && until == nil ? nil : span.upperBound)
    }
  }
}

/// Which filters together make up a community.
///
/// Kinds that share a filter share its pages and its fate: the busy control kinds would use up the
/// pages of messages, and one gated kind closes the request for all. So each class has its own.
public enum SyncScopes {
  static let tagH = UInt8(ascii: "h")
  static let tagD = UInt8(ascii: "d")
  static let tagP = UInt8(ascii: "p")

  /// What people write in a group.
  public static let contentKinds: [EventKind] = [
    .note, .message, .threadRoot, .comment, 20, 1222, 30023, .legacyMessage, .messageV2, .diff,
    .systemMessage,
    .forumPost, .forumComment, 1068, 43001, 43002, 43003, 43004, 43005, 43006, 48100, 48101,
    48102, 48103, 48104,
  ]
  /// What changes what people wrote.
  public static let controlKinds: [EventKind] = [
    .deletion, .reaction, .groupDeleteEvent, .edit, .forumVote, .pinned, .bookmarked, .zapReceipt,
    1018,
  ]
  /// What changes the group itself.
  public static let moderationKinds: [EventKind] = [
    .groupPutUser, .groupRemoveUser, .groupEditMetadata, .groupCreate, .groupDelete,
    .groupCreateInvite, .groupJoinRequest, .groupLeaveRequest, .canvas,
  ]
  /// What the relay says of a group. The list itself is asked for apart: it tells which there are.
  public static let stateKinds: [EventKind] = [.groupAdmins, .groupMembers, .groupRoles, 39005]

  /// The groups that the relay lists.
  public static let groupList = Scope(Filter(kinds: [.groupMetadata]))

  /// Everything in one group, of whatever kind, for relays that take a filter without kinds.
  public static func wholeGroup(_ group: Text) -> Scope { Scope(Filter(tags: [tagH: [group]])) }

  /// What is known to be in one group, each class a scope of its own, for relays that do not.
  public static func groupClasses(_ group: Text) -> [Scope] {
    [contentKinds, controlKinds, moderationKinds].map { Scope(Filter.group(group, kinds: $0)) }
  }

  /// What the relay says of one group.
  public static func groupState(_ group: Text) -> Scope {
    Scope(Filter(kinds: stateKinds + [.groupMetadata], tags: [tagD: [group]]))
  }

  /// The profiles of these people.
  public static func profiles(_ people: [PublicKey]) -> Scope {
    Scope(Filter(authors: people, kinds: [.profile]))
  }

  /// All that a relay serves, for relays that take a filter without kinds.
  public static let everything = Scope(Filter())

  /// Every known kind in classes that can be refused one by one, for relays that do not.
  ///
  /// - Parameter me: The key that asks; gated kinds are left out without one.
  public static func everyKind(me: PublicKey?) -> [Scope] {
    let known = EventKind.table.filter { $0.kind.storage != .ephemeral }
    let open = known.filter { $0.gate == .open }.map(\.kind)
    let content = Set(contentKinds)
    let control = Set(controlKinds)
    let state: Set<EventKind> = Set(stateKinds)
    var classes = [
      open.filter { content.contains($0) }, open.filter { control.contains($0) },
      open.filter { state.contains($0) },
      [.profile],
    ]
    let taken = Set(classes.flatMap { $0 }).union([.groupMetadata])
    // Kinds that one kind of relay knows and another refuses do not share a request.
    classes.append(
      known.filter { $0.gate == .open && $0.origin == .nostr && !taken.contains($0.kind) }
        .map(\.kind))
    classes.append(
      known.filter { $0.gate == .open && $0.origin == .buzz && !taken.contains($0.kind) }
        .map(\.kind))
    var scopes = classes.filter { !$0.isEmpty }.map { Scope(Filter(kinds: $0)) }
    if let me { scopes += gated(known, me) }
    return scopes
  }

  private static func gated(_ known: [EventKind.Entry], _ me: PublicKey) -> [Scope] {
    known.filter { $0.gate != .open }.map { entry in
      switch entry.gate {
      case .open, .addressee:
        Scope(Filter(kinds: [entry.kind], tags: [tagP: [Text(me.hex)]]))
      case .author, .authorOrAddressee: Scope(Filter(authors: [me], kinds: [entry.kind]))
      }
    }
  }

  // MARK: Live feeds

  /// The live feed of one group: one `#h`, no `since`, a small limit. Some relays deliver to no
  /// other shape.
  public static func liveGroup(_ group: Text, limit: Int) -> (SubscriptionName, [Filter]) {
    var filter = Filter.group(
      group, kinds: contentKinds + controlKinds + [.groupMetadata, .groupAdmins, .groupMembers])
    filter.limit = limit
    return (Text(utf8: Array("group:".utf8) + group.utf8), [filter])
  }

  /// The group whose feed has this name; nil for the others.
  public static func group(ofFeed name: SubscriptionName) -> Text? {
    let prefix = Array("group:".utf8)
    guard name.utf8.starts(with: prefix) else { return nil }
    return Text(utf8: name.utf8.dropFirst(prefix.count))
  }

  /// The feeds that belong to no group, each a REQ of its own.
  public static func liveGlobals(me: PublicKey?, limit: Int) -> [(SubscriptionName, [Filter])] {
    var feeds: [(SubscriptionName, [Filter])] = [
      ("groups", [Filter(kinds: [.groupMetadata, .groupAdmins, .groupMembers], limit: limit)]),
      ("profiles", [Filter(kinds: [.profile], limit: limit)]),
    ]
    if let me {
      feeds.append(
        (
          "membership",
          [
            Filter(
              kinds: [.memberAdded, .memberRemoved], tags: [tagP: [Text(me.hex)]], limit: limit)
          ]
        ))
    }
    return feeds
  }

  /// The feed that brings whatever is new on a relay that takes a filter without kinds.
  public static func liveEverything(limit: Int) -> (SubscriptionName, [Filter]) {
    ("everything", [Filter(limit: limit)])
  }
}
