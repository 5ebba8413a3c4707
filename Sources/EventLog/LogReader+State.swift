public import Nostr
public import SyncCore

extension LogReader {
  /// The 16 bytes that name this log for as long as it lives.
  public func logID() throws(LogError) -> [UInt8] {
    try read { database, _ throws(LogError) in
      try database.first("SELECT value FROM meta WHERE key = 'log_id'") { $0.bytes(0) } ?? []
    }
  }

  /// What is proved, by relay and scope, sorted.
  ///
  /// - Parameter now: Leaves out what was proved later than this, under a clock that was ahead; nil
  ///   gives all.
  public func coverage(asOf now: Timestamp?) throws(LogError) -> [LoggedCoverage] {
    let rows = try read { database, relays throws(LogError) in
      try database.rows(
        """
        SELECT c.from_at, c.to_at, c.proved_at, c.method, c.relay, s.filter
        FROM coverage c JOIN scope s ON s.id = c.scope ORDER BY c.relay, c.scope, c.from_at
        """
      ) { row throws(LogError) in
        LoggedCoverage(
          relay: try relays.url(row.int(4)), scope: row.text(5),
          intervals: [try CoverageRow.interval(row)])
      }
    }
    let joined = rows.reduce(into: [LoggedCoverage]()) { result, row in
      if let now, !row.intervals.allSatisfy({ $0.isBelievable(at: now) }) { return }
      if let last = result.last, last.relay == row.relay, last.scope == row.scope {
        result[result.count - 1] = LoggedCoverage(
          relay: last.relay, scope: last.scope, intervals: last.intervals + row.intervals)
      } else {
        result.append(row)
      }
    }
    return joined.sorted { ($0.relay, $0.scope) < ($1.relay, $1.scope) }
  }

  /// What is proved about one scope at one relay.
  ///
  /// - Parameter now: Leaves out what was proved later than this, under a clock that was ahead.
  public func coverage(
    relay: RelayURL, scope: Scope, asOf now: Timestamp
  ) throws(LogError) -> CoverageMap {
    try read { database, _ throws(LogError) in
      CoverageMap(
        try database.rows(
          """
          SELECT from_at, to_at, proved_at, method FROM coverage
          WHERE relay = (SELECT id FROM relay WHERE url = ?)
            AND scope = (SELECT id FROM scope WHERE filter = ?) ORDER BY from_at
          """, [.string(relay.description), .text(scope.key)]
        ) { row throws(LogError) in try CoverageRow.interval(row) }
        .filter { $0.isBelievable(at: now) })
    }
  }

  /// The spans that could not be proved, by relay, scope and time.
  public func gaps() throws(LogError) -> [CoverageGap] {
    let gaps = try read { database, relays throws(LogError) in
      try database.rows(
        """
        SELECT g.from_at, g.to_at, g.why, g.relay, s.filter
        FROM gap g JOIN scope s ON s.id = g.scope
        """
      ) { row throws(LogError) in
        let entry = try CoverageRow.gap(row)
        return CoverageGap(
          relay: try relays.url(row.int(3)), scope: try Self.scope(row.text(4)),
          from: entry.from, to: entry.to, why: entry.why)
      }
    }
    return gaps.sorted { ($0.relay, $0.scope, $0.from) < ($1.relay, $1.scope, $1.from) }
  }

  /// Deliveries of messages that were not discarded, by message and relay.
  public func deliveries(includingSent: Bool) throws(LogError) -> [Delivery] {
    try read { database, _ throws(LogError) in
      try MessageRow.deliveries(
        "m.discarded_at IS NULL" + (includingSent ? "" : " AND d.state <> 'sent'"), in: database)
    }
  }

  public func message(id: MessageID) throws(LogError) -> Message? {
    try read { database, _ throws(LogError) in try MessageRow.message(id: id, in: database) }
  }

  /// The message that is, or before a re-dating was, the event.
  public func message(eventID: EventID) throws(LogError) -> Message? {
    try read { database, _ throws(LogError) in
      try MessageRow.message(eventID: eventID, in: database)
    }
  }

  public func message(token: Text) throws(LogError) -> Message? {
    try read { database, _ throws(LogError) in try MessageRow.message(token: token, in: database) }
  }

