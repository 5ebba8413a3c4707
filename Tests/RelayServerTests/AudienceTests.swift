import EventLog
import Foundation
import HotCache
import Nostr
import NostrCrypto
import Platform
import RelayServer
import SyncCore
import Testing

/// Who is shown what refers to the messages of a private group.
@Suite struct AudienceTests {
  private static let secret = Bench.event(by: "ann", 9, [["h", "sec"]], "secret")
  private static let open = Bench.event(by: "ann", 9, [["h", "pub"]], "open")
  private static let article = Bench.event(
    by: "ann", 30023, [["h", "sec"], ["d", "x"]], "secret")

  private final class World {
    private var bench: Bench
    private let stranger: ConnectionID
    private let member: ConnectionID

    init(_ bench: Bench) {
      var bench = bench
      stranger = bench.connect(as: "eve")
      member = bench.connect(as: "bob")
      self.bench = bench
    }

    func isShown(_ event: Event, toStranger: Bool = true) -> Bool {
      let id = toStranger ? stranger : member
      let isFoundByID = bench.ask(Filter(ids: [event.id]), on: id).ids == [event.id]
      let found = bench.ask(Filter(kinds: [event.kind]), on: id).ids
      #expect(found.contains(event.id) == isFoundByID)
      return isFoundByID
    }
  }

  /// A copy with a private group of ann and bob and a public one; `gone` is held and not served.
  private func copy(
    _ events: [Event], gone: [Event] = []
  ) throws -> World {
    var store = MemoryStore()
    let state = [
      Bench.event(by: "relay", 39000, [["d", "sec"], ["private"]]),
      Bench.event(
        by: "relay", 39002, [["d", "sec"], ["p", Bench.hex("ann")], ["p", Bench.hex("bob")]]),
      Bench.event(by: "relay", 39000, [["d", "pub"], ["public"]]),
    ]
    for event in state + [Self.secret, Self.open, Self.article] + events {
      _ = store.insert(event, scope: nil)
    }
    for event in gone { store.bury(event.id, by: nil) }
    var bench = Bench(.replica(asksForAuthentication: true), store: store)
    try bench.machine.reloadGroups()
    return World(bench)
  }

  private static let shapes: [(EventKind, String)] = [
    (40003, "e"), (1111, "E"), (1111, "e"), (9, "e"), (6, "e"), (16, "e"), (1984, "e"), (7, "e"),
    (5, "e"), (1, "q"),
  ]

  @Test(arguments: Self.shapes, [false, true])
  func `what refers to a private message is shown to the group alone`(
    shape: (kind: EventKind, tag: String), isGone: Bool
  ) throws {
    func event(on target: Event) -> Event {
      Bench.event(by: "bob", shape.kind, [[shape.tag, target.id.hex, ""]], "on \(target.content)")
    }
    let (told, plain) = (event(on: Self.secret), event(on: Self.open))
    let world = try copy(
      [told, plain], gone: isGone ? [Self.secret, Self.open] : [])
    #expect(!world.isShown(told))
    #expect(world.isShown(told, toStranger: false))
    #expect(world.isShown(plain))
  }

  @Test(arguments: ["a", "A", "q"], [false, true])
  func `so is what names its address`(tag: String, isGone: Bool) throws {
    let address = try #require(EventAddress(of: Self.article)).text.string
    let comment = Bench.event(by: "bob", 1111, [[tag, address]])
    let world = try copy([comment], gone: isGone ? [Self.article] : [])
    #expect(!world.isShown(comment))
    #expect(world.isShown(comment, toStranger: false))
  }

  @Test func `so is what refers to that, and what names two groups`() throws {
    let comment = Bench.event(
      by: "bob", 1111, [["e", Self.open.id.hex], ["E", Self.secret.id.hex]])
    let reaction = Bench.event(by: "bob", 7, [["e", comment.id.hex]])
    let both = Bench.event(by: "bob", 9, [["h", "pub"], ["h", "sec"]])
    let world = try copy([comment, reaction, both])
    for event in [comment, reaction, both] {
      #expect(!world.isShown(event))
      #expect(world.isShown(event, toStranger: false))
    }
  }

  @Test func `what refers to something unknown may be of any group of its author`() throws {
    let unknown = ["e", String(repeating: "1", count: 64)]
    let inside = Bench.event(by: "bob", 1, [unknown])
    let outside = Bench.event(by: "dan", 1, [unknown])
    let left = Bench.event(by: "gus", 1, [unknown])
    let trace = Bench.event(by: "gus", 9, [["h", "sec"]], "before I left")
    let world = try copy([inside, outside, left, trace])
    #expect(!world.isShown(inside) && world.isShown(inside, toStranger: false))
    #expect(!world.isShown(left) && world.isShown(left, toStranger: false))
    #expect(world.isShown(outside))
  }

  @Test func `the log tells what it holds of what is served no more`() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "audience-\(UUID())").path()
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let old = Bench.event(
      by: "ann", 9, [["h", "sec"], ["expiration", "\(Bench.start.seconds + 5)"]])
    let newer = Bench.event(by: "ann", 30023, [["h", "sec"], ["d", "x"]], at: Bench.start + 1)
    let address = try #require(EventAddress(of: Self.article))
    let deletion = Bench.event(
      by: "ann", 5, [["e", Self.secret.id.hex], ["a", address.text.string]], at: Bench.start + 2)
    let log = try await EventLog.open(
      path: folder + "/log.sqlite", executor: ThreadExecutor(), clock: LaterClock())
    let verifier = Verifier()
    let all = [Self.secret, old, Self.article, newer, deletion]
    _ = try await log.ingest(
      IngestBatch(events: try all.map { try verifier.verify($0) }, receivedAt: Bench.start))
    let cache = await HotCache.open(
      directory: folder + "/cache", log: log.reader, executor: ThreadExecutor())
    try await cache.catchUp()
    let store = LogStore(log: log.reader, views: cache.views, clock: LaterClock())
    for event in [Self.secret, old, Self.article, newer] {
      #expect(try store.event(event.id) == nil)
      #expect(try store.record(of: event.id) == event)
    }
    #expect(try store.record(of: address) == newer)
    await cache.close()
    await log.close()
  }

  private struct LaterClock: SyncClock {
    func now() -> Timestamp { Bench.start + 100_000 }
    func uptime() -> Duration { .zero }
    func sleep(until uptime: Duration) async throws {}
  }
}
