import Nostr

/// SplitMix64: the same seed gives the same values in every process.
struct Generator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var value = state
    value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
    return value ^ value >> 31
  }

  mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

  mutating func bytes32() -> Bytes32 {
    let bytes = (0..<32).map { _ in UInt8(truncatingIfNeeded: next()) }
    return Bytes32(bytes) ?? .zero
  }

  /// Text of characters that take every way through reader and writer.
  mutating func text(lengthMax: Int) -> Text {
    var scalars = String.UnicodeScalarView()
    for _ in 0..<below(lengthMax + 1) {
      let value: UInt32
      switch below(8) {
      case 0: value = UInt32(below(0x20))
      case 1: value = [0x22, 0x5c, 0x2f, 0x7f][below(4)]
      case 2: value = 0x80 + UInt32(below(0x780))
      case 3: value = 0x800 + UInt32(below(0xd000))
      case 4: value = 0x10000 + UInt32(below(0x100000))
      default: value = 0x20 + UInt32(below(0x5f))
      }
      scalars.append(Unicode.Scalar(value) ?? "?")
    }
    return Text(String(scalars))
  }

  mutating func event() -> Event {
    var tags: [[Text]] = []
    for _ in 0..<below(5) {
      // Now and then more elements than one byte counts.
      let count = below(40) == 0 ? 150 : 1 + below(4)
      tags.append((0..<count).map { _ in text(lengthMax: below(30) == 0 ? 200 : 12) })
    }
    return Event(
      id: EventID(bytes32()), pubkey: PublicKey(bytes32()),
      createdAt: Timestamp(Int64(bitPattern: next() >> UInt64(1 + below(60)))),
      kind: EventKind(UInt16(truncatingIfNeeded: next())), tags: Tags(tags),
      content: text(lengthMax: 300), sig: Signature(first: bytes32(), second: bytes32()))
  }
}
