import Nostr
import NostrCrypto
import SyncCore

extension WriteTransaction {
  mutating func ingest(_ batch: IngestBatch, rejectsMax: Int) throws(LogError) -> IngestResult {
    let relay: Int64? = if let url = batch.source { try number(of: url) } else { nil }
    let writer = try EventWriter(database)
    var admissions: [Admission] = []
    admissions.reserveCapacity(batch.events.count)
    var ephemeral: [VerifiedEvent] = []
    var appended = 0
    for verified in batch.events {
      if verified.event.kind.storage == .ephemeral {
        ephemeral.append(verified)
        admissions.append(.ephemeral)
        continue
      }
      let logged = LoggedEvent(
        event: verified.event, idForm: verified.idForm, receivedAt: batch.receivedAt,
        source: batch.source)
      if let sequence = try append(logged, relay: relay, with: writer) {
        appended += 1
        admissions.append(.appended(sequence))
      } else {
        try noteProvenance(of: logged, relay: relay)
        try restore(logged.event.id)
        admissions.append(.duplicate)
      }
    }
    try note(batch.rejected, from: relay, at: batch.receivedAt, max: rejectsMax)
    // Gaps first: where one and the same batch brings both, the proof holds.
    for gap in batch.gaps { try write(gap) }
    for proof in batch.proofs { try write(proof) }
    return IngestResult(
      admissions: admissions, head: state.head, appended: appended,
      duplicates: batch.events.count - appended - ephemeral.count, ephemeral: ephemeral)
  }

  /// Notes that a relay has an event which the log had already.
  private mutating func noteProvenance(
    of logged: LoggedEvent, relay: Int64?
  ) throws(LogError) {
    guard let relay, let source = logged.source else { return }
    let id = logged.event.id
    let known = try database.first(
      "SELECT seq, relay FROM event WHERE id = ?", [.bytes(id.bytes)]
    ) { (sequence: $0.int(0), relay: $0.optionalInt(1)) }
    guard let known, known.relay != relay else { return }
    let added = try database.run(
      """
      INSERT INTO provenance (event, relay, first_seen) VALUES (?, ?, ?)
      ON CONFLICT (event, relay) DO NOTHING
      """,
      [.int(known.sequence), .int(relay), .time(logged.receivedAt)])
    if added > 0 { try append(.served(id, by: source)) }
  }

  /// Discarding hid what had not been said; now somebody else, a relay or a file, shows that it was.
  /// Whether that was known before does not matter: what is hidden and served would be missing in
  /// answers that are called complete.
  mutating func restore(_ id: EventID) throws(LogError) {
    guard state.discarded.contains(id) else { return }
    try append(.restored(id))
    noteDiscarded(id, false)
  }

  // MARK: Rejects

  private func note(
    _ rejects: [Reject], from relay: Int64?, at time: Timestamp, max: Int
  ) throws(LogError) {
    guard !rejects.isEmpty else { return }
    var counts: [String: Int64] = [:]
    for reject in rejects { counts[reject.reason, default: 0] += 1 }
    for (reason, count) in counts.sorted(by: { $0.key < $1.key }) {
      try database.run(
        """
        INSERT INTO reject_count (relay, reason, count) VALUES (?, ?, ?)
        ON CONFLICT (relay, reason) DO UPDATE SET count = count + excluded.count
        """,
        [.int(relay ?? 0), .string(reason), .int(count)])
    }
    for reject in rejects.suffix(max) {
      try database.run(
        """
        INSERT INTO reject (relay, event, reason, detail, line, rejected_at)
        VALUES (?, ?, ?, ?, ?, ?)
        """,
        [
          relay.map { .int($0) } ?? .null, .text(reject.id), .string(reject.reason),
          .text(reject.detail), .int(reject.line), .time(time),
        ])
    }
    try database.run(
      "DELETE FROM reject WHERE number <= (SELECT max(number) FROM reject) - ?",
      [.int(Int64(max))])
  }

