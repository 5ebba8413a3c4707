import EventLog
import Nostr
import NostrCrypto
import SyncCore
import Testing

@Suite struct ExportTests {
  private func exported(
    _ log: EventLog, _ selection: ExportSelection = ExportSelection()
  ) throws -> [Event] {
    var result: [Event] = []
    let count = try log.reader.export(selection) {
      result.append($0.event)
      return true
    }
    #expect(count == result.count)
    return result
  }

  @Test func `events come out by time and then by id, whatever their order of arrival`()
    async throws
  {
    let bench = try Bench()
    let log = try await bench.open()
    let events = (0..<900 as Range<UInt64>).map {
      Sample.event($0, at: Timestamp(Int64(($0 &* 7919) % 50)))
    }
    for start in stride(from: 0, to: 900, by: 100) {
      _ = try await log.ingest(bench.batch(Array(events[start..<start + 100])))
    }
    let sorted = events.map(\.event).sorted { $0.position < $1.position }
    #expect(try exported(log) == sorted)
  }

  @Test func `kinds and times select, and the reader may stop early`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    let events = (0..<60 as Range<UInt64>).map {
      Sample.event($0, kind: EventKind(UInt16($0 % 3)), at: Timestamp(Int64($0)))
    }
    _ = try await log.ingest(bench.batch(events))
    let some = try exported(log, ExportSelection(kinds: [1, 2], since: 10, until: 20))
    #expect(some.map(\.createdAt.seconds) == [10, 11, 13, 14, 16, 17, 19, 20])
    #expect(try exported(log, ExportSelection(kinds: [])) == [])
    var given = 0
    let count = try log.reader.export { _ in
      given += 1
      return given < 5
    }
    #expect(count == 5)
  }

  @Test func `a group is its events, its state, and what is about them without naming it`()
    async throws
  {
    let bench = try Bench()
    let log = try await bench.open()
    func id(_ number: UInt64) -> String { Sample.event(number).event.id.hex }
    let author = Sample.event(2).event.pubkey.hex
    let inside = [
      Sample.event(1, tags: [["x", "y"], ["h", "gar\"den", "extra"]]),
      Sample.event(2, kind: 39000, tags: [["d", "gar\"den"]]),
      Sample.event(3, kind: 7, tags: [["e", id(1)]]),
      Sample.event(4, kind: 5, tags: [["e", id(3)]]),
      Sample.event(5, kind: 40003, tags: [["e", id(1)]]),
      Sample.event(6, kind: 5, tags: [["a", "39000:\(author):gar\"den"]]),
      Sample.event(7, kind: 9735, tags: [["p", author], ["e", id(1)]]),
    ]
    let outside = [
      Sample.event(20, tags: [["h", "gar\"dening"]]),
      Sample.event(21, tags: [["h"]]),
      Sample.event(22, tags: [["x", "[\"h\",\"gar\"den\""]]),
      Sample.event(23, kind: 39000, tags: [["d", "other"], ["d", "gar\"den"]]),
      Sample.event(24, kind: 9, tags: [["d", "gar\"den"]]),
      Sample.event(25, kind: 7, tags: [["e", id(20)]]),
      Sample.event(26, kind: 7, tags: [["h", "elsewhere"], ["e", id(1)]]),
      Sample.event(27, kind: 1, tags: [["e", id(1)]]),
      Sample.event(28, content: "[\"h\",\"gar\"den\"]"),
    ]
    _ = try await log.ingest(bench.batch((inside + outside).reversed()))
    let found = try exported(log, ExportSelection(group: "gar\"den"))
    #expect(Set(found) == Set(inside.map(\.event)))
    #expect(found == found.sorted { $0.position < $1.position })
    let reactions = try exported(log, ExportSelection(group: "gar\"den", kinds: [7]))
    #expect(reactions == [inside[2].event])
  }

  @Test func `an export shows the log as it was when it began`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    _ = try await log.ingest(bench.batch(Sample.events(0..<10)))
    let writer = try LogReader.open(path: bench.path)
    var given = 0
    _ = try writer.export { _ in
      given += 1
      return true
    }
    _ = try await log.ingest(bench.batch(Sample.events(10..<20)))
    #expect(given == 10)
    #expect(try exported(log).count == 20)
  }
}
