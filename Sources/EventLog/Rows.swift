import CSQLite
import Nostr
import SyncCore

/// Writes events into the `event` table.
struct EventWriter {
  static let sql = """
    INSERT INTO event
      (seq, id, pubkey, created_at, kind, tags, content, sig, id_form, received_at, relay)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING
    """

  let database: Connection
  let statement: Statement

  init(_ database: Connection) throws(LogError) {
    self.database = database
    statement = try database.statement(Self.sql)
  }

  /// Returns the bytes that were written; nil: the id is there already.
  func insert(
    _ logged: LoggedEvent, at sequence: LogSequence, relay: Int64?
  ) throws(LogError) -> Int? {
    let event = logged.event
    let tags = CanonicalForm.tagsJSON(event.tags)
    statement.bind(sequence.number, at: 1)
    statement.bind(event.createdAt.seconds, at: 4)
    statement.bind(Int64(event.kind.number), at: 5)
    statement.bind(Int64(logged.idForm.rawValue), at: 9)
    statement.bind(logged.receivedAt.seconds, at: 10)
    if let relay { statement.bind(relay, at: 11) } else { statement.bindNull(at: 11) }
    let code = event.id.bytes.withUnsafeBytes { id in
      event.pubkey.bytes.withUnsafeBytes { author in
        event.sig.withUnsafeBytes { signature in
          tags.withUnsafeBytes { tags in
            event.content.utf8.withUnsafeBytes { content in
              statement.bindStatic(blob: id, at: 2)
              statement.bindStatic(blob: author, at: 3)
              statement.bindStatic(text: tags, at: 6)
              statement.bindStatic(text: content, at: 7)
              statement.bindStatic(blob: signature, at: 8)
              let code = sqlite3_step(statement.handle)
              statement.reset()
              return code
            }
          }
        }
      }
    }
    guard code == SQLITE_DONE else { throw database.error(code) }
    return database.changes == 0 ? nil : Self.overhead + tags.count + event.content.count
  }

  private static let overhead = 256
}

/// Reads events back.
enum EventRow {
  static let columns =
    "seq, id, pubkey, created_at, kind, tags, content, sig, id_form, received_at, relay"

  /// What the current row of `statement`, which selects `columns`, says.
  static func event(
    _ statement: Statement, relays: RelayNames
  ) throws(LogError) -> LoggedEvent {
    let kind = statement.int(4)
    guard let id = statement.bytes32(1), let author = statement.bytes32(2),
      let signature = statement.withBytes(7, { Signature($0) }),
      let tags = statement.withBytes(5, { CanonicalForm.tags(json: $0) }),
      let form = IdForm(rawValue: UInt8(clamping: statement.int(8))),
      let number = UInt16(exactly: kind)
    else { throw LogError.damaged("the event with sequence \(statement.int(0)) is not whole") }
    let event = Event(
      id: EventID(id), pubkey: PublicKey(author), createdAt: statement.time(3),
      kind: EventKind(number), tags: tags, content: statement.text(6), sig: signature)
    return LoggedEvent(
      event: event, idForm: form, receivedAt: statement.time(9),
      source: try statement.optionalInt(10).map { number throws(LogError) in
        try relays.url(number)
      })
  }

  /// About the bytes that the current row makes.
  static func size(_ statement: Statement) -> Int {
    256 + Int(sqlite3_column_bytes(statement.handle, 5))
      + Int(sqlite3_column_bytes(statement.handle, 6))
  }
}

/// Facts as rows: which columns each kind uses.
enum FactRow {
  static let columns = "seq, type, event, other, relay, value"

  private enum Kind: Int64 {
    case served = 1
    case relaySelf = 2
    case discarded = 3
    case restored = 4
    case redated = 5
  }

  static var restoredSQL: String {
    "SELECT event FROM fact WHERE type = \(Kind.restored.rawValue)"
  }

  static func insert(
    _ fact: Fact, at sequence: LogSequence, relay: Int64?, now: Timestamp,
    into database: Connection
  ) throws(LogError) {
    let kind: Kind
    var event: EventID?
    var other: Bytes32?
    switch fact {
    case .served(let id, _): (kind, event) = (.served, id)
    case .relaySelf(_, let key): (kind, other) = (.relaySelf, key?.bytes)
    case .discarded(let id): (kind, event) = (.discarded, id)
    case .restored(let id): (kind, event) = (.restored, id)
    case .redated(let old, let new): (kind, event, other) = (.redated, old, new.bytes)
    }
    try database.run(
      "INSERT INTO fact (seq, type, event, other, relay, noted_at) VALUES (?, ?, ?, ?, ?, ?)",
      [
        .int(sequence.number), .int(kind.rawValue), .bytes(event?.bytes), .bytes(other),
        relay.map { .int($0) } ?? .null, .time(now),
      ])
  }

  static func fact(_ statement: Statement, relays: RelayNames) throws(LogError) -> Fact {
    let id = statement.bytes32(2).map { EventID($0) }
    let other = statement.bytes32(3)
    let url = try statement.optionalInt(4).map { number throws(LogError) in
      try relays.url(number)
    }
    switch (Kind(rawValue: statement.int(1)), id, other, url) {
    case (.served, let id?, _, let url?): return .served(id, by: url)
    case (.relaySelf, _, let key, let url?): return .relaySelf(url, key.map { PublicKey($0) })
    case (.discarded, let id?, _, _): return .discarded(id)
    case (.restored, let id?, _, _): return .restored(id)
    case (.redated, let old?, let new?, _): return .redated(old: old, new: EventID(new))
    default:
      throw LogError.damaged("the fact with sequence \(statement.int(0)) is not whole")
    }
  }
}

/// The relays' numbers and addresses as one connection has seen them; rows are only ever added.
final class RelayNames {
  private let database: Connection
  private var urls: [Int64: RelayURL] = [:]

  init(_ database: Connection) { self.database = database }

  func url(_ number: Int64) throws(LogError) -> RelayURL {
    if let known = urls[number] { return known }
    let text = try database.first("SELECT url FROM relay WHERE id = ?", [.int(number)]) {
      $0.text(0)
    }
    guard let text, let url = RelayURL(text.string) else {
      throw LogError.damaged("relay \(number) has no address")
    }
    urls[number] = url
    return url
  }

  func number(_ url: RelayURL) throws(LogError) -> Int64? {
    try database.first("SELECT id FROM relay WHERE url = ?", [.string(url.description)]) {
      $0.int(0)
    }
  }
}
