import Nostr
import SyncCore

extension LogReader {
  /// What is wrong with the file, as sentences; none: nothing. It reads all of it.
  public func integrity() throws(LogError) -> [String] {
    try readAlone { database, _ throws(LogError) in
      var problems = try database.rows("PRAGMA quick_check(20)") { $0.text(0).string }
        .filter { $0 != "ok" }
      for rule in Self.rules {
        let broken = try database.number(rule.sql)
        if broken != 0 { problems.append("\(rule.name): \(broken)") }
      }
      problems += try Self.sequenceProblems(in: database)
      problems += try Self.coverageProblems(in: database)
      return problems
    }
  }

  /// The first thing that is wrong with how the file is built, however it was made; nil: nothing.
  /// What the rows say is not looked at.
  func structureProblem(_ interruption: Interruption) throws(LogError) -> String? {
    try readAlone { database, _ throws(LogError) in
      try interruption.run(database) { () throws(LogError) in
        try database.first("PRAGMA quick_check(1)") { $0.text(0).string }.flatMap {
          $0 == "ok" ? nil : $0
        }
      }
    }
  }

  /// Each statement counts what breaks the rule.
  private static let rules: [(name: String, sql: String)] = [
    ("facts with the sequence of an event", "SELECT count(*) FROM fact JOIN event USING (seq)"),
    (
      "sequences below 1",
      """
      SELECT (SELECT count(*) FROM event WHERE seq < 1) + (SELECT count(*) FROM fact WHERE seq < 1)
      """
    ),
    (
      "ids used twice",
      "SELECT (SELECT count(*) FROM event NOT INDEXED) - (SELECT count(DISTINCT id) FROM event)"
    ),
    (
      "events with fields of a wrong size",
      """
      SELECT count(*) FROM event WHERE length(id) <> 32 OR length(pubkey) <> 32
        OR length(sig) <> 64 OR kind NOT BETWEEN 0 AND 65535 OR created_at < 0
        OR id_form NOT BETWEEN 0 AND 2
      """
    ),
    (
      "stored events of ephemeral kinds",
      "SELECT count(*) FROM event WHERE kind BETWEEN 20000 AND 29999"
    ),
    (
      "events or proofs of unknown relays",
      """
      SELECT (SELECT count(*) FROM event
          WHERE relay IS NOT NULL AND relay NOT IN (SELECT id FROM relay))
        + (SELECT count(*) FROM provenance WHERE relay NOT IN (SELECT id FROM relay))
        + (SELECT count(*) FROM coverage WHERE relay NOT IN (SELECT id FROM relay))
        + (SELECT count(*) FROM gap WHERE relay NOT IN (SELECT id FROM relay))
      """
    ),
    (
      "provenance of no event",
      "SELECT count(*) FROM provenance WHERE event NOT IN (SELECT seq FROM event)"
    ),
    (
      "messages and deliveries without their event",
      """
      SELECT (SELECT count(*) FROM message WHERE event NOT IN (SELECT id FROM event))
        + (SELECT count(*) FROM delivery WHERE event NOT IN (SELECT id FROM event))
        + (SELECT count(*) FROM delivery WHERE message NOT IN (SELECT id FROM message))
      """
    ),
    (
      "deliveries in no known state",
      """
      SELECT count(*) FROM delivery WHERE state NOT IN
        ('queued', 'sending', 'unknown', 'held', 'refused', 'expired', 'sent')
      """
    ),
  ]

  /// Every number from 1 to the last belongs to one entry.
  private static func sequenceProblems(in database: Connection) throws(LogError) -> [String] {
    let surplus = try database.number(
      """
      SELECT (SELECT count(*) FROM event NOT INDEXED) + (SELECT count(*) FROM fact)
        - max(ifnull((SELECT max(seq) FROM event), 0), ifnull((SELECT max(seq) FROM fact), 0))
      """)
    if surplus == 0 { return [] }
    return surplus < 0
      ? ["entries missing between the first and the last: \(-surplus)"]
      : ["entries more than sequences, so some are used twice: \(surplus)"]
  }

  private static func coverageProblems(in database: Connection) throws(LogError) -> [String] {
    let overlaps = """
      SELECT count(*) FROM (
        SELECT from_at, to_at, lag(to_at) OVER (PARTITION BY relay, scope ORDER BY from_at) AS before
        FROM %)
      WHERE from_at > to_at OR before >= from_at
      """
    var problems: [String] = []
    for table in ["coverage", "gap"] {
      let sql = overlaps.split(separator: "%").joined(separator: table)
      let broken = try database.number(sql)
      if broken != 0 {
        problems.append("\(table) rows that overlap or end before they begin: \(broken)")
      }
    }
    return problems
  }
}
