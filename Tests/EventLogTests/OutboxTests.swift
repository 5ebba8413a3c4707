import EventLog
import Nostr
import NostrCrypto
import SyncCore
import Testing

@Suite struct OutboxTests {
  @Test func `a message is its event, its row and one delivery a relay`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    let event = Sample.event(1)
    let message = try await log.enqueue(event, to: [Sample.replica, Sample.home, Sample.home])
    #expect(message.eventID == event.event.id)
    #expect(message.group == "garden")
    #expect(message.writtenAt == bench.clock.now())
    #expect(message.deliveries.map(\.relay) == [Sample.home, Sample.replica])
    #expect(message.deliveries.allSatisfy { $0.state == .queued && $0.handedAt == nil })
    #expect(try log.reader.event(id: event.event.id)?.event == event.event)
    #expect(try log.reader.deliveries(includingSent: false) == message.deliveries)
    #expect(try log.reader.message(id: message.id) == message)
    #expect(try log.reader.message(eventID: event.event.id) == message)
    #expect(try log.reader.entries(after: .start, limit: 5).map(\.event) == [event.event])
  }

  @Test func `a token writes one message, however often it is used`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    let first = try await log.enqueue(Sample.event(1), to: [Sample.home], token: "t1")
    let again = try await log.enqueue(Sample.event(2), to: [Sample.home], token: "t1")
    #expect(again == first)
    #expect(try log.reader.head() == LogSequence(1))
    #expect(try log.reader.event(id: Sample.event(2).event.id) == nil)
    let other = try await log.enqueue(Sample.event(2), to: [Sample.home], token: "t2")
    #expect(other.id != first.id)
    #expect(try log.reader.message(token: "t2") == other)
  }

  @Test func `an event is one message, also where the log had it before`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    _ = try await log.ingest(bench.batch([Sample.event(1)], from: Sample.home))
    let message = try await log.enqueue(Sample.event(1), to: [Sample.replica])
    #expect(try await log.enqueue(Sample.event(1), to: [Sample.home]) == message)
    #expect(try log.reader.head() == LogSequence(1))
  }

  @Test func `an ephemeral event is refused, and nothing is kept of it`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    await #expect(throws: LogError.ephemeral) {
      _ = try await log.enqueue(Sample.event(1, kind: 20002), to: [Sample.home])
    }
    #expect(try log.reader.head() == .start)
    #expect(try log.reader.deliveries(includingSent: true) == [])
  }

  @Test func `a delivery's change is there after a reopening`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    let parent = try await log.enqueue(Sample.event(1), to: [Sample.home])
    let message = try await log.enqueue(
      Sample.event(2), to: [Sample.home], waitsFor: parent.id, state: .held)
    #expect(message.deliveries.map(\.state) == [.held])
    try await log.record(
      DeliveryChange(
        message: message.id, relay: Sample.home, state: .queued, reason: "rate-limited: slow down",
        nextAttemptAt: 1_700_000_030, attempts: 2, handedAt: 1_700_000_001))
    await log.close()
    let reader = try LogReader.open(path: bench.path)
    let delivery = try #require(try reader.message(id: message.id)?.deliveries.first)
    #expect(delivery.state == .queued)
    #expect(delivery.reason == "rate-limited: slow down")
    #expect(delivery.nextAttemptAt == 1_700_000_030)
    #expect(delivery.attempts == 2)
    #expect(delivery.handedAt == 1_700_000_001)
    #expect(delivery.waitsFor == parent.id)
  }

  @Test func `that a relay was handed an id is never unsaid`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    let message = try await log.enqueue(Sample.event(1), to: [Sample.home])
    var change = DeliveryChange(
      message: message.id, relay: Sample.home, state: .sending, attempts: 1, handedAt: 7)
    try await log.record(change)
    change = DeliveryChange(message: message.id, relay: Sample.home, state: .queued, attempts: 1)
    try await log.record(change)
    #expect(try log.reader.deliveries(includingSent: false).map(\.handedAt) == [7])
  }

  @Test func `a change of no delivery is an error`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    let message = try await log.enqueue(Sample.event(1), to: [Sample.home])
    await #expect(throws: LogError.self) {
      try await log.record(
        DeliveryChange(message: message.id, relay: Sample.replica, state: .sent, attempts: 1))
    }
    await #expect(throws: LogError.unknownMessage("99")) { try await log.discard(MessageID(99)) }
    await #expect(throws: LogError.unknownMessage("99")) {
      _ = try await log.redate(MessageID(99), as: Sample.event(2))
    }
  }

  @Test func `what is sent is listed only when asked for`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    let message = try await log.enqueue(Sample.event(1), to: [Sample.home, Sample.replica])
    try await log.record(
      DeliveryChange(message: message.id, relay: Sample.home, state: .sent, attempts: 1))
    #expect(try log.reader.deliveries(includingSent: false).map(\.relay) == [Sample.replica])
    #expect(try log.reader.deliveries(includingSent: true).count == 2)
  }

  @Test func `no mark of a process that is gone blocks a delivery`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    let message = try await log.enqueue(Sample.event(1), to: [Sample.home, Sample.replica])
    try await log.record(
      DeliveryChange(
        message: message.id, relay: Sample.home, state: .sending, attempts: 1, handedAt: 5))
    try await log.record(
      DeliveryChange(message: message.id, relay: Sample.replica, state: .sending, attempts: 1))
    await log.close()
    let again = try await bench.open()
    // The relay that was handed the bytes is asked; the other one cannot have them.
    #expect(try again.reader.deliveries(includingSent: true).map(\.state) == [.unknown, .queued])
  }

  @Test func `a re-dated message keeps its name, and its open deliveries begin anew`()
    async throws
  {
    let bench = try Bench()
    let log = try await bench.open()
    let old = Sample.event(1)
    let new = Sample.event(2, at: 1_700_000_000)
    let message = try await log.enqueue(old, to: [Sample.home, Sample.replica], token: "t")
    try await log.record(
      DeliveryChange(
        message: message.id, relay: Sample.home, state: .refused, reason: "invalid: too old",
        attempts: 3, handedAt: 5))
    try await log.record(
      DeliveryChange(
        message: message.id, relay: Sample.replica, state: .sent, attempts: 1, handedAt: 6))
    let redated = try await log.redate(message.id, as: new)
    #expect(redated.id == message.id)
    #expect(redated.eventID == new.event.id)
    #expect(redated.redatedFrom == old.event.id)
    let home = redated.deliveries[0]
    #expect(home.state == .queued && home.attempts == 0 && home.reason == nil)
    #expect(home.eventID == new.event.id && home.handedAt == nil)
    // The relay that took the old event still has that one.
    #expect(redated.deliveries[1].state == .sent)
    #expect(redated.deliveries[1].eventID == old.event.id)
    #expect(try log.reader.message(eventID: old.event.id) == redated)
    #expect(try log.reader.message(eventID: new.event.id) == redated)
    #expect(
      try log.reader.entries(after: LogSequence(1), limit: 9).map(\.body) == [
        .event(try #require(try log.reader.event(id: new.event.id))),
        .fact(.redated(old: old.event.id, new: new.event.id)),
      ])
    // Doing it again is doing it once.
    #expect(try await log.redate(message.id, as: new) == redated)
    #expect(try log.reader.head() == LogSequence(3))
    #expect(try log.reader.integrity() == [])
  }

  @Test func `a discarded message is hidden and sent no more`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    let message = try await log.enqueue(Sample.event(1), to: [Sample.home])
    try await log.discard(message.id)
    try await log.discard(message.id)
    #expect(try log.reader.deliveries(includingSent: true) == [])
    #expect(try log.reader.message(id: message.id)?.isDiscarded == true)
    #expect(
      try log.reader.entries(after: LogSequence(1), limit: 9).map(\.fact)
        == [.discarded(message.eventID)])
    #expect(try log.reader.event(id: message.eventID) != nil)
  }

  @Test(arguments: [false, true])
  func `a discarded message that a relay serves was said after all`(isReopened: Bool) async throws {
    let bench = try Bench()
    var log = try await bench.open()
    let message = try await log.enqueue(Sample.event(1), to: [Sample.home])
    try await log.discard(message.id)
    if isReopened {
      await log.close()
      log = try await bench.open()
    }
    for _ in 0..<2 {
      _ = try await log.ingest(bench.batch([Sample.event(1)], from: Sample.home))
    }
    #expect(
      try log.reader.entries(after: LogSequence(2), limit: 9).map(\.fact) == [
        .served(message.eventID, by: Sample.home), .restored(message.eventID),
      ])
  }

  /// How a relay may be known to have a message.
  enum Holding: CaseIterable { case accepted, servedByHome, servedByReplica, neither }

  @Test(arguments: Holding.allCases)
  func `what a relay has is not discarded`(holding: Holding) async throws {
    let bench = try Bench()
    let log = try await bench.open()
    let message = try await log.enqueue(Sample.event(1), to: [Sample.home])
    try await log.record(
      DeliveryChange(
        message: message.id, relay: Sample.home,
        state: holding == .accepted ? .sent : .unknown, attempts: 1, handedAt: 5))
    if holding == .servedByHome || holding == .servedByReplica {
      let relay = holding == .servedByHome ? Sample.home : Sample.replica
      _ = try await log.ingest(bench.batch([Sample.event(1)], from: relay))
    }
    if holding == .neither {
      try await log.discard(message.id)
    } else {
      await #expect(throws: LogError.alreadySent("1")) { try await log.discard(message.id) }
    }
    #expect(try log.reader.message(id: message.id)?.isDiscarded == (holding == .neither))
    await log.close()
  }

  /// Homes that an earlier version has hurt: the message was sent and served, and hidden all the same.
  @Test(arguments: [Sample.home, nil])
  func `a sent message that was hidden comes back when it is served again or imported`(
    source: RelayURL?
  ) async throws {
    let bench = try Bench()
    var log = try await bench.open()
    let message = try await log.enqueue(Sample.event(1), to: [Sample.home])
    try await log.discard(message.id)
    await log.close()
    do {
      let raw = try RawDatabase(bench.path)
      try raw.execute("UPDATE delivery SET state = 'sent', handed_at = 5")
      try raw.execute("INSERT OR IGNORE INTO relay (url) VALUES ('\(Sample.home)')")
      try raw.execute(
        "INSERT INTO provenance (event, relay, first_seen) SELECT e.seq, r.id, 5"
          + " FROM event e, relay r WHERE r.url = '\(Sample.home)'")
    }
    log = try await bench.open()
    for _ in 0..<2 {
      _ = try await log.ingest(bench.batch([Sample.event(1)], from: source))
      await log.close()
      log = try await bench.open()
    }
    #expect(
      try log.reader.entries(after: LogSequence(2), limit: 9).map(\.fact)
        == [.restored(message.eventID)])
    await #expect(throws: LogError.alreadySent("1")) { try await log.discard(message.id) }
    await log.close()
  }

  @Test func `a message whose acceptance was on its way while it was discarded comes back`()
    async throws
  {
    let bench = try Bench()
    let log = try await bench.open()
    let message = try await log.enqueue(Sample.event(1), to: [Sample.home])
    try await log.discard(message.id)
    for state in [DeliveryState.queued, .sent] {
      try await log.record(
        DeliveryChange(message: message.id, relay: Sample.home, state: state, attempts: 1))
      #expect(try log.reader.head() == LogSequence(state == .sent ? 3 : 2))
    }
    await log.close()
  }

  @Test func `settings are kept, replaced and removed`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    try await log.setSetting("a", [1, 0, 2])
    try await log.setSetting("b", [])
    try await log.setSetting("a", [3])
    #expect(try log.reader.setting("a") == [3])
    #expect(try log.reader.setting("b") == [])
    try await log.setSetting("a", nil)
    #expect(try log.reader.setting("a") == nil)
  }

  @Test func `whoever answers a discarded message is told, but for what a relay was handed`()
    async throws
  {
    let bench = try Bench()
    let log = try await bench.open()
    let parent = try await log.enqueue(Sample.event(1), to: [Sample.home])
    let waiting = try await log.enqueue(Sample.event(2), to: [Sample.home], waitsFor: parent.id)
    let handed = try await log.enqueue(Sample.event(3), to: [Sample.home], waitsFor: parent.id)
    try await log.record(
      DeliveryChange(
        message: handed.id, relay: Sample.home, state: .unknown, attempts: 1, handedAt: 5))
    let other = try await log.enqueue(Sample.event(4), to: [Sample.home])
    try await log.discard(parent.id)
    let states = try [waiting, handed, other].map {
      try log.reader.message(id: $0.id)?.deliveries.first?.state
    }
    #expect(states == [.refused, .unknown, .queued])
    await log.close()
  }

  @Test func `the latest date of what was written last is known to a later run`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    #expect(try log.reader.lastWrittenDate() == nil)
    let first = try await log.enqueue(Sample.event(1, at: 500), to: [Sample.home])
    let second = try await log.enqueue(Sample.event(2, at: 400), to: [Sample.home])
    #expect(try log.reader.lastWrittenDate() == 500)
    #expect(try log.reader.lastWrittenDate(before: second.id) == 500)
    #expect(try log.reader.lastWrittenDate(before: first.id) == nil)
    await log.close()
  }
}
