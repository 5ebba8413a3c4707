import EventLog
import Foundation
import HotCache
import Nostr
import NostrCrypto
import Platform
import SyncCore
import SyncEngine
import Testing

@Suite struct IngestPipelineTests {
  @Test func `good lines are stored and shown, bad ones counted and named`() async throws {
    let bench = try StoreBench()
    let store = try await bench.open()
    let author = Author()
    let good = try author.event(1)
    let other = try author.event(2)
    let swapped = Event(
      id: good.id, pubkey: good.pubkey, createdAt: good.createdAt, kind: good.kind,
      tags: good.tags, content: "swapped", sig: good.sig)
    let forged = Event(
      id: other.id, pubkey: other.pubkey, createdAt: other.createdAt, kind: other.kind,
      tags: other.tags, content: other.content, sig: good.sig)
    let typing = try author.event(3, kind: 20002)
    let lines: [[UInt8]] = [
      good.json(), Array("{\"id\":".utf8), [], swapped.json(), good.json(), forged.json(),
      typing.json(), other.json(),
    ]
    let rejected = Lock<[RejectedLine]>([])
    let progress = try await bench.pipeline(store).run(
      Chunks(Array(lines.joined(separator: [0x0a]))),
      observer: IngestObserver(rejected: { line in rejected.withLock { $0.append(line) } }))
    #expect(progress.stored == 2)
    #expect(progress.duplicates == 1)
    #expect(progress.ephemeral == 1)
    #expect(progress.lines == 7)
    #expect(progress.rejected == ["json": 1, "id": 1, "signature": 1])
    let told = rejected.withLock { $0 }
    #expect(told.map(\.number) == [2, 3, 5])
    #expect(told.map(\.reason) == ["json", "id", "signature"])
    #expect(told.map(\.id) == [nil, good.id, other.id])
    #expect(told.map(\.bytes) == [lines[1], lines[3], lines[5]])
    #expect(try store.reader.rejects(limit: 9).map(\.reject.line) == [5, 3, 2])
    // The views already show what was stored.
    let found = try store.views.read { view throws(CacheError) in
      try view.query([Filter()], now: bench.clock.now())
    }
    #expect(try store.reader.events(at: found).map { $0?.event.id } == [other.id, good.id])
    await store.close()
  }

  @Test(arguments: [37, 1 << 12, 1 << 20])
  func `the same lines give the same log in whatever pieces they come`(size: Int) async throws {
    let bench = try StoreBench()
    let store = try await bench.open()
    let lines = try Author().lines(0..<120)
    var limits = IngestLimits()
    limits.blockWeight = 4000
    limits.queuedWeightMax = 8000
    limits.batchEvents = 20
    limits.cacheLag = 10
    let progress = try await bench.pipeline(store, limits).run(Chunks(lines, size: size))
    #expect(progress.stored == 120)
    #expect(progress.bytes == lines.count)
    let entries = try store.reader.entries(after: .start, limit: 1000)
    #expect(entries.map(\.sequence.number) == Array(1...120))
    let stored = entries.flatMap { entry -> [UInt8] in
      guard case .event(let logged) = entry.body else { return [] }
      return logged.event.json() + [0x0a]
    }
    #expect(stored == lines)
    let again = try await bench.pipeline(store, limits).run(Chunks(lines, size: size))
    #expect(again.stored == 0)
    #expect(again.duplicates == 120)
    #expect(try store.reader.integrity() == [])
    await store.close()
  }

  @Test func `a line over the limit is counted as too large, and the next one is stored`()
    async throws
  {
    let bench = try StoreBench()
    let store = try await bench.open()
    let author = Author()
    let long = try author.event(1, text: String(repeating: "x", count: 5000)).json()
    let short = try author.event(2).json()
    var limits = IngestLimits()
    limits.lineBytesMax = 2000
    let progress = try await bench.pipeline(store, limits)
      .run(Chunks(long + [0x0a] + short, size: 100))
    #expect(progress.rejected == ["size": 1])
    #expect(progress.stored == 1)
    let whole = try await bench.pipeline(store).run(Chunks(long + [0x0a] + short, size: 100))
    #expect(whole.stored == 1)
    await store.close()
  }

