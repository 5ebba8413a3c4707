import EventLog
import Nostr
import NostrCrypto
import SyncCore
import Testing

@Suite struct IngestTests {
  @Test func `events are stored in the order of the batch, without a gap`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    let events = Sample.events(0..<50)
    let result = try await log.ingest(bench.batch(events, from: Sample.home))
    #expect(result.admissions == (1...50).map { .appended(LogSequence($0)) })
    #expect(result.head == LogSequence(50))
    #expect(try log.reader.head() == LogSequence(50))
    let entries = try log.reader.entries(after: .start, limit: 100)
    #expect(entries.map(\.sequence.number) == Array(1...50))
    #expect(entries.map(\.event) == events.map(\.event))
  }

  @Test func `what is read from the file is what was put in`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    let strange = [
      Sample.event(1, content: "a\u{0}b", form: .rawControl),
      Sample.event(2, kind: 0, at: Timestamp(.max), tags: [], content: ""),
      Sample.event(3, kind: 65535, at: 0, tags: [["e"], ["", "", "\u{0}"], ["x", "\"\\\u{7f}"]]),
      Sample.event(4, content: "cafe\u{301} \u{1F331}", form: .escapedDelete),
    ]
    _ = try await log.ingest(bench.batch(strange, from: Sample.home))
    await log.close()
    let reader = try LogReader.open(path: bench.path)
    let found = try reader.entries(after: .start, limit: 10)
    #expect(found.map(\.event) == strange.map(\.event))
    for (entry, put) in zip(found, strange) {
      guard case .event(let logged) = entry.body else { continue }
      #expect(logged.idForm == put.idForm)
      #expect(logged.source == Sample.home)
      #expect(logged.receivedAt == bench.clock.now())
      #expect(try reader.event(id: put.event.id) == logged)
    }
    #expect(found.map { $0.event?.content.count } == [3, 0, 5, 11])
  }

  @Test func `an id is stored once, within a batch and across batches`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    let first = try await log.ingest(
      bench.batch([Sample.event(1), Sample.event(1), Sample.event(2)], from: Sample.home))
    #expect(
      first.admissions == [
        .appended(LogSequence(1)), .duplicate, .appended(LogSequence(2)),
      ])
    let second = try await log.ingest(bench.batch(Sample.events(0..<4), from: Sample.home))
    #expect(second.appended == 2)
    #expect(second.duplicates == 2)
    #expect(second.head == LogSequence(4))
    #expect(try log.reader.integrity() == [])
  }

  @Test func `a duplicate from another relay adds its provenance once`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    let event = Sample.event(1)
    _ = try await log.ingest(bench.batch([event], from: Sample.home))
    bench.clock.move(by: 60)
    for _ in 0..<2 {
      _ = try await log.ingest(bench.batch([event], from: Sample.replica))
      _ = try await log.ingest(bench.batch([event], from: Sample.home))
      _ = try await log.ingest(bench.batch([event]))
    }
    let facts = try log.reader.entries(after: LogSequence(1), limit: 10).map(\.fact)
    #expect(facts == [.served(event.event.id, by: Sample.replica)])
    let provenance = try log.reader.provenance(of: event.event.id)
    #expect(provenance.map(\.relay) == [Sample.home, Sample.replica])
    #expect(provenance.map(\.firstSeen) == [1_700_000_000, 1_700_000_060])
  }

  @Test func `an imported event that a relay serves later is known to be there`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    let id = Sample.event(1).event.id
    _ = try await log.ingest(bench.batch([Sample.event(1)]))
    _ = try await log.ingest(bench.batch([Sample.event(1)], from: Sample.home))
    #expect(try log.reader.provenance(of: id).map(\.relay) == [Sample.home])
    #expect(
      try log.reader.entries(after: LogSequence(1), limit: 1).map(\.fact)
        == [.served(id, by: Sample.home)])
  }

  @Test func `ephemeral events are handed on and never stored`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    let typing = Sample.event(1, kind: 20002)
    let result = try await log.ingest(bench.batch([typing, Sample.event(2)], from: Sample.home))
    #expect(result.admissions == [.ephemeral, .appended(LogSequence(1))])
    #expect(result.ephemeral == [typing])
    #expect(try log.reader.event(id: typing.event.id) == nil)
  }

  @Test func `several versions of one slot all stay`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    let versions = (0..<3 as Range<UInt64>).map {
      Sample.event($0, kind: 39000, at: Timestamp(Int64($0)), tags: [["d", "garden"]])
    }
    #expect(try await log.ingest(bench.batch(versions)).appended == 3)
  }

  @Test func `a bad line never holds back the good ones, and is counted by relay and reason`()
    async throws
  {
    let bench = try Bench()
    let log = try await bench.open()
    var batch = bench.batch(Sample.events(0..<99), from: Sample.home)
    batch.rejected = [Reject(id: "00ff", reason: "signature", detail: "by nobody", line: 7)]
    #expect(try await log.ingest(batch).appended == 99)
    _ = try await log.ingest(
      IngestBatch(
        rejected: [Reject(reason: "json", line: 1), Reject(reason: "json", line: 2)],
        receivedAt: 5))
    let counts = try log.reader.counts()
    #expect(counts.events == 99)
    #expect(counts.rejects.map(\.relay) == [nil, Sample.home])
    #expect(counts.rejects.map(\.reason) == ["json", "signature"])
    #expect(counts.rejects.map(\.count) == [2, 1])
    let last = try #require(try log.reader.rejects(limit: 10).last)
    #expect(last.reject == batch.rejected[0])
    #expect(last.relay == Sample.home)
  }

  @Test func `rejects are bounded, their counts are not`() async throws {
    let bench = try Bench()
    var options = LogOptions()
    options.rejectsMax = 10
    let log = try await bench.open(options)
    for round in 0..<5 {
      _ = try await log.ingest(
        IngestBatch(
          rejected: (0..<25).map { Reject(reason: "id", line: round * 25 + $0) }, receivedAt: 1))
    }
    #expect(try log.reader.rejects(limit: 100).map(\.reject.line) == (115..<125).reversed())
    #expect(try log.reader.counts().rejects(for: "id") == 125)
  }

  @Test func `facts and events share one count`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    let id = Sample.event(1).event.id
    let facts: [Fact] = [
      .relaySelf(Sample.home, PublicKey(Sample.bytes(9))), .relaySelf(Sample.home, nil),
      .discarded(id), .restored(id), .redated(old: id, new: Sample.event(2).event.id),
      .served(id, by: Sample.replica),
    ]
    for (index, fact) in facts.enumerated() {
      _ = try await log.ingest(bench.batch([Sample.event(UInt64(index))]))
      #expect(try await log.note(fact) == LogSequence(Int64(index) * 2 + 2))
    }
    await log.close()
    let reader = try LogReader.open(path: bench.path)
    let entries = try reader.entries(after: .start, limit: 100)
    #expect(entries.map(\.sequence.number) == Array(1...12))
    #expect(entries.compactMap(\.fact) == facts)
    #expect(try reader.integrity() == [])
    #expect(try reader.counts().events == 6)
    #expect(try reader.counts().facts == 6)
  }

  @Test func `events are found by sequence and by id`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    _ = try await log.ingest(bench.batch(Sample.events(0..<5)))
    _ = try await log.note(.relaySelf(Sample.home, nil))
    let found = try log.reader.events(at: [5, 1, 6, 99].map { LogSequence($0) })
    #expect(found.map { $0?.event } == [Sample.event(4).event, Sample.event(0).event, nil, nil])
    #expect(try log.reader.sequence(of: Sample.event(3).event.id) == LogSequence(4))
    #expect(try log.reader.sequence(of: Sample.event(9).event.id) == nil)
  }
}

