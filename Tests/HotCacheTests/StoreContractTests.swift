import Nostr
import Testing

@testable import HotCache

/// One suite that every home for rows must pass.
enum StoreKind: String, CaseIterable, Sendable {
  case memory, lmdb, overlay

  func make(_ scratch: Scratch) throws -> any CacheStore {
    switch self {
    case .memory: MemoryStore()
    case .lmdb: try Self.files(scratch)
    case .overlay: OverlayStore(base: try Self.files(scratch))
    }
  }

  static func files(_ scratch: Scratch, mapBytes: Int = 1 << 22, mapBytesMax: Int = 1 << 30) throws
    -> LMDBStore
  {
    LMDBStore(
      environment: try LMDBEnvironment(
        path: scratch.path, access: .writing, mapBytes: mapBytes, mapBytesMax: mapBytesMax))
  }
}

struct StoreContractTests {
  private let meta = CacheMeta(logID: [1, 2], foldVersion: 7, applied: 9, lastEntry: 3)

  @Test(arguments: StoreKind.allCases)
  func `what was written is read, in order and within bounds`(kind: StoreKind) throws {
    let scratch = Scratch()
    let store = try kind.make(scratch)
    var dice = Dice(5)
    var rows: Set<IndexRow> = []
    // Keys with one entry, with a few, and with more than a page of them.
    for number in 0..<4000 {
      let hash = UInt64(number % 3 == 0 ? 1 : dice.below(300))
      let entry = IndexEntry(
        time: UInt32(dice.below(50)), prefix: dice.next(), sequence: UInt64(number + 1))
      rows.insert(IndexRow(key: IndexKey(space: 104, hash: hash, sub: 2), entry: entry))
    }
    for part in stride(from: 0, to: 4000, by: 500) {
      var batch = RowBatch()
      for row in rows.sorted(by: { $0.entry.sequence < $1.entry.sequence })
        .dropFirst(part).prefix(500)
      {
        batch.add(row.key, row.entry)
      }
      try store.write(&batch, meta: meta)
    }
    try store.read { snapshot throws(StoreError) in
      #expect(try snapshot.meta() == meta)
      let keys = try snapshot.keys(
        from: IndexKey(space: 0, hash: 0), through: IndexKey(space: 255, hash: .max), limit: .max)
      #expect(keys == Set(rows.map(\.key)).sorted())
      let some = try snapshot.keys(from: keys[3], through: keys[9], limit: 4)
      #expect(some == Array(keys[3..<7]))
      for key in keys.prefix(40) {
        let expected = rows.filter { $0.key == key }.map(\.entry).sorted()
        if kind != .overlay { #expect(try snapshot.count(key) == expected.count) }
        #expect(try entries(snapshot, key, .lowest, .highest, false, .max) == expected)
        #expect(
          try entries(snapshot, key, .lowest, .highest, true, 5)
            == Array(expected.reversed().prefix(5)))
        let lower = IndexEntry(time: 10, prefix: 0, sequence: 0)
        let upper = IndexEntry(time: 30, prefix: .max, sequence: IndexEntry.sequenceMax)
        let middle = expected.filter { $0 >= lower && $0 <= upper }
        #expect(try entries(snapshot, key, lower, upper, false, .max) == middle)
        #expect(try entries(snapshot, key, lower, upper, true, .max) == middle.reversed())
        if let exact = expected.dropFirst(expected.count / 2).first {
          #expect(try entries(snapshot, key, exact, exact, true, 2) == [exact])
          #expect(try entries(snapshot, key, exact, exact, false, 2) == [exact])
        }
      }
      let missing = IndexKey(space: 104, hash: 9999, sub: 2)
      #expect(try snapshot.count(missing) == 0)
      #expect(try entries(snapshot, missing, .lowest, .highest, true, 5) == [])
    }
    store.close()
  }

