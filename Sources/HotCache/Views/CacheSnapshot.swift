public import Nostr
public import SyncCore

/// How well the cache stands.
public enum CacheState: Hashable, Sendable {
  case ok
  /// Rows are being folded again, for the reason given; what is not folded yet is not shown yet.
  case rebuilding(String)
  /// The same answers from memory, for the reason given; nothing of it outlives the process.
  case degraded(String)

  /// The one word of `skep status`.
  public var name: String {
    switch self {
    case .ok: "ok"
    case .rebuilding: "rebuilding"
    case .degraded: "degraded"
    }
  }
}

/// How far a cache has come that moves from memory back to its files.
public enum CacheRestoring: Hashable, Sendable {
  case underway
  /// It is there, or was there already.
  case done
  /// The files still cannot serve; memory goes on answering.
  case failed(String)
}

/// One state of the cache. It lives for the length of `CacheViews.read` and cannot leave it.
public struct CacheSnapshot: ~Copyable {
  private let reading: Reading
  /// The last log entry whose rows are here.
  public let applied: LogSequence
  public let state: CacheState

  init(
    store: any StoreSnapshot, state: CacheState, blocked: Set<PublicKey>
  ) throws(StoreError) {
    reading = Reading(store: store, blocked: blocked)
    applied = LogSequence(Int64(try store.meta()?.applied ?? 0))
    self.state = state
  }

  // MARK: Groups and people

  /// Every group, in the order of a channel list.
  ///
  /// - Parameter me: Whose membership is asked for.
  public func groups(now: Timestamp, me: PublicKey? = nil) throws(CacheError) -> [GroupRow] {
    try answer { () throws(StoreError) in try reading.groups(now: now, me: me) }
  }

  /// The group of that id; with several under different keys, the one vouched for, by relay.
  public func group(_ id: Text, now: Timestamp, me: PublicKey? = nil) throws(CacheError)
    -> GroupRow?
  {
    try answer { () throws(StoreError) in
      try reading.groups(named: id, now: now, me: me).first
    }
  }

  /// The members of a group, by key.
  public func members(of group: Text, now: Timestamp) throws(CacheError) -> [MemberRow] {
    try answer { () throws(StoreError) in try reading.members(of: group, now: now) }
  }

  public func profile(_ key: PublicKey, now: Timestamp) throws(CacheError) -> ProfileRow? {
    try answer { () throws(StoreError) in try reading.profile(key, now: now) }
  }

  /// The people whose name or display name begins with `prefix`, whatever its case.
  public func profiles(named prefix: Text, limit: Int = 50, now: Timestamp) throws(CacheError)
    -> [ProfileRow]
  {
    try answer { () throws(StoreError) in
      try reading.profiles(named: prefix, limit: limit, now: now)
    }
  }

  /// The date of the version that holds a slot, also where it was deleted or has expired: an older
  /// one does not come back.
  public func holderDate(_ slot: EventAddress) throws(CacheError) -> Timestamp? {
    let identifier = slot.kind.storage == .addressable ? slot.identifier : nil
    return try answer { () throws(StoreError) in
      try reading.holder(
        of: Slot(kind: slot.kind, author: slot.author, identifier: identifier))?.createdAt
    }
  }

  /// The key that a relay says is its own, as far as it was heard.
  public func relaySelf(_ relay: RelayURL) throws(CacheError) -> PublicKey? {
    try answer { () throws(StoreError) in try reading.selves().keys[relay] }
  }

  // MARK: Messages

  /// A page of a group's timeline in rising order: top-level messages, broadcast replies, and replies
  /// whose thread has no beginning here.
  /// Deleted messages stay, marked and without their text.
  public func timeline(
    _ group: Text, _ cursor: PageCursor = .newest, limit: Int = 50, now: Timestamp,
    me: PublicKey? = nil
  ) throws(CacheError) -> [MessageRow] {
    try answer { () throws(StoreError) in
      try reading.timeline(group, cursor, limit: limit, now: now, me: me)
    }
  }

  /// A page of the replies in a thread, in rising order; the root is not among them.
  ///
  /// - Parameter group: The root's group, needed only where the root itself is not held.
  public func thread(
    _ root: EventID, group: Text? = nil, _ cursor: PageCursor = .newest, limit: Int = 200,
    now: Timestamp, me: PublicKey? = nil
  ) throws(CacheError) -> [MessageRow] {
    try answer { () throws(StoreError) in
      try reading.thread(root, group: group, cursor, limit: limit, now: now, me: me)
    }
  }

  public func message(_ id: EventID, now: Timestamp, me: PublicKey? = nil) throws(CacheError)
    -> MessageRow?
  {
    try answer { () throws(StoreError) in
      guard let row = try reading.row(id) else { return nil }
      return try reading.message(row, now: now, me: me)
    }
  }