@Suite struct FollowingTests {
  @Test(arguments: [1, 3, 16_384])
  func `whoever follows sees the same entries from memory as from the file`(kept: Int) async throws
  {
    let bench = try Bench()
    var options = LogOptions()
    options.tailEntriesMax = kept
    let log = try await bench.open(options)
    for round in 0..<10 as Range<UInt64> {
      _ = try await log.ingest(bench.batch(Sample.events(round * 7..<round * 7 + 7)))
      _ = try await log.note(.relaySelf(Sample.home, PublicKey(Sample.bytes(round))))
    }
    let other = try LogReader.open(path: bench.path)
    for start in 0...80 as ClosedRange<Int64> {
      for limit in [1, 7, 1000] {
        let here = try log.reader.entries(after: LogSequence(start), limit: limit)
        #expect(here == (try other.entries(after: LogSequence(start), limit: limit)))
        #expect(here.count == min(limit, 80 - Int(start)))
      }
    }
  }

  @Test func `an answer is bounded by bytes, and goes on where it stopped`() async throws {
    let bench = try Bench()
    var options = LogOptions()
    options.tailBytesMax = 1
    options.readBytesMax = 2_000
    let log = try await bench.open(options)
    let long = Text(String(repeating: "x", count: 900))
    for number in 0..<20 as Range<UInt64> {
      _ = try await log.ingest(bench.batch([Sample.event(number, content: long)]))
      _ = try await log.note(.restored(Sample.event(number).event.id))
    }
    var watermark = LogSequence.start
    var answers = 0
    while true {
      let entries = try log.reader.entries(after: watermark, limit: 1000)
      guard let last = entries.last else { break }
      #expect(entries.first?.sequence == watermark.next)
      #expect(entries.count <= 4)
      watermark = last.sequence
      answers += 1
    }
    #expect(watermark == LogSequence(40))
    #expect(answers >= 10)
  }

  @Test func `what a relay did wrong is added up by relay and reason`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    let head = try log.reader.head()
    try await log.addFaults(
      [(reason: "malformed-frame", count: 2), (reason: "foreign-event", count: 1)],
      of: Sample.home)
    bench.clock.move(by: 60)
    try await log.addFaults([(reason: "malformed-frame", count: 3)], of: Sample.home)
    try await log.addFaults([(reason: "malformed-frame", count: 1)], of: Sample.replica)
    await log.close()
    let counts = try LogReader.open(path: bench.path).counts()
    #expect(
      counts.faults.map { "\($0.relay) \($0.reason) \($0.count)" } == [
        "\(Sample.home) foreign-event 1", "\(Sample.home) malformed-frame 5",
        "\(Sample.replica) malformed-frame 1",
      ])
    #expect(counts.faults.map { $0.lastAt.seconds - 1_700_000_000 } == [0, 60, 60])
    #expect(try LogReader.open(path: bench.path).head() == head)
  }
}
