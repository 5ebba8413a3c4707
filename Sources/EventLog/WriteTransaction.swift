import Nostr
import SyncCore

/// What the writer remembers of the file between two transactions.
struct WriterState {
  var head = LogSequence.start
  var relays: [RelayURL: Int64] = [:]
  var scopes: [Text: Int64] = [:]
  /// Events of messages that were discarded; a relay that serves one brings it back.
  var discarded: Set<EventID> = []
  private var dataVersion: Int64?

  /// Reads everything anew where another connection wrote since.
  mutating func refresh(from database: Connection) throws(LogError) {
    let version = try database.number("PRAGMA data_version")
    guard version != dataVersion else { return }
    dataVersion = version
    head = LogSequence(try database.number(LogReader.headSQL))
    relays = [:]
    scopes = [:]
    discarded = try Self.events(
      "SELECT event FROM message WHERE discarded_at IS NOT NULL", database)
    // What was restored once stays so: that somebody else has it is never unsaid.
    if !discarded.isEmpty {
      discarded.subtract(try Self.events(FactRow.restoredSQL, database))
    }
  }

  private static func events(_ sql: String, _ database: Connection) throws(LogError) -> Set<EventID>
  {
    let ids = try database.rows(sql) { $0.bytes32(0) }
    return Set(ids.compactMap { $0 }.map { EventID($0) })
  }
}

/// One transaction of the writer: what it changes in the file, and what will be true of the log
/// once it is committed.
struct WriteTransaction {
  let database: Connection
  let now: Timestamp
  private(set) var state: WriterState
  /// The new entries, and about how many bytes each keeps alive.
  private(set) var entries: [LogEntry] = []
  private(set) var sizes: [Int] = []

  init(_ database: Connection, state: WriterState, now: Timestamp) throws(LogError) {
    self.database = database
    self.now = now
    self.state = state
    try self.state.refresh(from: database)
  }

  // MARK: Entries

  /// Appends an event; nil: the log has one with this id.
  mutating func append(
    _ logged: LoggedEvent, relay: Int64?, with writer: EventWriter
  ) throws(LogError) -> LogSequence? {
    let sequence = state.head.next
    guard let size = try writer.insert(logged, at: sequence, relay: relay) else { return nil }
    add(LogEntry(sequence: sequence, body: .event(logged)), size: size)
    return sequence
  }

  @discardableResult
  mutating func append(_ fact: Fact) throws(LogError) -> LogSequence {
    let sequence = state.head.next
    var relay: Int64?
    switch fact {
    case .served(_, let url), .relaySelf(let url, _): relay = try number(of: url)
    case .discarded, .restored, .redated: break
    }
    try FactRow.insert(fact, at: sequence, relay: relay, now: now, into: database)
    add(LogEntry(sequence: sequence, body: .fact(fact)), size: 128)
    return sequence
  }

  private mutating func add(_ entry: LogEntry, size: Int) {
    entries.append(entry)
    sizes.append(size)
    state.head = entry.sequence
  }

  // MARK: Names

  mutating func number(of relay: RelayURL) throws(LogError) -> Int64 {
    if let known = state.relays[relay] { return known }
    let number = try Self.number(
      of: .string(relay.description), in: database,
      find: "SELECT id FROM relay WHERE url = ?", add: "INSERT INTO relay (url) VALUES (?)")
    state.relays[relay] = number
    return number
  }

  mutating func number(of scope: Scope) throws(LogError) -> Int64 {
    if let known = state.scopes[scope.key] { return known }
    let number = try Self.number(
      of: .text(scope.key), in: database,
      find: "SELECT id FROM scope WHERE filter = ?", add: "INSERT INTO scope (filter) VALUES (?)")
    state.scopes[scope.key] = number
    return number
  }

  private static func number(
    of name: SQLValue, in database: Connection, find: String, add: String
  ) throws(LogError) -> Int64 {
    if let known = try database.first(find, [name], { $0.int(0) }) { return known }
    try database.run(add, [name])
    return database.lastRow
  }

  mutating func noteDiscarded(_ id: EventID, _ isDiscarded: Bool) {
    if isDiscarded { state.discarded.insert(id) } else { state.discarded.remove(id) }
  }

  // MARK: Settings

  func set(_ key: String, to value: [UInt8]?) throws(LogError) {
    guard let value else {
      try database.run("DELETE FROM setting WHERE key = ?", [.string(key)])
      return
    }
    try database.run(
      """
      INSERT INTO setting (key, value, changed_at) VALUES (?, ?, ?)
      ON CONFLICT (key) DO UPDATE SET value = excluded.value, changed_at = excluded.changed_at
      """,
      [.string(key), .blob(value), .time(now)])
  }
}
