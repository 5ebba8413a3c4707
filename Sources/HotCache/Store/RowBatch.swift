import Nostr

/// The rows that a stretch of the log folds to, collected before they are written so that the
/// index rows can be sorted: neighbouring keys then land on the same pages.
///
/// Every row is a member of a set, and nothing is ever replaced or taken away. That is why any
/// order of the same events, and any repetition, gives the same store.
struct RowBatch: Sendable {
  struct Body: Sendable {
    let sequence: UInt64
    let range: Range<Int>
  }

  private(set) var bodies: [Body] = []
  private(set) var ids: [(prefix: UInt64, sequence: UInt64)] = []
  private(set) var index: [IndexRow] = []
  /// Small rows by key; see `SmallRow`.
  private(set) var small: [SmallKey: [UInt8]] = [:]
  private(set) var arena: [UInt8] = []

  var isEmpty: Bool { bodies.isEmpty && index.isEmpty && small.isEmpty }

  /// Whether enough has come together for a transaction of bounded size.
  var isFull: Bool { arena.count > 8 << 20 || index.count > 100_000 }

  mutating func addBody(_ event: Event, sequence: UInt64) {
    let start = arena.count
    BodyRow.append(event, sequence: sequence, to: &arena)
    bodies.append(Body(sequence: sequence, range: start..<arena.count))
    ids.append((event.id.bytes.prefix, sequence))
  }

  mutating func add(_ key: IndexKey, _ entry: IndexEntry) {
    index.append(IndexRow(key: key, entry: entry))
  }

  mutating func add(_ key: SmallKey, _ value: [UInt8]) { small[key] = value }

  mutating func removeAll() {
    bodies.removeAll(keepingCapacity: true)
    ids.removeAll(keepingCapacity: true)
    index.removeAll(keepingCapacity: true)
    small.removeAll(keepingCapacity: true)
    arena.removeAll(keepingCapacity: true)
  }

  mutating func sort() {
    bodies.sort { $0.sequence < $1.sequence }
    ids.sort { $0 < $1 }
    index.sort()
  }

  var smallSorted: [(key: SmallKey, value: [UInt8])] {
    small.map { (key: $0.key, value: $0.value) }.sorted { $0.key < $1.key }
  }
}

/// The key of a small row: what is not about one event's place in an index.
struct SmallKey: Hashable, Comparable, Sendable {
  let bytes: [UInt8]

  /// LMDB's limit is 511.
  static let byteCountMax = 400

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  static func < (left: SmallKey, right: SmallKey) -> Bool {
    left.bytes.lexicographicallyPrecedes(right.bytes)
  }

  /// A group id that was seen; the value is the id.
  static func group(_ id: Text) -> SmallKey {
    var key: [UInt8] = [UInt8(ascii: "g")]
    key.append(integer: StableHash.value(id.utf8))
    key.append(integer: StableHash.value(id.utf8, salt: 1))
    return SmallKey(key)
  }

  static let groups: [UInt8] = [UInt8(ascii: "g")]

  /// A relay that served an event; the value is the relay's URL.
  static func served(_ id: EventID, by relay: RelayURL) -> SmallKey {
    var key = served(id)
    key.append(integer: StableHash.value(relay.description.utf8))
    return SmallKey(key)
  }

  static func served(_ id: EventID) -> [UInt8] { [UInt8(ascii: "v")] + id.bytes.array }

  /// A relay's `self` as of a fact; the newest fact of a relay comes first.
  static func relaySelf(_ relay: RelayURL, at sequence: UInt64) -> SmallKey {
    var key: [UInt8] = [UInt8(ascii: "s")]
    key.append(integer: StableHash.value(relay.description.utf8))
    key.append(integer: ~sequence)
    return SmallKey(key)
  }

  static let relaySelves: [UInt8] = [UInt8(ascii: "s")]

  /// Whether an event is hidden as of a fact; the newest fact of an event comes first.
  static func hidden(_ id: EventID, at sequence: UInt64) -> SmallKey {
    var key = hidden(id)
    key.append(integer: ~sequence)
    return SmallKey(key)
  }

  static func hidden(_ id: EventID) -> [UInt8] { hiddenEvents + id.bytes.array }

  static let hiddenEvents: [UInt8] = [UInt8(ascii: "d")]

  /// The event that took the place of one that was dated anew, and the way back.
  static func redated(old: EventID, new: EventID) -> SmallKey {
    SmallKey(redated(old) + new.bytes.array)
  }

  static func redated(_ old: EventID) -> [UInt8] { [UInt8(ascii: "r")] + old.bytes.array }

  static func redatedFrom(new: EventID, old: EventID) -> SmallKey {
    SmallKey(redatedFrom(new) + old.bytes.array)
  }

  static let redatings: [UInt8] = [UInt8(ascii: "o")]

  static func redatedFrom(_ new: EventID) -> [UInt8] { [UInt8(ascii: "o")] + new.bytes.array }

  /// A name, folded to lower case, that a profile of `author` has or had.
  static func name(_ folded: [UInt8], _ author: PublicKey) -> SmallKey {
    SmallKey(names(prefix: folded) + [0] + author.bytes.array)
  }

  static func names(prefix folded: [UInt8]) -> [UInt8] {
    [UInt8(ascii: "n")] + folded.prefix(nameByteCountMax)
  }

  static let nameByteCountMax = 100
}

extension [UInt8] {
  mutating func append(integer: UInt64) {
    Swift.withUnsafeBytes(of: integer.bigEndian) { append(contentsOf: $0) }
  }
}
