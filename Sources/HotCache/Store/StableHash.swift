/// Hashes that are the same in every process and on every machine, because they are written down.
///
/// Swift's own `Hasher` is seeded per process and can be used for neither keys nor checksums.
package enum StableHash {
  /// SipHash-1-3 of `bytes`. Long tag values stand in index keys as this; the real value is
  /// compared whenever a row is read, so a collision costs a read and never an answer.
  static func value(_ bytes: UnsafeRawBufferPointer, salt: UInt64 = 0) -> UInt64 {
    var state = Sip(salt: salt)
    var offset = 0
    while offset + 8 <= bytes.count {
      state.compress(
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
      offset += 8
    }
    var tail = UInt64(bytes.count & 0xff) << 56
    for index in offset..<bytes.count { tail |= UInt64(bytes[index]) << (8 * (index - offset)) }
    state.compress(tail)
    return state.finish()
  }

  package static func value(_ bytes: some Collection<UInt8>, salt: UInt64 = 0) -> UInt64 {
    let hashed = bytes.withContiguousStorageIfAvailable {
      value(UnsafeRawBufferPointer($0), salt: salt)
    }
    return hashed ?? Array(bytes).withUnsafeBytes { value($0, salt: salt) }
  }

  /// A 32-bit checksum against torn and rotten rows; `seed` binds a row to its place, so that a
  /// right row at a wrong place is found too.
  static func checksum(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt32 {
    var hash = (seed &+ 0x9e37_79b9_7f4a_7c15) ^ (UInt64(bytes.count) &* 0xff51_afd7_ed55_8ccd)
    var offset = 0
    while offset + 8 <= bytes.count {
      hash =
        (hash ^ bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        &* 0x9e37_79b9_7f4a_7c15
      hash ^= hash >> 29
      offset += 8
    }
    while offset < bytes.count {
      hash = (hash ^ UInt64(bytes[offset])) &* 0x0000_0100_0000_01b3
      offset += 1
    }
    hash = (hash ^ (hash >> 32)) &* 0xc4ce_b9fe_1a85_ec53
    return UInt32(truncatingIfNeeded: hash ^ (hash >> 32))
  }

  private struct Sip {
    private var v0: UInt64
    private var v1: UInt64
    private var v2: UInt64
    private var v3: UInt64

    init(salt: UInt64) {
      v0 = 0x736f_6d65_7073_6575 ^ 0x7f4a_7c15_9e37_79b9
      v1 = 0x646f_7261_6e64_6f6d ^ salt
      v2 = 0x6c79_6765_6e65_7261 ^ 0x7f4a_7c15_9e37_79b9
      v3 = 0x7465_6462_7974_6573 ^ salt
    }

    mutating func compress(_ word: UInt64) {
      v3 ^= word
      round()
      v0 ^= word
    }

    mutating func finish() -> UInt64 {
      v2 ^= 0xff
      round()
      round()
      round()
      return v0 ^ v1 ^ v2 ^ v3
    }

    private mutating func round() {
      v0 = v0 &+ v1
      v1 = (v1 << 13 | v1 >> 51) ^ v0
      v0 = v0 << 32 | v0 >> 32
      v2 = v2 &+ v3
      v3 = (v3 << 16 | v3 >> 48) ^ v2
      v0 = v0 &+ v3
      v3 = (v3 << 21 | v3 >> 43) ^ v0
      v2 = v2 &+ v1
      v1 = (v1 << 17 | v1 >> 47) ^ v2
      v2 = v2 << 32 | v2 >> 32
    }
  }
}
