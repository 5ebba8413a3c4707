import Nostr

/// What an index key is about. Tag letters (`a-z`, `A-Z`) are spaces of their own; ours are below.
enum IndexSpace {
  /// hash 0, sub = kind.
  static let kind: UInt8 = 1
  /// hash = the author's first 8 bytes, sub = kind. Also the slot of a replaceable event.
  static let author: UInt8 = 2
  /// hash = address of an addressable event (kind, author, first `d`).
  static let slot: UInt8 = 3
  /// hash = (kind, `d`) of group state, whoever signed it.
  static let groupState: UInt8 = 4
  /// hash = the target's first 8 bytes, sub = `Reference`.
  static let reference: UInt8 = 5
  /// hash = (member, group) of membership notices and commands.
  static let membership: UInt8 = 6
}

/// The upper four bits of `sub` in the reference space; the lower 28 narrow the key down to one
/// author (or group), so that a flood by others cannot slow down the question that matters.
enum Reference: UInt32 {
  /// Kind 5 with an `e` tag, by deleter.
  case deletion = 0
  /// Kind 9005 with an `e` tag.
  case moderation = 1
  /// Kind 40003 whose last `e` tag it is, by editor.
  case edit = 2
  /// Kind 7 whose last `e` tag it is.
  case reaction = 3
  /// A message in the thread of that root, by group.
  case thread = 4

  func sub(_ narrowing: UInt64 = 0) -> UInt32 {
    rawValue << 28 | UInt32(truncatingIfNeeded: narrowing & 0x0fff_ffff)
  }

  static let maskOfNarrowing: UInt32 = 0x0fff_ffff
}

/// `sub` in the space of `h`.
enum GroupClass {
  static let other: UInt32 = 0
  /// A row of the group's timeline: top level, or a broadcast reply.
  static let timeline: UInt32 = 1
  /// A message shown only in its thread.
  static let threadOnly: UInt32 = 2
}

/// The key of one set of index entries.
struct IndexKey: Hashable, Comparable, Sendable {
  let space: UInt8
  let hash: UInt64
  let sub: UInt32

  static let byteCount = 13

  init(space: UInt8, hash: UInt64, sub: UInt32 = 0) {
    self.space = space
    self.hash = hash
    self.sub = sub
  }

  init(_ bytes: UnsafeRawBufferPointer) {
    space = bytes[0]
    hash = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 1, as: UInt64.self))
    sub = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 9, as: UInt32.self))
  }

  func write(to bytes: UnsafeMutableRawBufferPointer) {
    bytes[0] = space
    bytes.storeBytes(of: hash.bigEndian, toByteOffset: 1, as: UInt64.self)
    bytes.storeBytes(of: sub.bigEndian, toByteOffset: 9, as: UInt32.self)
  }

  static func < (left: IndexKey, right: IndexKey) -> Bool {
    if left.space != right.space { return left.space < right.space }
    if left.hash != right.hash { return left.hash < right.hash }
    return left.sub < right.sub
  }
}

/// One event in an index, in the order of its bytes: time, then the first 8 bytes of the id.
///
/// Times from 2^32−1 on share one stamp, and ids may share a prefix; whoever needs the exact order
/// of such entries reads their bodies (`EntryStream`).
struct IndexEntry: Hashable, Comparable, Sendable {
  let time: UInt32
  let prefix: UInt64
  let sequence: UInt64

  static let byteCount = 17
  static let lowest = IndexEntry(time: 0, prefix: 0, sequence: 0)
  static let highest = IndexEntry(time: .max, prefix: .max, sequence: sequenceMax)
  /// Sequences are kept in five bytes.
  static let sequenceMax: UInt64 = (1 << 40) - 1

  init(time: UInt32, prefix: UInt64, sequence: UInt64) {
    self.time = time
    self.prefix = prefix
    self.sequence = sequence
  }

