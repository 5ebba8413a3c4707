public import Nostr

/// One window of a channel, as `POST /query` asks for it (NIP-CW): a filter of NIP-01 and more.
public struct ChannelWindowRequest: Sendable, Hashable {
  public static let path = "/query"

  public let group: Text
  /// Which kinds may be rows; nil: any.
  public let kinds: [EventKind]?
  public var limit: Int
  /// The relay's own cursor from the window before, echoed as it came; nil at the head.
  public var cursor: EventPosition?

  /// - Returns: Nil where the scope is not one channel and perhaps kinds.
  public init?(scope: Filter, limit: Int) {
    let letter = UInt8(ascii: "h")
    guard scope.tags.count == 1, let groups = scope.tags[letter], groups.count == 1,
      scope.ids == nil, scope.authors == nil, scope.search == nil
    else { return nil }
    group = groups[0]
    kinds = scope.kinds
    self.limit = limit
  }

  /// What changes rows comes with them; the same kinds cannot be told from rows where they may be
  /// rows themselves.
  public var includesAux: Bool {
    guard let kinds else { return false }
    return kinds.allSatisfy { !Self.auxKinds.contains($0) }
  }

  static let auxKinds: Set<EventKind> = [.reaction, .deletion, .groupDeleteEvent, .edit]

  /// An array of one filter, its members sorted.
  public var body: [UInt8] {
    var members: [(Text, JSONValue)] = [
      ("#h", .array([.string(group)])), ("limit", .int(limit)), ("top_level", .bool(true)),
    ]
    if let kinds { members.append(("kinds", .array(kinds.map { .int($0.number) }))) }
    if includesAux { members.append(("include_aux", .bool(true))) }
    if let cursor {
      members.append(("before_id", .string(Text(cursor.id.hex))))
      members.append(("until", .int(cursor.createdAt.seconds)))
    }
    members.sort { $0.0 < $1.0 }
    return JSONValue.array([.object(members)]).json()
  }

  /// What the bounds of the answer must name in `d`.
  var bindingName: Text {
    guard let cursor else { return Text("\(group):head") }
    return Text("\(group):\(cursor.createdAt.seconds):\(cursor.id.hex)")
  }

  /// Whether an event may be a row of the answer.
  func isRow(_ event: Event) -> Bool {
    guard !Self.isOverlay(event), kinds?.contains(event.kind) ?? true else { return false }
    // Some changes carry no group; the relay puts them where their target is.
    return event.group.map { $0 == group } ?? Self.auxKinds.contains(event.kind)
  }

  /// Whether an event of the answer is history, and no word of the relay about the window.
  public func wants(_ event: Event) -> Bool {
    if isRow(event) { return true }
    guard includesAux, Self.auxKinds.contains(event.kind) else { return false }
    return event.group.map { $0 == group } ?? true
  }

  static func isOverlay(_ event: Event) -> Bool {
    event.kind == .windowBounds || event.kind == .threadSummary
  }
}

/// What the relay says of one window in its event of kind 39006.
struct ChannelWindowBounds: Hashable {
  /// Where the next window begins; nil: there is none.
  let next: EventPosition?
  /// Whether replies are rows like others, so that a window holds all of the channel.
  let projectsReplies: Bool

  /// - Returns: Nil unless the event binds itself to the request and says one thing: a window
  ///   without good bounds is discarded.
  init?(_ event: Event, answering request: ChannelWindowRequest) {
    guard event.kind == .windowBounds, event.tags.count == 2,
      event.tags.values("d") == [request.bindingName], event.tags.values("h") == [request.group],
      let content = try? JSONValue.parse(event.content), content.members != nil,
      let hasMore = content["has_more"]?.bool, let cursor = content["next_cursor"],
      content["thread_replies_in_channel"]?.bool != nil
        || content["thread_replies_in_channel"] == nil
    else { return nil }
    projectsReplies = content["thread_replies_in_channel"]?.bool ?? false
    if cursor.isNull {
      guard !hasMore else { return nil }
      next = nil
      return
    }
    guard hasMore, let createdAt = cursor["created_at"]?.int, createdAt >= 0,
      let id = cursor["id"]?.string.flatMap({ EventID(hex: $0.string) })
    else { return nil }
    next = EventPosition(createdAt: Timestamp(createdAt), id: id)
  }
}

extension EventPosition {
  /// Whether a window's order, newest first and a tie by the lowest id, has this after `other`.
  func comesAfter(_ other: EventPosition) -> Bool {
    createdAt != other.createdAt ? createdAt < other.createdAt : id > other.id
  }
}