  @Test func `a stopped input is no end of a line`() async throws {
    let bench = try StoreBench()
    let store = try await bench.open()
    let cut = Array(try Author().lines(0..<20).dropLast(30))
    let counted = Lock(IngestProgress())
    await #expect(throws: IngestError.cancelled) {
      _ = try await bench.pipeline(store).run(
        Chunks(cut, failure: .stopped),
        observer: IngestObserver(progress: { progress in counted.withLock { $0 = progress } }))
    }
    #expect(counted.withLock { $0.rejected } == [:])
    #expect(try store.reader.rejects(limit: 9) == [])
    await store.close()
  }

  // A line of two bytes costs far more than two bytes once it is told of.
  @Test func `many short lines are held in few at a time`() async throws {
    let bench = try StoreBench()
    let store = try await bench.open()
    var limits = IngestLimits()
    limits.stepBytes = 1000
    limits.blockWeight = 40_000
    limits.queuedWeightMax = 80_000
    let steps = Lock([0])
    let progress = try await bench.pipeline(store, limits).run(
      Chunks(Array(repeating: [0x7b, 0x7d, 0x0a], count: 20_000).flatMap(\.self), size: 60_000),
      observer: IngestObserver(progress: { progress in
        steps.withLock { $0.append(progress.lines) }
      }))
    #expect(progress.rejected == ["shape": 20_000])
    // A full queue, the block that comes on top of it, and the step that filled that.
    let linesMax = (80_000 + 40_000) / 128 + 1000 / 3
    let counts = steps.withLock { $0 }
    #expect(zip(counts, counts.dropFirst()).allSatisfy { $1 - $0 <= linesMax })
    await store.close()
  }

  @Test func `what came before the input failed is kept`() async throws {
    let bench = try StoreBench()
    let store = try await bench.open()
    let lines = try Author().lines(0..<20)
    let failure = ByteSourceError("unplugged")
    await #expect(throws: IngestError.source(failure)) {
      _ = try await bench.pipeline(store).run(Chunks(lines, failure: failure))
    }
    let progress = try await bench.pipeline(store).run(Chunks(lines))
    #expect(progress.stored + progress.duplicates == 20)
    #expect(try store.reader.integrity() == [])
    await store.close()
  }

  @Test func `a full disk ends the run, and a later one finishes it`() async throws {
    let bench = try StoreBench()
    var options = LogOptions()
    options.pagesMax = 60
    var limits = IngestLimits()
    limits.blockWeight = 4000
    limits.batchEvents = 1
    let author = Author()
    let lines = try (0..<100).flatMap { number -> [UInt8] in
      try author.event(number, text: String(repeating: "y", count: 2000)).json() + [0x0a]
    }
    let small = try await bench.open(options)
    await #expect(throws: IngestError.log(.full(bench.folder + "/log.sqlite"))) {
      _ = try await bench.pipeline(small, limits).run(Chunks(lines, size: 3000))
    }
    let kept = try small.reader.counts().events
    #expect(kept > 0 && kept < 100)
    await small.close()
    let store = try await bench.open()
    let progress = try await bench.pipeline(store).run(Chunks(lines))
    #expect(progress.stored == 100 - kept)
    #expect(progress.duplicates == kept)
    await store.close()
  }

  @Test func `a run that is cancelled stops, and the log is whole`() async throws {
    let bench = try StoreBench()
    let store = try await bench.open()
    let lines = try Author().lines(0..<50)
    let (began, announce) = AsyncStream<Void>.makeStream()
    // The source would go on for ever.
    let run = Task { try await bench.pipeline(store).run(Endless(lines, announce)) }
    for await _ in began { break }
    run.cancel()
    await #expect(throws: IngestError.cancelled) { _ = try await run.value }
    #expect(try store.reader.integrity() == [])
    await store.close()
  }

  @Test func `a cache that cannot be had never fails ingest`() async throws {
    let bench = try StoreBench()
    try bench.home.makeFolder(of: .archive)
    // A file where the cache's folder should be.
    try Data([1]).write(to: URL(filePath: bench.folder + "/cache"))
    let store = try await bench.open()
    let progress = try await bench.pipeline(store).run(Chunks(Author().lines(0..<20)))
    #expect(progress.stored == 20)
    let count = try store.views.read { view throws(CacheError) in
      try view.count([Filter(kinds: [9])], now: bench.clock.now())
    }
    #expect(count == 20)
    #expect(store.views.state.name == "degraded")
    await store.close()
  }
}

/// Gives the same lines again and again, until its task is cancelled; tells when it has begun.
private actor Endless: ByteChunkSource {
  private let lines: [UInt8]
  private let announce: AsyncStream<Void>.Continuation
  private var count = 0

  init(_ lines: [UInt8], _ announce: AsyncStream<Void>.Continuation) {
    self.lines = lines
    self.announce = announce
  }

  func next() async throws(ByteSourceError) -> [UInt8]? {
    count += 1
    if count == 3 { announce.yield() }
    return Task.isCancelled ? nil : lines
  }
}