  /// The latest date among the messages written last, or last before one of them; nil where there
  /// is none.
  public func lastWrittenDate(before message: MessageID? = nil) throws(LogError) -> Timestamp? {
    try read { database, _ throws(LogError) in
      try database.first(
        """
        SELECT max(created_at) FROM (SELECT e.created_at FROM message m JOIN event e ON e.id = m.event
          WHERE m.id < ? ORDER BY m.id DESC LIMIT 20)
        """, [.int(message?.number ?? .max)]
      ) { $0.optionalTime(0) } ?? nil
    }
  }

  public func setting(_ key: String) throws(LogError) -> [UInt8]? {
    try read { database, _ throws(LogError) in
      try database.first("SELECT value FROM setting WHERE key = ?", [.string(key)]) { $0.bytes(0) }
    }
  }

  /// The settings whose key begins with `prefix`, by key.
  public func settings(prefix: String) throws(LogError) -> [(key: String, value: [UInt8])] {
    try read { database, _ throws(LogError) in
      try database.rows(
        "SELECT key, value FROM setting WHERE substr(key, 1, ?) = ? ORDER BY key",
        [.int(Int64(prefix.unicodeScalars.count)), .string(prefix)]
      ) { (key: $0.text(0).string, value: $0.bytes(1)) }
    }
  }

  /// Every relay that was ever named, by address.
  public func relays() throws(LogError) -> [RelayURL] {
    try read { database, _ throws(LogError) in
      try database.rows("SELECT url FROM relay") { RelayURL($0.text(0).string) }
        .compactMap { $0 }.sorted()
    }
  }

  public func counts() throws(LogError) -> LogCounts {
    let bytes = bytesOnDisk
    return try read { database, relays throws(LogError) in
      let facts = try database.number("SELECT count(*) FROM fact")
      let head = try database.number(Self.headSQL)
      let rejects = try database.rows("SELECT relay, reason, count FROM reject_count") {
        row throws(LogError) in
        let relay = row.int(0)
        return RejectCount(
          relay: relay == 0 ? nil : try relays.url(relay), reason: row.text(1).string,
          count: Int(row.int(2)))
      }
      // The count of sequences has no gaps, so what is not a fact is an event.
      return LogCounts(
        events: Int(head - facts), facts: Int(facts), bytes: bytes,
        rejects: rejects.sorted {
          ($0.relay?.description ?? "", $0.reason) < ($1.relay?.description ?? "", $1.reason)
        }, faults: try Self.faults(in: database, relays: relays))
    }
  }

  private static func faults(
    in database: Connection, relays: RelayNames
  ) throws(LogError) -> [FaultCount] {
    // A log that was not opened for writing since has none to tell of.
    guard try database.number("PRAGMA user_version") >= 2 else { return [] }
    let faults = try database.rows("SELECT relay, reason, count, last_at FROM peer_fault") {
      row throws(LogError) in
      FaultCount(
        relay: try relays.url(row.int(0)), reason: row.text(1).string, count: Int(row.int(2)),
        lastAt: row.time(3))
    }
    return faults.sorted { ($0.relay, $0.reason) < ($1.relay, $1.reason) }
  }

  /// The rejects noted last, newest first.
  public func rejects(limit: Int) throws(LogError) -> [LoggedReject] {
    try read { database, relays throws(LogError) in
      try database.rows(
        """
        SELECT relay, event, reason, detail, line, rejected_at FROM reject
        ORDER BY number DESC LIMIT ?
        """, [.int(Int64(limit))]
      ) { row throws(LogError) in
        LoggedReject(
          relay: try row.optionalInt(0).map { number throws(LogError) in
            try relays.url(number)
          },
          reject: Reject(
            id: row.optionalText(1), reason: row.text(2).string, detail: row.optionalText(3),
            line: row.optionalInt(4).map { Int($0) }),
          rejectedAt: row.time(5))
      }
    }
  }

  static func scope(_ key: Text) throws(LogError) -> Scope {
    do throws(FilterError) {
      return Scope(try Filter(json: key.utf8))
    } catch {
      throw LogError.damaged("a scope is not a filter: \(key)")
    }
  }
}

extension LogReader {
  /// How many entries the log at `path` had when it was last closed in order; nil where nothing
  /// tells.
  public static func entriesNoted(path: String) -> Int64? {
    LogMark.read(for: path)?.mark.head.number
  }
}
