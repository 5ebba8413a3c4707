import EventLog
import Nostr
import NostrCrypto
import SyncCore
import Testing

@Suite struct CoverageTests {
  private func gap(_ from: Timestamp, _ to: Timestamp, _ why: Text = "dense") -> CoverageGap {
    CoverageGap(relay: Sample.home, scope: Sample.scope, from: from, to: to, why: why)
  }

  @Test func `proofs are merged by relay and scope, and survive a reopening`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    var batch = bench.batch(Sample.events(0..<3), from: Sample.home)
    batch.proofs = [
      Sample.proof(50, 99), Sample.proof(0, 49), Sample.proof(0, 9, relay: Sample.replica),
    ]
    _ = try await log.ingest(batch)
    await log.close()
    let reader = try LogReader.open(path: bench.path)
    let coverage = try reader.coverage(asOf: nil)
    #expect(coverage.map(\.relay) == [Sample.home, Sample.replica])
    #expect(coverage.map(\.scope) == [Sample.scope.key, Sample.scope.key])
    #expect(coverage.map { $0.intervals.map(\.to) } == [[99], [9]])
    let map = try reader.coverage(relay: Sample.home, scope: Sample.scope, asOf: .init(.max))
    #expect(map.contains(from: 0, to: 99))
    #expect(!map.contains(100))
    #expect(
      try reader.coverage(relay: Sample.home, scope: Scope(Filter()), asOf: .init(.max)).isEmpty)
  }

  @Test func `a gap stays until a proof covers it, and shrinks where one covers a part`()
    async throws
  {
    let bench = try Bench()
    let log = try await bench.open()
    _ = try await log.ingest(IngestBatch(receivedAt: 1, gaps: [gap(0, 100)]))
    #expect(try log.reader.gaps() == [gap(0, 100)])
    _ = try await log.ingest(IngestBatch(receivedAt: 2, proofs: [Sample.proof(10, 19)]))
    #expect(try log.reader.gaps() == [gap(0, 9), gap(20, 100)])
    _ = try await log.ingest(
      IngestBatch(receivedAt: 3, proofs: [Sample.proof(0, 200)], gaps: [gap(50, 60, "again")]))
    #expect(try log.reader.gaps() == [])
  }

  @Test func `a proof of another relay leaves the gap`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    _ = try await log.ingest(IngestBatch(receivedAt: 1, gaps: [gap(0, 100)]))
    _ = try await log.ingest(
      IngestBatch(receivedAt: 2, proofs: [Sample.proof(0, 100, relay: Sample.replica)]))
    #expect(try log.reader.gaps() == [gap(0, 100)])
  }

  @Test
  func `a proof from a time to come is not believed, and the next proof of its scope ends it`()
    async throws
  {
    let bench = try Bench()
    let log = try await bench.open()
    let ahead = Sample.proof(0, 5000, at: 5000)
    _ = try await log.ingest(IngestBatch(receivedAt: 1, proofs: [ahead]))
    let scope = Sample.scope
    #expect(try log.reader.coverage(relay: Sample.home, scope: scope, asOf: 4099).isEmpty)
    #expect(try log.reader.coverage(asOf: 4099) == [])
    #expect(
      try log.reader.coverage(relay: Sample.home, scope: scope, asOf: 4100).contains(4999))
    _ = try await log.ingest(IngestBatch(receivedAt: 2, proofs: [Sample.proof(50, 90, at: 4000)]))
    let map = try log.reader.coverage(relay: Sample.home, scope: scope, asOf: .init(.max))
    #expect(map.intervals == [Sample.proof(50, 90, at: 4000).interval])
  }

  @Test func `a batch that fails leaves neither events nor proofs nor gaps`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    _ = try await log.ingest(bench.batch([Sample.event(0)], from: Sample.home))
    let long = Text(String(repeating: "x", count: 3000))
    var batch = bench.batch(
      (1..<200 as Range<UInt64>).map { Sample.event($0, content: long) }, from: Sample.replica)
    batch.proofs = [Sample.proof(0, 100)]
    batch.gaps = [gap(200, 300)]
    batch.rejected = [Reject(reason: "id")]
    try await log.setPagesMax(40)
    await #expect(throws: LogError.full(bench.path)) { _ = try await log.ingest(batch) }
    #expect(try log.reader.head() == LogSequence(1))
    #expect(try log.reader.coverage(asOf: nil) == [])
    #expect(try log.reader.gaps() == [])
    #expect(try log.reader.counts().rejects == [])
    // The next operation works, and with room again the same batch does.
    try await log.setSetting("name", [1])
    try await log.setPagesMax(100_000)
    #expect(try await log.ingest(batch).head == LogSequence(200))
    #expect(try log.reader.gaps().count == 1)
    #expect(try log.reader.integrity() == [])
  }
}
