import EventLog
import Foundation
import Nostr
import NostrCrypto
import Platform
import SyncCore
import Testing

@Suite(.serialized) struct DurabilityTests {
  private func open(_ bench: Bench) async throws -> EventLog {
    SyncingVFS.register()
    SyncingVFS.setFailing(false)
    var options = LogOptions()
    options.vfs = SyncingVFS.name
    return try await bench.open(options)
  }

  private func syncs(_ body: () async throws -> Void) async rethrows -> Int {
    let before = SyncingVFS.syncs
    try await body()
    return SyncingVFS.syncs - before
  }

  @Test func `what the user did is on the disk when the call returns`() async throws {
    let bench = try Bench()
    let log = try await open(bench)
    _ = try await log.ingest(bench.batch(Sample.events(0..<10), from: Sample.home))
    var message: Message?
    let relay = Sample.home
    #expect(
      try await syncs { message = try await log.enqueue(Sample.event(50), to: [relay]) } > 0)
    let id = try #require(message?.id)
    let change = DeliveryChange(
      message: id, relay: relay, state: .sending, attempts: 1, handedAt: 5)
    #expect(try await syncs { try await log.record(change) } > 0)
    #expect(try await syncs { _ = try await log.redate(id, as: Sample.event(51)) } > 0)
    #expect(try await syncs { try await log.discard(id) } > 0)
    #expect(try await syncs { try await log.setSetting("a", [1]) } > 0)
    #expect(try await syncs { _ = try await log.note(.relaySelf(relay, nil)) } > 0)
    await log.close()
  }

  @Test func `what a relay can give again does not wait for the disk`() async throws {
    let bench = try Bench()
    let log = try await open(bench)
    try await log.setSetting("a", [1])
    var batch = bench.batch(Sample.events(0..<100), from: Sample.home)
    batch.proofs = [Sample.proof(0, 100)]
    #expect(try await syncs { _ = try await log.ingest(batch) } == 0)
    #expect(try await syncs { try await log.checkpoint() } > 0)
    await log.close()
  }

  @Test func `a message whose bytes did not reach the disk was not written`() async throws {
    let bench = try Bench()
    let log = try await open(bench)
    let first = try await log.enqueue(Sample.event(1), to: [Sample.home], token: "1")
    SyncingVFS.setFailing(true)
    await #expect {
      _ = try await log.enqueue(Sample.event(2), to: [Sample.home], token: "2")
    } throws: {
      if case .io? = $0 as? LogError { true } else { false }
    }
    SyncingVFS.setFailing(false)
    #expect(try log.reader.head() == LogSequence(1))
    #expect(try log.reader.deliveries(includingSent: true) == first.deliveries)
    let second = try await log.enqueue(Sample.event(2), to: [Sample.home], token: "2")
    #expect(second.id != first.id)
    #expect(try log.reader.head() == LogSequence(2))
    #expect(try log.reader.integrity() == [])
    await log.close()
  }

  @Test func `a log whose making was cut short at any moment is an empty one, and is made later`()
    async throws
  {
    let bench = try Bench()
    let moments = Lock<[[String: Data]]>([])
    SyncingVFS.setOnChange {
      // What cannot be copied shows as a missing moment.
      guard let files = try? bench.snapshot() else { return }
      moments.withLock { $0.append(files) }
    }
    let whole = try await open(bench)
    SyncingVFS.setOnChange(nil)
    await whole.close()
    let all = moments.withLock { $0 }.filter { $0["log.sqlite"] != nil }
    #expect(all.count > 10)
    var unmade = 0
    for files in all {
      let copy = try Bench()
      // The index beside the write-ahead log does not outlive the kill in a state to rely on.
      for (name, bytes) in files where !name.hasSuffix("-shm") {
        try bytes.write(to: URL(filePath: copy.folder + "/" + name))
      }
      let reader = try LogReader.open(path: copy.path)
      if try reader.logID() == [UInt8](repeating: 0, count: 16) { unmade += 1 }
      #expect(try reader.integrity() == [])
      #expect(try reader.head() == .start && reader.counts().events == 0)
      let log = try await copy.open()
      _ = try await log.ingest(copy.batch(Sample.events(0..<3)))
      // Who has looked before sees what was made since.
      #expect(try reader.head() == LogSequence(3))
      #expect(try reader.integrity() == [])
      reader.close()
      await log.close()
    }
    #expect(unmade > 3 && unmade < all.count)
  }
}