  init(_ bytes: UnsafeRawBufferPointer) {
    time = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt32.self))
    prefix = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt64.self))
    let low = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 13, as: UInt32.self))
    sequence = UInt64(bytes[12]) << 32 | UInt64(low)
  }

  func write(to bytes: UnsafeMutableRawBufferPointer) {
    bytes.storeBytes(of: time.bigEndian, toByteOffset: 0, as: UInt32.self)
    bytes.storeBytes(of: prefix.bigEndian, toByteOffset: 4, as: UInt64.self)
    bytes[12] = UInt8(truncatingIfNeeded: sequence >> 32)
    bytes.storeBytes(
      of: UInt32(truncatingIfNeeded: sequence).bigEndian, toByteOffset: 13, as: UInt32.self)
  }

  /// The stamp of a time: 0 before 1970, and the highest from 2106 on.
  static func stamp(_ time: Timestamp) -> UInt32 { UInt32(clamping: time.seconds) }

  static func < (left: IndexEntry, right: IndexEntry) -> Bool {
    if left.time != right.time { return left.time < right.time }
    if left.prefix != right.prefix { return left.prefix < right.prefix }
    return left.sequence < right.sequence
  }
}

/// One row of the index table.
struct IndexRow: Hashable, Comparable, Sendable {
  let key: IndexKey
  let entry: IndexEntry

  static func < (left: IndexRow, right: IndexRow) -> Bool {
    left.key != right.key ? left.key < right.key : left.entry < right.entry
  }
}

extension Bytes32 {
  /// The first eight bytes as a number whose order is the bytes' order.
  var prefix: UInt64 {
    withUnsafeBytes { UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)) }
  }
}

extension IndexKey {
  static func kind(_ kind: EventKind) -> IndexKey {
    IndexKey(space: IndexSpace.kind, hash: 0, sub: UInt32(kind.number))
  }

  static func author(_ author: PublicKey, _ kind: EventKind) -> IndexKey {
    IndexKey(space: IndexSpace.author, hash: author.bytes.prefix, sub: UInt32(kind.number))
  }

  static func tag(_ letter: UInt8, _ value: Text, sub: UInt32 = 0) -> IndexKey {
    IndexKey(space: letter, hash: tagHash(value), sub: sub)
  }

  /// Ids and keys stand for themselves by their first bytes, so that an entry's id prefix is also
  /// the hash under which references to it are found.
  static func tagHash(_ value: Text) -> UInt64 {
    value.utf8.withUnsafeBytes { bytes in
      if bytes.count == 64, let binary = Hex.decode64(bytes) { return binary.prefix }
      return StableHash.value(bytes)
    }
  }

  static func slot(kind: EventKind, author: PublicKey, identifier: Text) -> IndexKey {
    let salt = UInt64(kind.number) &+ author.bytes.prefix
    return IndexKey(
      space: IndexSpace.slot, hash: StableHash.value(identifier.utf8, salt: salt))
  }

  static func groupState(kind: EventKind, group: Text) -> IndexKey {
    IndexKey(
      space: IndexSpace.groupState, hash: StableHash.value(group.utf8, salt: UInt64(kind.number)))
  }

  static func reference(_ target: UInt64, _ class: Reference, _ narrowing: UInt64 = 0) -> IndexKey {
    IndexKey(space: IndexSpace.reference, hash: target, sub: `class`.sub(narrowing))
  }

  static func thread(root: EventID, group: Text?) -> IndexKey {
    .reference(root.bytes.prefix, .thread, StableHash.value(group?.utf8 ?? [], salt: 1))
  }

  /// Notices, narrowed to who signed them: only the relay's own count, and nobody can bury those.
  static func membership(
    _ member: PublicKey, group: Text, noticeBy signer: PublicKey
  ) -> IndexKey {
    let bits = UInt32(truncatingIfNeeded: signer.bytes.prefix) & Reference.maskOfNarrowing
    return IndexKey(
      space: IndexSpace.membership, hash: membershipHash(member, group), sub: 1 << 28 | bits)
  }

  static func membershipCommands(_ member: PublicKey, group: Text) -> IndexKey {
    IndexKey(space: IndexSpace.membership, hash: membershipHash(member, group))
  }

  private static func membershipHash(_ member: PublicKey, _ group: Text) -> UInt64 {
    StableHash.value(group.utf8, salt: member.bytes.prefix)
  }
}
