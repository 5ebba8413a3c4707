import Nostr

/// Which events count at a given time: not discarded here, not expired, not superseded, and not
/// deleted by someone who may.
extension Reading {
  func isVisible(_ row: BodyRow, now: Timestamp) throws(StoreError) -> Bool {
    if isExpired(row, now: now) { return false }
    if try isHidden(row.id) { return false }
    if try isSuperseded(row) { return false }
    return try !isDeleted(row)
  }

  /// NIP-40. A value that is no timestamp is no expiration.
  func isExpired(_ row: BodyRow, now: Timestamp) -> Bool {
    guard row.mayExpire, let time = row.tags.expiration else { return false }
    return time <= now
  }

  // MARK: Slots

  /// Whether another version holds the slot. That the holder has expired or was deleted does not
  /// matter: an older version never comes back.
  func isSuperseded(_ row: BodyRow) throws(StoreError) -> Bool {
    guard let slot = Slot(row) else { return false }
    return try holder(of: slot)?.sequence != row.sequence
  }

  /// The version that holds a slot, whatever has become of it.
  func holder(of slot: Slot) throws(StoreError) -> BodyRow? {
    var stream = EntryStream(slot.key, order: .newestFirst)
    while let candidate = try stream.next(self) {
      let row = try row(candidate.entry)
      if slot.contains(row), try !isHidden(row.id) { return row }
    }
    return nil
  }

  /// The holder of a slot, if it still counts.
  func current(_ slot: Slot, now: Timestamp) throws(StoreError) -> BodyRow? {
    guard let row = try holder(of: slot), !isExpired(row, now: now) else { return nil }
    return try isDeleted(row) ? nil : row
  }

  // MARK: Deletions

  /// Kinds that no deletion takes away: a deletion of a deletion has no effect (NIP-09), and a
  /// receipt of a payment stays one.
  private static var undeletable: Set<EventKind> { [.deletion, .groupDeleteEvent, .zapReceipt] }

  func isDeleted(_ row: BodyRow) throws(StoreError) -> Bool {
    if Self.undeletable.contains(row.kind) { return false }
    let prefix = row.id.bytes.prefix
    // Nearly every event has neither, and one look tells.
    let classes = try store.keys(
      from: .reference(prefix, .deletion), through: .reference(prefix, .moderation, .max), limit: 1)
    if !classes.isEmpty {
      if try isDeletedByAuthor(row) { return true }
      if try isModerated(row) { return true }
    }
    return try isDeletedByAddress(row)
  }

  private func isDeletedByAuthor(_ row: BodyRow) throws(StoreError) -> Bool {
    let key = IndexKey.reference(row.id.bytes.prefix, .deletion, row.pubkey.bytes.prefix)
    return try contains(key) { deletion throws(StoreError) in
      deletion.kind == .deletion && deletion.pubkey == row.pubkey
        && deletion.refers(to: row.id)
    }
  }

  /// An `a` deletion takes the versions up to its own time (NIP-09).
  private func isDeletedByAddress(_ row: BodyRow) throws(StoreError) -> Bool {
    guard let slot = Slot(row) else { return false }
    let address = slot.address
    let key = IndexKey.tag(
      UInt8(ascii: "a"), address, sub: AddressClass.deletion(by: row.pubkey.bytes.prefix))
    return try contains(key, notBefore: row.createdAt) { deletion throws(StoreError) in
      deletion.kind == .deletion && deletion.pubkey == row.pubkey
        && deletion.createdAt >= row.createdAt
        && deletion.tags.contains {
          $0.letter == UInt8(ascii: "a") && $0.value(1) == address
        }
    }
  }

  /// A 9005 counts from the author, from an admin by relay-signed state, and from anyone once the
  /// group's relay has served it: that relay is the authority on moderation (NIP-29).
  private func isModerated(_ row: BodyRow) throws(StoreError) -> Bool {
    try contains(.reference(row.id.bytes.prefix, .moderation)) { deletion throws(StoreError) in
      guard deletion.kind == .groupDeleteEvent, deletion.refers(to: row.id) else { return false }
      if deletion.pubkey == row.pubkey { return true }
      guard let group = row.tags.firstValue("h"), deletion.tags.firstValue("h") == group else {
        return false
      }
      return try isAuthorised(deletion, in: group)
    }
  }

  func isAuthorised(_ command: BodyRow, in group: Text) throws(StoreError) -> Bool {
    let roster = try trustedRoster(of: group)
    if roster.moderators.contains(command.pubkey) { return true }
    let serving = try relays(serving: command.id)
    guard !roster.authorities.isEmpty else { return !serving.isEmpty }
    let keys = try selves().keys
    return serving.contains { relay in
      keys[relay].map(roster.authorities.contains) ?? false
    }
  }

  /// Whether an entry of the key is an event that `isRight` and that is not hidden here.
  private func contains(
    _ key: IndexKey, notBefore: Timestamp = 0,
    where isRight: (BodyRow) throws(StoreError) -> Bool
  ) throws(StoreError) -> Bool {
    var stream = EntryStream(key, order: .falling, since: notBefore)
    while let candidate = try stream.next(self) {
      let row = try row(candidate.entry)
      if try isRight(row), try !isHidden(row.id) { return true }
    }
    return false
  }
}

/// The place that versions of a replaceable or addressable event compete for.
struct Slot {
  let kind: EventKind
  let author: PublicKey
  /// The first `d` of an addressable event; nil for a replaceable one.
  let identifier: Text?

  init(kind: EventKind, author: PublicKey, identifier: Text?) {
    self.kind = kind
    self.author = author
    self.identifier = identifier
  }

  /// Nil for an event that replaces nothing.
  init?(_ row: BodyRow) {
    switch row.kind.storage {
    case .replaceable: self.init(kind: row.kind, author: row.pubkey, identifier: nil)
    case .addressable:
      self.init(kind: row.kind, author: row.pubkey, identifier: row.event.identifier)
    case .regular, .ephemeral: return nil
    }
  }

  var key: IndexKey {
    guard let identifier else { return .author(author, kind) }
    return .slot(kind: kind, author: author, identifier: identifier)
  }

  func contains(_ row: BodyRow) -> Bool {
    row.kind == kind && row.pubkey == author
      && (identifier == nil || row.event.identifier == identifier)
  }

  /// As an `a` tag spells it.
  var address: Text {
    var bytes = Array("\(kind.number):\(author.hex):".utf8)
    bytes.append(contentsOf: (identifier ?? .empty).utf8)
    return Text(utf8: bytes)
  }
}
