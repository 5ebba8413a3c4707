import EventLog
import Nostr
import NostrCrypto
import SyncCore
import Testing

/// What the log should hold, kept in the simplest way there is.
private struct Model {
  var entries: [LogEntry.Body] = []
  var served: [EventID: Set<RelayURL>] = [:]
  var proved: Set<Int64> = []
  var messages: [MessageID: EventID] = [:]

  mutating func ingest(_ events: [VerifiedEvent], from relay: RelayURL, at time: Timestamp) {
    for verified in events {
      let id = verified.event.id
      if served[id] == nil {
        let logged = LoggedEvent(
          event: verified.event, idForm: verified.idForm, receivedAt: time, source: relay)
        entries.append(.event(logged))
        served[id] = [relay]
      } else if served[id, default: []].insert(relay).inserted {
        entries.append(.fact(.served(id, by: relay)))
      }
    }
  }

  mutating func write(_ verified: VerifiedEvent, at time: Timestamp) {
    guard served[verified.event.id] == nil else { return }
    entries.append(
      .event(
        LoggedEvent(
          event: verified.event, idForm: verified.idForm, receivedAt: time, source: nil)))
    served[verified.event.id] = []
  }
}

private struct Dice {
  var state: UInt64

  mutating func roll(_ count: UInt64) -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return (mixed ^ (mixed >> 31)) % count
  }
}

@Suite struct ModelTests {
  @Test(arguments: 0..<8 as Range<UInt64>)
  func `the log is what was put in, through failures and reopenings`(seed: UInt64) async throws {
    let bench = try Bench()
    var options = LogOptions()
    options.tailEntriesMax = Int(seed * 3)
    var log = try await bench.open(options)
    var dice = Dice(state: seed)
    var model = Model()
    for step in 0..<60 {
      let before = model
      let fails = dice.roll(6) == 0
      if fails { try await log.setPagesMax(1) }
      do throws(LogError) {
        try await act(on: log, bench, &model, &dice)
      } catch {
        // With no page to spare most changes fail, and a failed one has changed nothing.
        guard case .full = error, fails else { throw error }
        model = before
      }
      if fails { try await log.setPagesMax(1 << 20) }
      if dice.roll(10) == 0 {
        await log.close()
        log = try await bench.open(options)
      }
      try check(log, bench, model, "seed \(seed), step \(step)")
    }
    #expect(try log.reader.integrity() == [])
  }

  private func act(
    on log: EventLog, _ bench: Bench, _ model: inout Model, _ dice: inout Dice
  ) async throws(LogError) {
    let now = bench.clock.now()
    switch dice.roll(5) {
    case 0:
      let verified = Sample.event(dice.roll(300), content: long(&dice))
      let message = try await log.enqueue(verified, to: [Sample.home])
      if model.messages[message.id] == nil { model.write(verified, at: now) }
      model.messages[message.id] = message.eventID
    case 1:
      let known = model.messages.keys.sorted()
      guard !known.isEmpty else { return }
      let id = known[Int(dice.roll(UInt64(known.count)))]
      let verified = Sample.event(1000 + dice.roll(100_000))
      guard let old = model.messages[id] else { return }
      _ = try await log.redate(id, as: verified)
      model.write(verified, at: now)
      model.entries.append(.fact(.redated(old: old, new: verified.event.id)))
      model.messages[id] = verified.event.id
    default:
      let relay = dice.roll(2) == 0 ? Sample.home : Sample.replica
      let events = (0..<dice.roll(20)).map { _ in
        Sample.event(dice.roll(300), content: long(&dice))
      }
      let from = Int64(dice.roll(100))
      let to = from + Int64(dice.roll(20))
      let batch = IngestBatch(
        events: events, source: relay, receivedAt: now,
        proofs: [Sample.proof(Timestamp(from), Timestamp(to))])
      _ = try await log.ingest(batch)
      model.ingest(events, from: relay, at: now)
      model.proved.formUnion(from...to)
    }
  }

  /// The content depends on nothing but chance: an id that comes again with another content is
  /// another claim about the same id, and the first one stays.
  private func long(_ dice: inout Dice) -> Text {
    Text(String(repeating: "z", count: Int(dice.roll(3000))))
  }

  private func check(
    _ log: EventLog, _ bench: Bench, _ model: Model, _ place: Comment
  ) throws {
    let expected = model.entries
    #expect(try log.reader.head() == LogSequence(Int64(expected.count)), place)
    for reader in [log.reader, try LogReader.open(path: bench.path)] {
      let entries = try reader.entries(after: .start, limit: 100_000)
      #expect(entries.map(\.body) == expected, place)
      #expect(entries.map(\.sequence.number) == Array(1..<Int64(expected.count) + 1), place)
      let map = try reader.coverage(relay: Sample.home, scope: Sample.scope, asOf: .init(.max))
      let open = map.gaps(from: 0, to: 130).flatMap {
        $0.lowerBound.seconds...$0.upperBound.seconds
      }
      #expect(Set(0...130).subtracting(open) == model.proved, place)
    }
  }
}
