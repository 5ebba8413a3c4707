import CSQLite
import Glibc
import RelayServer

/// The files that one life of a program has, in memory, with everything that a disk can do to them.
///
/// A life that crashed keeps its handles, as its actors are still there; but its disk is gone, and
/// all it hears of it is that it failed.
package final class VirtualDisk {
  /// What ends the power: nothing, or so many more writes.
  private var writesLeft: Int?
  private var files: [String: VirtualFile]
  private var random: SplitMix64
  private var bytesMax: Int?
  package private(set) var isDead = false
  /// Every sync fails, and what it was for is not safe.
  package var failsSyncs = false { didSet { wasFaulty = wasFaulty || failsSyncs } }
  package var failsWrites = false { didSet { wasFaulty = wasFaulty || failsWrites } }
  /// Whether it ever failed while there was power.
  private(set) var wasFaulty = false
  package private(set) var writes = 0
  package private(set) var syncs = 0
  /// What was there at the moment at which the power went.
  private var remains: [String: [UInt8]]?
  /// Is told when the power goes in the middle of a write.
  var onPowerCut: (() -> Void)?

  init(_ contents: [String: [UInt8]] = [:], random: SplitMix64) {
    files = contents.mapValues { VirtualFile($0) }
    self.random = random
  }

  var bytes: Int { files.values.reduce(0) { $0 + $1.bytes.count } }

  var isFull: Bool { bytesMax != nil }

  /// Whether it fails now, in one way or another.
  var isFaulty: Bool { failsSyncs || failsWrites || isFull }

  /// The disk takes so much more and is full then; nil: it has room again.
  package func setRoom(_ bytes: Int?) {
    bytesMax = bytes.map { self.bytes + $0 }
    wasFaulty = wasFaulty || bytes != nil
  }

  /// Ends the power at the write after so many others.
  package func cutPower(afterWrites count: Int) { writesLeft = count }

  // MARK: A crash

  /// The program is killed: what it wrote stays.
  package func kill() -> [String: [UInt8]] {
    defer { isDead = true }
    return remains ?? files.mapValues(\.bytes)
  }

  /// The power goes: what was not synced stays in part.
  package func cutPower() -> [String: [UInt8]] {
    defer { isDead = true }
    return remains ?? torn()
  }

  private func torn() -> [String: [UInt8]] {
    var result: [String: [UInt8]] = [:]
    for (name, file) in files.sorted(by: { $0.key < $1.key }) {
      result[name] = file.afterPowerCut(&random)
    }
    return result
  }

  /// Where some text or bytes are found in what is kept.
  package func contains(_ needle: [UInt8]) -> Bool {
    files.values.contains { file in
      file.bytes.withUnsafeBytes { bytes in VirtualDisk.contains(needle, in: bytes) }
    }
  }

  static func contains(_ needle: [UInt8], in bytes: UnsafeRawBufferPointer) -> Bool {
    guard let first = needle.first else { return false }
    var offset = 0
    while offset + needle.count <= bytes.count,
      let start = bytes.baseAddress?.advanced(by: offset),
      let found = memchr(start, Int32(first), bytes.count - offset - needle.count + 1)
    {
      if memcmp(found, needle, needle.count) == 0 { return true }
      offset += start.distance(to: UnsafeRawPointer(found)) + 1
    }
    return false
  }

  // MARK: What SQLite asks for

  func open(_ name: String, mayMake: Bool) -> VirtualFile? {
    guard !isDead else { return nil }
    if let file = files[name] { return file }
    guard mayMake else { return nil }
    let file = VirtualFile()
    files[name] = file
    return file
  }

  func exists(_ name: String) -> Bool { !isDead && files[name] != nil }

  func remove(_ name: String) -> Int32 {
    guard !isDead else { return SQLITE_IOERR }
    files[name] = nil
    return SQLITE_OK
  }

  func write(_ source: UnsafeRawBufferPointer, to file: VirtualFile, at offset: Int) -> Int32 {
    guard !isDead else { return SQLITE_IOERR }
    writes += 1
    if let left = writesLeft {
      if left == 0 {
        remains = torn()
        isDead = true
        onPowerCut?()
        return SQLITE_IOERR
      }
      writesLeft = left - 1
    }
    if failsWrites { return SQLITE_IOERR }
    let growth = max(0, offset + source.count - file.bytes.count)
    if let bytesMax, growth > 0, bytes + growth > bytesMax { return SQLITE_FULL }
    file.write(source, at: offset)
    return SQLITE_OK
  }

  func sync(_ file: VirtualFile) -> Int32 {
    guard !isDead else { return SQLITE_IOERR }
    syncs += 1
    if failsSyncs { return SQLITE_IOERR }
    file.sync()
    return SQLITE_OK
  }
}
