import Nostr
import NostrCrypto
import SyncCore

extension WriteTransaction {
  mutating func enqueue(
    _ verified: VerifiedEvent, to relays: [RelayURL], waitsFor: MessageID?, token: Text?,
    state deliveryState: DeliveryState
  ) throws(LogError) -> Message {
    let id = verified.event.id
    if let token, let earlier = try MessageRow.message(token: token, in: database) {
      return earlier
    }
    if let earlier = try MessageRow.message(eventID: id, in: database) { return earlier }
    try store(verified)
    try database.run(
      """
      INSERT INTO message (event, channel, token, waits_for, written_at) VALUES (?, ?, ?, ?, ?)
      """,
      [
        .bytes(id.bytes), .text(verified.event.group), .text(token),
        waitsFor.map { .int($0.number) } ?? .null, .time(now),
      ])
    let message = MessageID(database.lastRow)
    for relay in Set(relays).sorted() {
      try database.run(
        """
        INSERT INTO delivery (message, relay, event, state, attempts, changed_at)
        VALUES (?, ?, ?, ?, 0, ?)
        """,
        [
          .int(message.number), .int(try number(of: relay)), .bytes(id.bytes),
          .string(deliveryState.rawValue), .time(now),
        ])
    }
    return try existing(message)
  }

  mutating func record(_ change: DeliveryChange) throws(LogError) {
    let changed = try database.run(
      """
      UPDATE delivery SET state = ?, attempts = ?, reason = ?, next_attempt_at = ?,
        handed_at = coalesce(handed_at, ?), changed_at = ?
      WHERE message = ? AND relay = (SELECT id FROM relay WHERE url = ?)
      """,
      [
        .string(change.state.rawValue), .int(Int64(change.attempts)), .text(change.reason),
        .time(change.nextAttemptAt), .time(change.handedAt), .time(now),
        .int(change.message.number), .string(change.relay.description),
      ])
    if changed == 0 {
      throw LogError.unknownMessage("\(change.message) for \(change.relay)")
    }
    // The relay's yes may have been on its way while the message was discarded.
    if change.state == .sent, !state.discarded.isEmpty {
      try restore(try existing(change.message).eventID)
    }
  }

  mutating func redate(
    _ id: MessageID, as verified: VerifiedEvent
  ) throws(LogError) -> Message {
    let message = try existing(id)
    let new = verified.event.id
    if message.eventID == new { return message }
    try store(verified)
    try database.run(
      "INSERT OR REPLACE INTO redating (old, new, message, redated_at) VALUES (?, ?, ?, ?)",
      [.bytes(message.eventID.bytes), .bytes(new.bytes), .int(id.number), .time(now)])
    try database.run(
      "UPDATE message SET event = ?, channel = ? WHERE id = ?",
      [.bytes(new.bytes), .text(verified.event.group), .int(id.number)])
    // A relay that accepted the old event keeps it; no other has been handed the new one.
    try database.run(
      """
      UPDATE delivery SET event = ?, state = 'queued', attempts = 0, reason = NULL,
        next_attempt_at = NULL, handed_at = NULL, changed_at = ?
      WHERE message = ? AND state <> 'sent'
      """,
      [.bytes(new.bytes), .time(now), .int(id.number)])
    try append(.redated(old: message.eventID, new: new))
    return try existing(id)
  }

  mutating func discard(_ id: MessageID) throws(LogError) {
    let message = try existing(id)
    // What others can read is not taken back by hiding it here: that takes a deletion.
    if try isHeldElsewhere(message) { throw LogError.alreadySent(id.description) }
    if message.isDiscarded { return }
    try database.run(
      "UPDATE message SET discarded_at = ? WHERE id = ?", [.time(now), .int(id.number)])
    try database.run(
      """
      UPDATE delivery SET state = 'refused', reason = 'the message that it answers was discarded',
        next_attempt_at = NULL, changed_at = ?
      WHERE state IN ('queued', 'held') AND handed_at IS NULL
        AND message IN (SELECT id FROM message WHERE waits_for = ?)
        AND EXISTS (SELECT 1 FROM delivery d WHERE d.message = ? AND d.relay = delivery.relay
          AND d.state <> 'sent')
      """, [.time(now), .int(id.number), .int(id.number)])
    try append(.discarded(message.eventID))
    noteDiscarded(message.eventID, true)
  }

