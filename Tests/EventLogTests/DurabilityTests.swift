import EventLog
import Nostr
import NostrCrypto
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
}
