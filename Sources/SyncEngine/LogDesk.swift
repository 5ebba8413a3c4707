import EventLog
import HotCache
import Nostr
import SyncCore

/// Reads of the log and the cache that may wait for the disk, on a thread that may.
actor LogDesk {
  let reader: LogReader
  let views: CacheViews
  private nonisolated let executor: any SerialExecutor

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  init(reader: LogReader, views: CacheViews, executor: any SerialExecutor) {
    self.reader = reader
    self.views = views
    self.executor = executor
  }

  func coverage(
    relay: RelayURL, scope: Scope, asOf now: Timestamp
  ) throws(LogError) -> CoverageMap {
    try reader.coverage(relay: relay, scope: scope, asOf: now)
  }

  func event(_ id: EventID) throws(LogError) -> Event? { try reader.event(id: id)?.event }

  func hasCoverage(of relay: RelayURL) throws(LogError) -> Bool {
    try reader.coverage(asOf: nil).contains { $0.relay == relay }
  }

  func setting(_ key: String) throws(LogError) -> [UInt8]? { try reader.setting(key) }

  func message(token: Text) throws(LogError) -> Message? { try reader.message(token: token) }

  func message(of event: EventID) throws(LogError) -> Message? {
    try reader.message(eventID: event)
  }

  func message(_ id: MessageID) throws(LogError) -> Message? { try reader.message(id: id) }

  /// What is not yet settled at one relay, with the dates that the policy needs.
  func items(for relay: RelayURL) throws(LogError) -> [OutboxPolicy.Item] {
    var items: [OutboxPolicy.Item] = []
    for delivery in try reader.deliveries(includingSent: false) where delivery.relay == relay {
      guard let event = try reader.event(id: delivery.eventID)?.event else { continue }
      items.append(
        OutboxPolicy.Item(
          delivery: delivery, createdAt: event.createdAt,
          isOutdated: try !newNames(in: event.tags).isEmpty))
    }
    return items
  }

  /// What messages of ours are called now that these tags name by an older id.
  func newNames(in tags: Tags) throws(LogError) -> [EventID: EventID] {
    var names: [EventID: EventID] = [:]
    for id in Redater.named(in: tags) {
      if let message = try reader.message(eventID: id), message.eventID != id {
        names[id] = message.eventID
      }
    }
    return names
  }

  /// Whether a message names another of ours by an id that this has no more.
  func isOutdated(_ id: MessageID) throws(LogError) -> Bool {
    guard let message = try reader.message(id: id),
      let event = try reader.event(id: message.eventID)?.event
    else { return false }
    return try !newNames(in: event.tags).isEmpty
  }

  /// What still is to do with messages that wait for one of these, in the order of writing.
  func openDeliveries() throws(LogError) -> [Delivery] {
    try reader.deliveries(includingSent: false)
  }

  /// Messages that wait for another and only say something about that: edits, reactions, deletions.
  func remarks(on message: MessageID) throws(LogError) -> [MessageID] {
    var remarks: [MessageID] = []
    for delivery in try openDeliveries() where delivery.waitsFor == message {
      guard delivery.handedAt == nil, delivery.state != .sent,
        let kind = try reader.kind(of: delivery.eventID),
        [.edit, .reaction, .deletion].contains(kind)
      else { continue }
      remarks.append(delivery.message)
    }
    return Set(remarks).sorted()
  }

  func settings() throws(LogError) -> CommunitySettings { try CommunitySettings(reader) }

  func lessons(of relay: RelayURL) throws(LogError) -> RelayLessons {
    try reader.lessons(of: relay)
  }

  /// The latest date among what was written before a message.
  func lastWrittenDate(before message: MessageID) throws(LogError) -> Timestamp? {
    try reader.lastWrittenDate(before: message)
  }

  /// The date of the version that holds a slot; nil: there is none.
  func holderDate(_ slot: EventAddress) -> Timestamp? {
    // Without a cache the clock alone decides: the relay keeps the newer version all the same.
    let date = try? views.read { snapshot throws(CacheError) in
      try snapshot.holderDate(slot)
    }
    return date ?? nil
  }

  /// The newest events of a group that the relay has shown to be its own, but for the author's.
  func references(
    in group: Text, at relay: RelayURL, author: PublicKey, now: Timestamp, limits: Limits
  ) throws(LogError) -> [EventID] {
    var filter = Filter.group(group)
    filter.limit = limits.referencesSpan
    // A message without references is one that the relay may still take.
    let places =
      (try? views.read { snapshot throws(CacheError) in
        try snapshot.query([filter], now: now)
      }) ?? []
    var found: [EventID] = []
    for logged in try reader.events(at: places) {
      guard found.count < limits.referencesWanted else { break }
      guard let event = logged?.event, event.pubkey != author,
        try reader.provenance(of: event.id).contains(where: { $0.relay == relay })
      else { continue }
      found.append(event.id)
    }
    return found
  }

  /// The key that the relay was last seen to sign with.
  func relaySelf(_ relay: RelayURL) throws(LogError) -> PublicKey? {
    // As for `groups`: noting it twice does no harm.
    let known = try? views.read { snapshot throws(CacheError) in try snapshot.relaySelf(relay) }
    return known ?? nil
  }

  /// The groups that the local copy knows and a relay can be asked for; none where the cache cannot
  /// tell now.
  func groups(now: Timestamp) -> [Text] {
    // A cache in doubt is rebuilt elsewhere; the relay's own list names the groups too.
    (try? views.read { snapshot throws(CacheError) in
      try snapshot.groups(now: now).map(\.id).filter { !$0.isEmpty && $0.count <= 1024 }
    })
      ?? []
  }
}
