public import Nostr
import Platform
public import SyncCore

/// Answers from the log: short reads over a connection that cannot write.
///
/// Every call may block, so actors on the cooperative pool must not make it. Calls from several
/// threads take turns. Beside a writer it sees everything that was committed before the call.
public final class LogReader: Sendable {
  private let path: String
  private let options: LogOptions
  /// Shared with the writer of this process; nil: another process writes, or none.
  private let tail: LogTail?
  private let state: Lock<State>

  private struct State {
    var connection: OpenConnection?
    var isClosed = false
  }

  private struct OpenConnection {
    let database: Connection
    let relays: RelayNames
  }

  /// Opens its connection at the first question.
  init(path: String, options: LogOptions, tail: LogTail?) {
    self.path = path
    self.options = options
    self.tail = tail
    state = Lock(State())
  }

  /// Opens a log for reading alone: beside a process that writes, or on a disk that cannot be
  /// written. It changes nothing in the file. One that was never finished being made is an empty log.
  public static func open(
    path: String, options: LogOptions = LogOptions()
  ) throws(LogError) -> LogReader {
    let reader = LogReader(path: path, options: options, tail: nil)
    _ = try reader.head()
    return reader
  }

  /// Ends the use of the file, once running calls are done. Later calls throw `LogError.closed`.
  public func close() {
    state.withLock { state in
      state.isClosed = true
      state.connection?.database.close()
      state.connection = nil
    }
  }

  // MARK: The sequence

  static let headSQL = """
    SELECT max(ifnull((SELECT max(seq) FROM event), 0), ifnull((SELECT max(seq) FROM fact), 0))
    """

  /// The last sequence committed.
  public func head() throws(LogError) -> LogSequence {
    if let tail { return tail.head }
    return try read { database, _ throws(LogError) in
      LogSequence(try database.number(Self.headSQL))
    }
  }

  /// The entries after `sequence` in order, at most `limit`, and fewer where they are large; none
  /// only at the end of the log.
  public func entries(after sequence: LogSequence, limit: Int) throws(LogError) -> [LogEntry] {
    guard limit > 0 else { return [] }
    let head = try head()
    guard sequence < head else { return [] }
    if let recent = tail?.entries(after: sequence, limit: limit) { return recent }
    // The count has no gaps, so a span of it is as many rows.
    let (sum, overflow) = sequence.number.addingReportingOverflow(Int64(limit))
    let last = overflow ? head : min(head, LogSequence(sum))
    return try read { database, relays throws(LogError) in
      try Self.entries(
        after: sequence, through: last, bytesMax: options.readBytesMax, in: database,
        relays: relays)
    }
  }

  private static func entries(
    after first: LogSequence, through last: LogSequence, bytesMax: Int, in database: Connection,
    relays: RelayNames
  ) throws(LogError) -> [LogEntry] {
    let span: [SQLValue] = [.int(first.number), .int(last.number)]
    let facts = try database.rows(
      "SELECT \(FactRow.columns) FROM fact WHERE seq > ? AND seq <= ? ORDER BY seq", span
    ) { row throws(LogError) in
      LogEntry(
        sequence: LogSequence(row.int(0)), body: .fact(try FactRow.fact(row, relays: relays)))
    }
    var result: [LogEntry] = []
    var pending = facts[...]
    func takeFacts(before sequence: Int64) {
      while let fact = pending.first, fact.sequence.number < sequence {
        result.append(fact)
        pending = pending.dropFirst()
      }
    }
    let events = try database.statement(
      "SELECT \(EventRow.columns) FROM event WHERE seq > ? AND seq <= ? ORDER BY seq")
    defer { events.reset() }
    events.bind(span)
    var bytes = 0
    while try events.step() {
      takeFacts(before: events.int(0))
      bytes += EventRow.size(events)
      if bytes > bytesMax && !result.isEmpty { return result }
      result.append(
        LogEntry(
          sequence: LogSequence(events.int(0)),
          body: .event(try EventRow.event(events, relays: relays))))
    }
    takeFacts(before: .max)
    return result
  }

  // MARK: Events

  public func event(id: EventID) throws(LogError) -> LoggedEvent? {
    try read { database, relays throws(LogError) in
      try database.first(
        "SELECT \(EventRow.columns) FROM event WHERE id = ?", [.bytes(id.bytes)]
      ) { row throws(LogError) in try EventRow.event(row, relays: relays) }
    }
  }

