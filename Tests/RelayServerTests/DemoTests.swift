import Foundation
import Nostr
import NostrCrypto
import Platform
import RelayServer
import Testing

@Suite struct DemoTests {
  @Test func `the same seed gives the same community, and another seed another`() async throws {
    let first = try await DemoCommunity.make(seed: 5, eventsCount: 400, on: InlineWork())
    let second = try await DemoCommunity.make(seed: 5, eventsCount: 400, on: WorkPool(width: 2))
    let other = try await DemoCommunity.make(seed: 6, eventsCount: 400, on: InlineWork())
    #expect(first.events == second.events)
    #expect(first.events.map(\.id) != other.events.map(\.id))
  }

  @Test func `every event of the community verifies`() async throws {
    let community = try await DemoCommunity.make(seed: 2, eventsCount: 600, on: InlineWork())
    let verifier = Verifier()
    for event in community.events { _ = try verifier.verify(event) }
    #expect(Set(community.events.map(\.id)).count == community.events.count)
  }

  @Test func `the relay holds exactly the number of events asked for`() async throws {
    let relay = try await DemoRelay.make(seed: 3, eventsCount: 1500, on: WorkPool())
    let count = try relay.machine.store.count([Filter()]) { _ in true }
    #expect(count == 1500)
  }

  @Test func `the community has everything that a client must cope with`() async throws {
    let community = try await DemoCommunity.make(seed: 1, eventsCount: 2000, on: WorkPool())
    let kinds = Set(community.events.map(\.kind))
    #expect(kinds.isSuperset(of: [0, 5, 7, 9, 11, 9005, 39000, 39001, 39002, 39003, 40003]))
    #expect(Set(community.events.compactMap(\.group)).count == 6)
    #expect(community.people.count == 12)
    let bySecond = Dictionary(grouping: community.events, by: \.createdAt)
    #expect(bySecond.values.contains { $0.count > 50 })
    #expect(bySecond.values.count { $0.count > 1 } > 200)
    #expect(community.events.allSatisfy { $0.createdAt <= DemoCommunity.end })
  }

  @Test func `a demo relay with a folder keeps what it was sent`() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "demo-\(UUID())").path()
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let message = Bench.event(by: "ann", 9, [["h", "general"]], "hello")
    let selfKey: PublicKey?
    do {
      let first = try await DemoRelay.make(
        seed: 9, eventsCount: 200, folder: folder, on: InlineWork())
      try first.journal?.append(message)
      selfKey = first.machine.identity.selfKey
    }
    let second = try await DemoRelay.make(
      seed: 9, eventsCount: 50, folder: folder, on: InlineWork())
    #expect(try second.machine.store.event(message.id) == message)
    #expect(try second.machine.store.count([Filter()]) { _ in true } == 201)
    #expect(second.machine.identity.selfKey == selfKey)
  }

  @Test func `a journal has one relay at a time`() throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "journal-\(UUID())").path()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let event = Bench.event(by: "ann", 1, [], "kept")
    do {
      let (journal, _) = try EventJournal.open(path: path)
      #expect(throws: JournalError.inUse(path: path)) { try EventJournal.open(path: path) }
      try journal.append(event)
    }
    #expect(try EventJournal.open(path: path).1 == [event])
  }

  @Test func `a line torn by a crash is cut off, and a damaged one is named`() throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "journal-\(UUID())").path()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let events = (0..<3).map { Bench.event(by: "ann", 1, [], "\($0)") }
    let whole: [UInt8] = events.flatMap { (event: Event) -> [UInt8] in event.json() + [0x0a] }
    try Data(whole.dropLast(20)).write(to: URL(filePath: path))
    do {
      let (journal, read) = try EventJournal.open(path: path)
      #expect(read == Array(events.prefix(2)))
      try journal.append(events[2])
    }
    #expect(try EventJournal.open(path: path).1 == events)
    try Data(Array("{}\n".utf8) + whole).write(to: URL(filePath: path))
    #expect(throws: JournalError.damaged(path: path, line: 1, reason: "shape")) {
      try EventJournal.open(path: path)
    }
  }
}