  /// Whether a relay took the message, or somebody was seen to have it.
  private func isHeldElsewhere(_ message: Message) throws(LogError) -> Bool {
    if message.deliveries.contains(where: { $0.state == .sent }) { return true }
    if message.isDiscarded, !state.discarded.contains(message.eventID) { return true }
    let served = try database.first(
      """
      SELECT 1 FROM event e WHERE e.id = ? AND (e.relay IS NOT NULL
        OR EXISTS (SELECT 1 FROM provenance p WHERE p.event = e.seq))
      """, [.bytes(message.eventID.bytes)]
    ) { $0.int(0) }
    return served != nil
  }

  /// What was being sent when the process ended: a relay that was handed the bytes may have them,
  /// and is asked; another cannot.
  func endInterruptedDeliveries() throws(LogError) {
    try database.run(
      """
      UPDATE delivery SET state = CASE WHEN handed_at IS NULL THEN 'queued' ELSE 'unknown' END
      WHERE state = 'sending'
      """)
  }

  private mutating func store(_ verified: VerifiedEvent) throws(LogError) {
    if verified.event.kind.storage == .ephemeral { throw LogError.ephemeral }
    let logged = LoggedEvent(
      event: verified.event, idForm: verified.idForm, receivedAt: now, source: nil)
    _ = try append(logged, relay: nil, with: EventWriter(database))
  }

  private func existing(_ id: MessageID) throws(LogError) -> Message {
    guard let message = try MessageRow.message(id: id, in: database) else {
      throw LogError.unknownMessage(id.description)
    }
    return message
  }
}

/// Messages and deliveries as rows.
enum MessageRow {
  static func message(id: MessageID, in database: Connection) throws(LogError) -> Message? {
    try messages("m.id = ?", [.int(id.number)], in: database).first
  }

  static func message(token: Text, in database: Connection) throws(LogError) -> Message? {
    try messages("m.token = ?", [.text(token)], in: database).first
  }

  /// The message that is, or once was, the event.
  static func message(eventID: EventID, in database: Connection) throws(LogError) -> Message? {
    let id = SQLValue.bytes(eventID.bytes)
    if let current = try messages("m.event = ?", [id], in: database).first { return current }
    return try messages(
      "m.id = (SELECT message FROM redating WHERE old = ?)", [id], in: database
    ).first
  }

  private static func messages(
    _ condition: String, _ values: [SQLValue], in database: Connection
  ) throws(LogError) -> [Message] {
    try database.rows(
      """
      SELECT m.id, m.event, m.channel, m.token, m.waits_for, m.written_at, m.discarded_at,
        (SELECT r.old FROM redating r WHERE r.message = m.id AND r.new = m.event)
      FROM message m WHERE \(condition)
      """, values
    ) { row throws(LogError) in
      let id = MessageID(row.int(0))
      guard let event = row.bytes32(1) else { throw LogError.damaged("message \(id) is not whole") }
      return Message(
        id: id, eventID: EventID(event), group: row.optionalText(2), token: row.optionalText(3),
        waitsFor: row.optionalInt(4).map { MessageID($0) }, writtenAt: row.time(5),
        redatedFrom: row.bytes32(7).map { EventID($0) }, isDiscarded: !row.isNull(6),
        deliveries: try deliveries("d.message = ?", [.int(id.number)], in: database))
    }
  }

  /// Deliveries by message, and within one by the relay's address.
  static func deliveries(
    _ condition: String, _ values: [SQLValue] = [], in database: Connection
  ) throws(LogError) -> [Delivery] {
    try database.rows(
      """
      SELECT d.message, d.event, r.url, m.channel, d.state, d.attempts, d.reason,
        d.next_attempt_at, d.handed_at, m.waits_for
      FROM delivery d JOIN message m ON m.id = d.message JOIN relay r ON r.id = d.relay
      WHERE \(condition) ORDER BY d.message, r.url
      """, values
    ) { row throws(LogError) in
      guard let event = row.bytes32(1), let relay = RelayURL(row.text(2).string),
        let state = DeliveryState(rawValue: row.text(4).string)
      else { throw LogError.damaged("a delivery of message \(row.int(0)) is not whole") }
      return Delivery(
        message: MessageID(row.int(0)), eventID: EventID(event), relay: relay,
        group: row.optionalText(3), state: state, attempts: Int(row.int(5)),
        reason: row.optionalText(6), nextAttemptAt: row.optionalTime(7),
        handedAt: row.optionalTime(8), waitsFor: row.optionalInt(9).map { MessageID($0) })
    }
  }
}