  @Test(arguments: StoreKind.allCases)
  func `bodies, ids and small rows come back, and writing them again changes nothing`(
    kind: StoreKind
  ) throws {
    let scratch = Scratch()
    let store = try kind.make(scratch)
    let events = (0..<50).map {
      message("text \($0)", at: Int64($0), [["p", person(3).hex, "x"], ["alone"], ["", ""]])
    }
    for _ in 0..<2 {
      var batch = RowBatch()
      for (index, event) in events.enumerated() {
        batch.addBody(event, sequence: UInt64(index * 2 + 1))
        batch.add(SmallKey([1, UInt8(index)]), [UInt8(index)])
      }
      try store.write(&batch, meta: meta)
    }
    try store.read { snapshot throws(StoreError) in
      for (index, event) in events.enumerated() {
        let row = try snapshot.body(at: UInt64(index * 2 + 1))
        #expect(row?.id == event.id)
        #expect(row?.tags == event.tags)
        #expect(row?.content == event.content)
        #expect(row?.createdAt == event.createdAt)
        #expect(
          try snapshot.sequences(idPrefix: event.id.bytes.prefix) == [UInt64(index * 2 + 1)])
      }
      #expect(try snapshot.body(at: 2) == nil ? true : false)
      let rest = try snapshot.bodies(after: 90, limit: 3).map(\.sequence)
      #expect(rest == [91, 93, 95])
      let small = try snapshot.small(prefix: [1], after: SmallKey([1, 46]), limit: 10)
      #expect(small.map(\.value) == [[47], [48], [49]])
      #expect(try snapshot.small(prefix: [2], after: nil, limit: 10).isEmpty)
    }
    store.close()
  }

  @Test func `a full map grows within its budget, and beyond it says so`() throws {
    let events = (0..<2000).map { message("text \($0)", at: Int64($0)) }
    let log = ArrayLog()
    log.append(events)
    let growing = Scratch()
    try fold(log, into: StoreKind.files(growing, mapBytes: 64 << 10, mapBytesMax: 64 << 20))
    let tight = Scratch()
    let store = try StoreKind.files(tight, mapBytes: 64 << 10, mapBytesMax: 128 << 10)
    #expect(throws: StoreError.self) { try fold(log, into: store) }
    let found = try store.read { snapshot throws(StoreError) in
      (try snapshot.meta()?.applied ?? 0, try snapshot.bodies(after: 0, limit: .max).count)
    }
    #expect(found.0 == UInt64(found.1), "rows and watermark are one transaction")
  }

  @Test func `a row that changed is refused`() throws {
    var arena: [UInt8] = []
    BodyRow.append(message("text", at: 5), sequence: 4, to: &arena)
    #expect(BodyRow(sequence: 4, bytes: arena)?.content == "text")
    #expect(BodyRow(sequence: 5, bytes: arena) == nil)
    for index in arena.indices {
      var changed = arena
      changed[index] ^= 0x20
      #expect(BodyRow(sequence: 4, bytes: changed) == nil)
    }
    #expect(BodyRow(sequence: 4, bytes: Array(arena.dropLast())) == nil)
    let sealed = SmallRow.sealed([1, 2, 3], key: [9])
    #expect(try open(sealed, key: [9]) == [1, 2, 3])
    #expect(throws: StoreError.self) { try open(sealed, key: [8]) }
  }

  private func open(_ sealed: [UInt8], key: [UInt8]) throws -> [UInt8] {
    try sealed.withUnsafeBytes { try SmallRow.opened($0, key: key) }
  }

  private func entries(
    _ snapshot: any StoreSnapshot, _ key: IndexKey, _ lower: IndexEntry, _ upper: IndexEntry,
    _ descending: Bool, _ limit: Int
  ) throws(StoreError) -> [IndexEntry] {
    var result: [IndexEntry] = []
    try snapshot.entries(
      key, from: lower, through: upper, descending: descending, limit: limit, into: &result)
    return result
  }
}
