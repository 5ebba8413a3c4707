public import Nostr
import SyncCore

/// Which events of the log are exported; unset fields ask for all.
public struct ExportSelection: Sendable, Hashable {
  /// Events that name the group, its state by `d`, and what is about those without naming it.
  public var group: Text?
  public var kinds: [EventKind]?
  public var since: Timestamp?
  public var until: Timestamp?

  public init(
    group: Text? = nil, kinds: [EventKind]? = nil, since: Timestamp? = nil,
    until: Timestamp? = nil
  ) {
    self.group = group
    self.kinds = kinds
    self.since = since
    self.until = until
  }
}

extension LogReader {
  /// Calls `body` with every event selected, by time and then by id, until it returns false. It
  /// shows the log as it was at the call; memory is bounded, and no read is open while `body` runs.
  ///
  /// - Returns: How many events `body` was given.
  @discardableResult
  public func export(
    _ selection: ExportSelection = ExportSelection(), _ body: (LoggedEvent) -> Bool
  ) throws(LogError) -> Int {
    try readAlone { database, relays throws(LogError) in
      // Sorting happens in temporary files. The log's rows never change, so their sequences in the
      // right order are as good as a snapshot, and pin nothing.
      try database.execute(
        """
        PRAGMA temp_store = FILE;
        CREATE TEMP TABLE picked (place INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
        """)
      if let group = selection.group {
        try GroupSelection(group: group, database: database).choose()
      }
      try Self.pick(selection, in: database)
      return try Self.give(from: database, relays: relays, body)
    }
  }

  private static func pick(
    _ selection: ExportSelection, in database: Connection
  ) throws(LogError) {
    var conditions: [String] = []
    var values: [SQLValue] = []
    if selection.group != nil { conditions.append("seq IN (SELECT seq FROM temp.chosen)") }
    if let kinds = selection.kinds {
      let numbers = Set(kinds).sorted().map(\.description).joined(separator: ", ")
      conditions.append("kind IN (\(numbers))")
    }
    if let since = selection.since {
      conditions.append("created_at >= ?")
      values.append(.time(since))
    }
    if let until = selection.until {
      conditions.append("created_at <= ?")
      values.append(.time(until))
    }
    let condition = conditions.isEmpty ? "" : "WHERE " + conditions.joined(separator: " AND ")
    try database.run(
      "INSERT INTO temp.picked (seq) SELECT seq FROM event \(condition) ORDER BY created_at, id",
      values)
  }

  private static func give(
    from database: Connection, relays: RelayNames, _ body: (LoggedEvent) -> Bool
  ) throws(LogError) -> Int {
    var place: Int64 = 0
    var given = 0
    while true {
      let chunk = try chunk(after: place, in: database, relays: relays)
      guard let last = chunk.last else { return given }
      place = last.place
      for row in chunk {
        given += 1
        if !body(row.event) { return given }
      }
    }
  }

  private static func chunk(
    after place: Int64, in database: Connection, relays: RelayNames
  ) throws(LogError) -> [(place: Int64, event: LoggedEvent)] {
    let statement = try database.statement(
      """
      SELECT \(EventRow.columns), place FROM temp.picked JOIN main.event USING (seq)
      WHERE place > ? ORDER BY place LIMIT 256
      """)
    defer { statement.reset() }
    statement.bind([.int(place)])
    var result: [(place: Int64, event: LoggedEvent)] = []
    var bytes = 0
    while bytes < 1 << 20, try statement.step() {
      bytes += EventRow.size(statement)
      result.append((statement.int(11), try EventRow.event(statement, relays: relays)))
    }
    return result
  }
}

/// The events that belong to one group, as a temporary table `chosen`.
struct GroupSelection {
  let group: Text
  let database: Connection

  /// The relay's statements about a group, which name it by `d`.
  private static let stateKinds = "39000, 39001, 39002, 39003, 39005"
  /// What is about another event and need not name its group: deletions, reactions, receipts, edits.
  private static let followerKinds = "5, 7, 9005, 9735, 40003"

