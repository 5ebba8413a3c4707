import EventLog
import Nostr
import NostrCrypto
import SyncCore
import Testing

@Suite struct IntegrityTests {
  /// A log with something in every table.
  private func filled() async throws -> Bench {
    let bench = try Bench()
    let log = try await bench.open()
    var batch = bench.batch(Sample.events(0..<20), from: Sample.home)
    batch.proofs = [Sample.proof(0, 100)]
    batch.gaps = [
      CoverageGap(relay: Sample.home, scope: Sample.scope, from: 200, to: 300, why: "dense")
    ]
    batch.rejected = [Reject(reason: "id")]
    _ = try await log.ingest(batch)
    _ = try await log.ingest(bench.batch(Sample.events(5..<10), from: Sample.replica))
    let message = try await log.enqueue(Sample.event(50), to: [Sample.home])
    _ = try await log.redate(message.id, as: Sample.event(51))
    await log.close()
    return bench
  }

  private static let breaks = [
    "DELETE FROM event WHERE seq = 7",
    "DELETE FROM fact WHERE seq = 22",
    "UPDATE event SET seq = 99 WHERE seq = 3",
    "UPDATE fact SET seq = 3 WHERE seq = 22",
    "UPDATE event SET seq = -1 WHERE seq = 3",
    "UPDATE event SET pubkey = x'00' WHERE seq = 3",
    "UPDATE event SET kind = 70000 WHERE seq = 3",
    "UPDATE event SET kind = 20001 WHERE seq = 3",
    "UPDATE event SET relay = 77 WHERE seq = 3",
    "UPDATE provenance SET event = 900 WHERE event = 6",
    "UPDATE message SET event = x'00'",
    "UPDATE delivery SET message = 5",
    "UPDATE delivery SET state = 'lost'",
    "UPDATE coverage SET to_at = -5",
    "INSERT INTO coverage SELECT relay, scope, 50, 60, 1, method FROM coverage",
    "INSERT INTO gap SELECT relay, scope, 250, 260, why FROM gap",
    "INSERT INTO coverage SELECT 99, scope, 0, 1, 1, method FROM coverage",
  ]

  @Test func `a whole log has nothing wrong with it`() async throws {
    let bench = try await filled()
    #expect(try LogReader.open(path: bench.path).integrity() == [])
  }

  @Test func `an empty log has nothing wrong with it`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    #expect(try log.reader.integrity() == [])
    _ = try await log.ingest(bench.batch(Sample.events(0..<3)))
    #expect(try log.reader.integrity() == [])
  }

  @Test func `a hole in the sequence and a sequence used twice are told apart in words`()
    async throws
  {
    let hole = try await filled()
    try RawDatabase(hole.path).execute("DELETE FROM event WHERE seq = 7")
    #expect(
      try LogReader.open(path: hole.path).integrity()
        .contains("entries missing between the first and the last: 1"))
    let twice = try await filled()
    try RawDatabase(twice.path).execute(
      "INSERT INTO fact SELECT 3, type, event, other, relay, value, noted_at FROM fact WHERE seq = 22"
    )
    #expect(
      try LogReader.open(path: twice.path).integrity()
        .contains("entries more than sequences, so some are used twice: 1"))
  }

  @Test(arguments: breaks)
  func `every broken rule is named`(change: String) async throws {
    let bench = try await filled()
    try RawDatabase(bench.path).execute(change)
    #expect(try LogReader.open(path: bench.path).integrity() != [])
  }
}
