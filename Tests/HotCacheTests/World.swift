import Foundation
import EventLog
import Nostr
import Platform
import SyncCore

@testable import HotCache

/// A log in memory, a generator of events without signatures (the cache never looks at one), and
/// short names for what tests write often.
final class ArrayLog: EntrySource, Sendable {
  private let kept: Lock<[LogEntry]>
  private let name: [UInt8]

  init(_ entries: [LogEntry] = [], name: String = "log") {
    kept = Lock(entries)
    self.name = Array(name.utf8)
  }

  func logID() throws(CacheError) -> [UInt8] { name }

  func head() throws(CacheError) -> LogSequence {
    LogSequence(Int64(kept.withLock { $0.count }))
  }

  func entries(after sequence: LogSequence, limit: Int) throws(CacheError) -> [LogEntry] {
    kept.withLock { entries in
      Array(entries.dropFirst(Int(sequence.number)).prefix(limit))
    }
  }

  func append(_ body: LogEntry.Body) {
    kept.withLock { entries in
      entries.append(LogEntry(sequence: LogSequence(Int64(entries.count + 1)), body: body))
    }
  }

  func append(_ events: [Event], from source: RelayURL? = nil) {
    for event in events { append(.logged(event, from: source)) }
  }

  /// The same log cut short.
  func prefix(_ count: Int) -> ArrayLog {
    ArrayLog(kept.withLock { Array($0.prefix(count)) }, name: String(decoding: name, as: UTF8.self))
  }
}

extension LogEntry.Body {
  static func logged(_ event: Event, from source: RelayURL? = nil) -> LogEntry.Body {
    .event(LoggedEvent(event: event, idForm: .standard, receivedAt: 0, source: source))
  }
}

/// SplitMix64: the same numbers for the same seed everywhere.
struct Dice {
  private var state: UInt64

  init(_ seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var value = state
    value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
    return value ^ (value >> 31)
  }

  mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(max(1, bound))) }

  mutating func pick<Element>(_ list: [Element]) -> Element { list[below(list.count)] }

  mutating func shuffled<Element>(_ list: [Element]) -> [Element] {
    var result = list
    for index in stride(from: result.count - 1, to: 0, by: -1) {
      result.swapAt(index, below(index + 1))
    }
    return result
  }
}

func person(_ number: UInt8) -> PublicKey {
  PublicKey(Bytes32([number, number] + [UInt8](repeating: 7, count: 30)) ?? .zero)
}

let relayKey = person(200)
let relayA = RelayURL("wss://a.example") ?? testRelay
let relayB = RelayURL("wss://b.example") ?? testRelay
private let testRelay: RelayURL = {
  guard let url = RelayURL("ws://localhost") else { preconditionFailure("a relay's name is wrong") }
  return url
}()

/// An event whose id is a number in its first bytes, or a hash of its fields.
func event(
  _ kind: EventKind, by author: UInt8 = 1, at time: Int64, _ tags: [[String]] = [],
  _ content: String = "", id: UInt64? = nil
) -> Event {
  event(kind, by: person(author), at: time, tags, content, id: id)
}

func event(
  _ kind: EventKind, by author: PublicKey, at time: Int64, _ tags: [[String]] = [],
  _ content: String = "", id: UInt64? = nil
) -> Event {
  var bytes: [UInt8] = []
  if let id {
    bytes.append(integer: id)
    bytes += [UInt8](repeating: 1, count: 24)
  } else {
    let seed = Array("\(kind) \(author) \(time) \(tags) \(content)".utf8)
    for salt in 0..<4 { bytes.append(integer: StableHash.value(seed, salt: UInt64(salt))) }
  }
  return Event(
    id: EventID(Bytes32(bytes) ?? .zero), pubkey: author, createdAt: Timestamp(time), kind: kind,
    tags: Tags(tags), content: Text(content),
    sig: Signature(first: .zero, second: .zero))
}

func message(
  _ text: String, by author: UInt8 = 1, at time: Int64, in group: String = "g",
  _ tags: [[String]] = [], id: UInt64? = nil
) -> Event {
  event(9, by: author, at: time, [["h", group]] + tags, text, id: id)
}

func reply(
  _ text: String, to parent: Event, root: Event? = nil, by author: UInt8 = 1, at time: Int64,
  in group: String = "g", broadcast: Bool = false
) -> Event {
  var tags = [["e", (root ?? parent).id.hex, "", "root"], ["e", parent.id.hex, "", "reply"]]
  if broadcast { tags.append(["broadcast", "1"]) }
  return message(text, by: author, at: time, in: group, tags)
}

/// Views over a store in memory that holds the fold of these entries.
func views(_ log: ArrayLog) throws -> CacheViews {
  let store = MemoryStore()
  try fold(log, into: store)
  return CacheViews(store: store, state: .ok)
}

func views(_ events: [Event], from source: RelayURL? = nil) throws -> CacheViews {
  let log = ArrayLog()
  log.append(events, from: source)
  return try views(log)
}

func fold(_ log: ArrayLog, into store: any CacheStore, batch size: Int = 100) throws {
  var meta = CacheMeta(logID: try log.logID(), foldVersion: EntryFold.version)
  while true {
    let entries = try log.entries(after: LogSequence(Int64(meta.applied)), limit: size)
    guard let last = entries.last else { return }
    var batch = RowBatch()
    for entry in entries { EntryFold.fold(entry, into: &batch) }
    meta.applied = UInt64(last.sequence.number)
    meta.lastEntry = EntryFold.mark(last)
    try store.write(&batch, meta: meta)
  }
}

/// A folder of its own that is removed at the end.
final class Scratch {
  let path: String

  init() {
    path =
      FileManager.default.temporaryDirectory
      .appendingPathComponent("hotcache-\(UUID().uuidString)").path
    // A folder that cannot be made shows in the test that needs it.
    try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }
}

let noon: Timestamp = 2_000_000_000
