import EventLog
import Nostr
import NostrCrypto
import SyncCore
import Testing

@Suite struct LogReaderIDTests {
  @Test func `ids are found by their first digits, however many`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    let events = Sample.events(0..<300)
    _ = try await log.ingest(bench.batch(events, from: Sample.home))
    let ids = events.map(\.event.id).sorted()
    for digits in 0...64 {
      let prefix = String(ids[7].hex.prefix(digits))
      #expect(
        try log.reader.eventIDs(beginning: prefix, limit: 1000)
          == ids.filter { $0.hex.hasPrefix(prefix) })
    }
    #expect(try log.reader.eventIDs(beginning: "", limit: 3) == Array(ids.prefix(3)))
    #expect(try log.reader.eventIDs(beginning: "xyz", limit: 3).isEmpty)
    #expect(try log.reader.eventIDs(beginning: ids[7].hex + "0", limit: 3).isEmpty)
  }
}