  func choose() throws(LogError) {
    try database.execute(
      """
      CREATE TEMP TABLE chosen (seq INTEGER PRIMARY KEY);
      CREATE TEMP TABLE name (key BLOB NOT NULL PRIMARY KEY, seq INTEGER) WITHOUT ROWID;
      CREATE TEMP TABLE follower (seq INTEGER NOT NULL, key BLOB NOT NULL);
      """)
    // In canonical JSON a quote inside a string is always escaped, so these bytes can only be the
    // beginning of such a tag.
    try database.run(
      "INSERT INTO temp.chosen (seq) SELECT seq FROM event WHERE instr(tags, ?) > 0",
      [.text(tagStart("h"))])
    try chooseState()
    try collectFollowers()
    repeat { try nameChosen() } while try chooseFollowers() > 0
  }

  private func tagStart(_ name: Text) -> Text {
    // Without the two brackets at the end: the tag may go on.
    Text(utf8: CanonicalForm.tagsJSON(Tags([[name, group]])).dropFirst().dropLast(2))
  }

  private func chooseState() throws(LogError) {
    let found = try database.rows(
      """
      SELECT seq, tags FROM event WHERE kind IN (\(Self.stateKinds)) AND instr(tags, ?) > 0
      """, [.text(tagStart("d"))]
    ) { (sequence: $0.int(0), tags: $0.withBytes(1) { CanonicalForm.tags(json: $0) }) }
    for row in found where row.tags?.first(named: "d")?.value(1) == group {
      try database.run("INSERT OR IGNORE INTO temp.chosen (seq) VALUES (?)", [.int(row.sequence)])
    }
  }

  private func collectFollowers() throws(LogError) {
    let statement = try database.statement(
      """
      SELECT seq, tags FROM event
      WHERE kind IN (\(Self.followerKinds)) AND instr(tags, '["h",') = 0
      """)
    defer { statement.reset() }
    while try statement.step() {
      guard let tags = statement.withBytes(1, { CanonicalForm.tags(json: $0) }) else { continue }
      let sequence = SQLValue.int(statement.int(0))
      for tag in tags {
        guard let key = target(of: tag) else { continue }
        try database.run(
          "INSERT INTO temp.follower (seq, key) VALUES (?, ?)", [sequence, .blob(key)])
      }
    }
  }

  private func target(of tag: Tag) -> [UInt8]? {
    switch tag.letter {
    case UInt8(ascii: "e"): tag.bytes32(1)?.array
    case UInt8(ascii: "a"): tag.value(1).map { Array($0.utf8) }
    default: nil
    }
  }

  /// Gives every chosen event the names that others call it by: its id, and its address.
  private func nameChosen() throws(LogError) {
    try database.run(
      """
      INSERT OR IGNORE INTO temp.name (key, seq)
      SELECT id, seq FROM event WHERE seq IN (SELECT seq FROM temp.chosen)
      """)
    let addressable = try database.rows(
      """
      SELECT seq, kind, pubkey, tags FROM event
      WHERE seq IN (SELECT seq FROM temp.chosen) AND kind BETWEEN 30000 AND 39999
      """
    ) { row in
      let tags = row.withBytes(3) { CanonicalForm.tags(json: $0) } ?? .none
      let identifier = tags.first(named: "d")?.value(1) ?? .empty
      let start = "\(row.int(1)):\(row.bytes32(2)?.hex ?? ""):"
      return (sequence: row.int(0), address: Array(start.utf8) + identifier.utf8)
    }
    for row in addressable {
      try database.run(
        "INSERT OR IGNORE INTO temp.name (key, seq) VALUES (?, ?)",
        [.blob(row.address), .int(row.sequence)])
    }
  }

  private func chooseFollowers() throws(LogError) -> Int {
    try database.run(
      """
      INSERT OR IGNORE INTO temp.chosen (seq)
      SELECT DISTINCT seq FROM temp.follower WHERE key IN (SELECT key FROM temp.name)
      """)
  }
}