  /// Whom a group's members would call it: its name, or who else is in it where it is a direct
  /// message without a name of its own; nil where it has neither.
  public func title(of group: GroupRow, now: Timestamp, me: PublicKey? = nil) throws(CacheError)
    -> Text?
  {
    try answer { () throws(StoreError) in try reading.title(of: group, now: now, me: me) }
  }

  /// The messages that the group's relay has pinned, in its order.
  public func pins(of group: Text) throws(CacheError) -> [EventID] {
    try answer { () throws(StoreError) in try reading.pins(of: group) }
  }

  /// The reactions of `author` to an event that still count, newest first.
  public func reactions(
    to id: EventID, by author: PublicKey, now: Timestamp
  ) throws(CacheError) -> [OwnReaction] {
    try answer { () throws(StoreError) in try reading.reactions(to: id, by: author, now: now) }
  }

  /// The image that members' emoji sets give a `:code:`, without its colons (NIP-30).
  public func emojiImage(_ code: Text, now: Timestamp) throws(CacheError) -> Text? {
    try answer { () throws(StoreError) in try reading.emojiImage(code, now: now) }
  }

  /// What others did that concerns `me`, newest first: mentions, answers to messages of mine, and
  /// reactions to them.
  public func activity(of me: PublicKey, limit: Int = 100, now: Timestamp) throws(CacheError)
    -> [ActivityRow]
  {
    try answer { () throws(StoreError) in
      try reading.activity(of: me, limit: limit, now: now)
    }
  }

  /// The message whose shown text stands at a place of the log, in its own event or an edit's; nil
  /// where that text is not what the message says now, or the message is not to be seen.
  public func found(at sequence: LogSequence, now: Timestamp) throws(CacheError) -> FoundMessage? {
    try answer { () throws(StoreError) in
      try reading.found(at: UInt64(clamping: sequence.number), now: now)
    }
  }

  // MARK: Queries

  /// Where the log has the events that match any of the filters, newest first, ties to the lowest
  /// id: nothing deleted, superseded, expired, or hidden here. A filter's `limit` bounds that
  /// filter alone, and `limit` bounds all together. `search` is not looked at.
  public func query(_ filters: [Filter], now: Timestamp, limit: Int? = nil) throws(CacheError)
    -> [LogSequence]
  {
    try answer { () throws(StoreError) in
      try reading.query(filters, now: now, limit: limit).map { LogSequence(Int64($0.sequence)) }
    }
  }

  /// Where the log has the version that holds a slot, whatever has become of it.
  public func holder(of address: EventAddress) throws(CacheError) -> LogSequence? {
    let isAddressable = address.kind.storage == .addressable
    let slot = Slot(
      kind: address.kind, author: address.author,
      identifier: isAddressable ? address.identifier : nil)
    return try answer { () throws(StoreError) in
      try reading.holder(of: slot).map { LogSequence(Int64($0.sequence)) }
    }
  }

  /// How many events `query` would find without limits.
  public func count(_ filters: [Filter], now: Timestamp) throws(CacheError) -> Int {
    try answer { () throws(StoreError) in try reading.count(filters, now: now) }
  }

  /// The positions of a filter's events after `position`, in rising order: what NIP-77 offers.
  public func items(
    _ filter: Filter, after position: EventPosition? = nil, limit: Int = .max, now: Timestamp
  ) throws(CacheError) -> [EventPosition] {
    try answer { () throws(StoreError) in
      try reading.items(filter, after: position, limit: limit, now: now)
    }
  }

  /// Whether the log has an event, and where; deleted and superseded ones count.
  public func sequence(of id: EventID) throws(CacheError) -> LogSequence? {
    try answer { () throws(StoreError) in
      try reading.row(id).map { LogSequence(Int64($0.sequence)) }
    }
  }

  /// A number over all logical rows. Reads everything.
  public func digest() throws(CacheError) -> CacheDigest {
    try answer { () throws(StoreError) in try reading.digest() }
  }

  // MARK: For benchmarks

  /// The rows of all tables; 0 where they are not in files.
  package func rowCount() throws(CacheError) -> Int {
    try answer { () throws(StoreError) in
      try (reading.store as? LMDBSnapshot)?.rowCount() ?? 0
    }
  }

  /// Gets the rows of these entries and nothing else; 0 where they are not in files.
  package func touch(_ sequences: [LogSequence]) throws(CacheError) -> Int {
    try answer { () throws(StoreError) in
      try (reading.store as? LMDBSnapshot)?.touch(sequences.map { UInt64($0.number) }) ?? 0
    }
  }

  private func answer<Result>(_ body: () throws(StoreError) -> Result) throws(CacheError)
    -> Result
  {
    do throws(StoreError) { return try body() } catch { throw CacheError(error) }
  }
}