  /// The ids held that begin with these hex digits, in order.
  public func eventIDs(beginning digits: String, limit: Int) throws(LogError) -> [EventID] {
    let missing = 64 - digits.utf8.count
    guard missing >= 0, let low = EventID(hex: digits + String(repeating: "0", count: missing)),
      let high = EventID(hex: digits + String(repeating: "f", count: missing))
    else { return [] }
    return try read { database, _ throws(LogError) in
      try database.rows(
        "SELECT id FROM event WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?",
        [.bytes(low.bytes), .bytes(high.bytes), .int(Int64(limit))]
      ) { row throws(LogError) in
        guard let id = row.bytes32(0) else { throw LogError.damaged("an event has no whole id") }
        return EventID(id)
      }
    }
  }

  /// The events with these sequences, in the order asked; nil where a sequence is none's or a fact's.
  public func events(at sequences: [LogSequence]) throws(LogError) -> [LoggedEvent?] {
    try read { database, relays throws(LogError) in
      var result: [LoggedEvent?] = []
      result.reserveCapacity(sequences.count)
      for sequence in sequences {
        result.append(
          try database.first(
            "SELECT \(EventRow.columns) FROM event WHERE seq = ?", [.int(sequence.number)]
          ) { row throws(LogError) in try EventRow.event(row, relays: relays) })
      }
      return result
    }
  }

  public func sequence(of id: EventID) throws(LogError) -> LogSequence? {
    try read { database, _ throws(LogError) in
      try database.first("SELECT seq FROM event WHERE id = ?", [.bytes(id.bytes)]) {
        LogSequence($0.int(0))
      }
    }
  }

  /// The kind of an event; nil where the log has none of that id.
  public func kind(of id: EventID) throws(LogError) -> EventKind? {
    try read { database, _ throws(LogError) in
      try database.first("SELECT kind FROM event WHERE id = ?", [.bytes(id.bytes)]) {
        EventKind(UInt16(truncatingIfNeeded: $0.int(0)))
      }
    }
  }

  /// The relays that served an event, the first of them first, and when each did.
  public func provenance(
    of id: EventID
  ) throws(LogError) -> [(relay: RelayURL, firstSeen: Timestamp)] {
    try read { database, relays throws(LogError) in
      try database.rows(
        """
        SELECT relay, received_at FROM event WHERE id = ?1 AND relay IS NOT NULL
        UNION ALL
        SELECT relay, first_seen FROM provenance
        WHERE event = (SELECT seq FROM event WHERE id = ?1)
        ORDER BY 2, 1
        """, [.bytes(id.bytes)]
      ) { row throws(LogError) in (relay: try relays.url(row.int(0)), firstSeen: row.time(1)) }
    }
  }

  // MARK: Connections

  func read<Result: Sendable>(
    _ body: (Connection, RelayNames) throws(LogError) -> Result
  ) throws(LogError) -> Result {
    try state.withLock { state throws(LogError) -> Result in
      if state.isClosed { throw LogError.closed }
      if let open = state.connection { return try body(open.database, open.relays) }
      let reading = try LogFile.openForReading(path: path, options: options)
      let open = OpenConnection(database: reading.database, relays: RelayNames(reading.database))
      guard reading.isUnmade || reading.isAlone else {
        state.connection = open
        return try body(open.database, open.relays)
      }
      // Somebody may be making it, or wants it too: the next question looks at the file again.
      defer { reading.database.close() }
      return try body(open.database, open.relays)
    }
  }

  /// Runs a long piece of work on a connection of its own, so that short reads need not wait.
  func readAlone<Result>(
    _ body: (Connection, RelayNames) throws(LogError) -> Result
  ) throws(LogError) -> Result {
    if state.withLock({ $0.isClosed }) { throw LogError.closed }
    let database = try LogFile.openForReading(path: path, options: options).database
    defer { database.close() }
    return try body(database, RelayNames(database))
  }

  /// The main file and what is not yet folded into it.
  var bytesOnDisk: Int { (FileSize.of(path) ?? 0) + (FileSize.of(path + "-wal") ?? 0) }
}