  mutating func addFaults(
    _ faults: [(reason: String, count: Int)], of relay: RelayURL
  ) throws(LogError) {
    let number = try number(of: relay)
    for fault in faults {
      try database.run(
        """
        INSERT INTO peer_fault (relay, reason, count, last_at) VALUES (?, ?, ?, ?)
        ON CONFLICT (relay, reason) DO UPDATE
        SET count = count + excluded.count, last_at = excluded.last_at
        """,
        [.int(number), .string(fault.reason), .int(Int64(fault.count)), .time(now)])
    }
  }

  // MARK: Coverage

  private mutating func write(_ proof: CoverageProof) throws(LogError) {
    let key = try coverageKey(proof.relay, proof.scope)
    try updateCoverage(key) { map in
      let now = proof.interval.provedAt
      map = CoverageMap(map.intervals.filter { $0.isBelievable(at: now) })
      map.insert(proof.interval)
    }
    try updateGaps(key) { $0.subtract(from: proof.interval.from, to: proof.interval.to) }
  }

  private mutating func write(_ gap: CoverageGap) throws(LogError) {
    let key = try coverageKey(gap.relay, gap.scope)
    let entry = GapMap.Entry(from: gap.from, to: gap.to, why: gap.why)
    try updateGaps(key) { $0.insert(entry) }
  }

  private mutating func coverageKey(
    _ relay: RelayURL, _ scope: Scope
  ) throws(LogError) -> [SQLValue] {
    [.int(try number(of: relay)), .int(try number(of: scope))]
  }

  private func updateCoverage(
    _ key: [SQLValue], _ change: (inout CoverageMap) -> Void
  ) throws(LogError) {
    let before = try database.rows(
      """
      SELECT from_at, to_at, proved_at, method FROM coverage
      WHERE relay = ? AND scope = ? ORDER BY from_at
      """, key
    ) { row throws(LogError) in try CoverageRow.interval(row) }
    var map = CoverageMap(before)
    change(&map)
    let old = Set(before)
    let new = Set(map.intervals)
    for interval in before where !new.contains(interval) {
      try database.run(
        "DELETE FROM coverage WHERE relay = ? AND scope = ? AND from_at = ?",
        key + [.time(interval.from)])
    }
    for interval in map.intervals where !old.contains(interval) {
      try database.run(
        """
        INSERT INTO coverage (relay, scope, from_at, to_at, proved_at, method)
        VALUES (?, ?, ?, ?, ?, ?)
        """,
        key + [
          .time(interval.from), .time(interval.to), .time(interval.provedAt),
          .string(interval.method.rawValue),
        ])
    }
  }

  private func updateGaps(
    _ key: [SQLValue], _ change: (inout GapMap) -> Void
  ) throws(LogError) {
    let before = try database.rows(
      "SELECT from_at, to_at, why FROM gap WHERE relay = ? AND scope = ? ORDER BY from_at", key
    ) { row throws(LogError) in try CoverageRow.gap(row) }
    var map = GapMap(before)
    change(&map)
    guard map.entries != before else { return }
    try database.run("DELETE FROM gap WHERE relay = ? AND scope = ?", key)
    for entry in map.entries {
      try database.run(
        "INSERT INTO gap (relay, scope, from_at, to_at, why) VALUES (?, ?, ?, ?, ?)",
        key + [.time(entry.from), .time(entry.to), .text(entry.why)])
    }
  }
}

/// Coverage and gaps as rows, checked again when they are read.
enum CoverageRow {
  /// The row begins with `from_at, to_at, proved_at, method`.
  static func interval(_ row: Statement, at column: Int32 = 0) throws(LogError)
    -> CoverageInterval
  {
    let from = row.time(column)
    let to = row.time(column + 1)
    guard from <= to, let method = ProofMethod(rawValue: row.text(column + 3).string) else {
      throw LogError.damaged("the coverage from \(from) on is not whole")
    }
    return CoverageInterval(from: from, to: to, provedAt: row.time(column + 2), method: method)
  }

  /// The row begins with `from_at, to_at, why`.
  static func gap(_ row: Statement, at column: Int32 = 0) throws(LogError) -> GapMap.Entry {
    let from = row.time(column)
    let to = row.time(column + 1)
    guard from <= to else { throw LogError.damaged("the gap from \(from) on is not whole") }
    return GapMap.Entry(from: from, to: to, why: row.text(column + 2))
  }
}
