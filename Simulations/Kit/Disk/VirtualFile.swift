import RelayServer

/// A file as a disk keeps it: what was synced is safe, what was written since may be there after a
/// power cut, or not, or in part.
final class VirtualFile {
  /// What one write reaches the disk in.
  static let sectorBytes = 512
  private static let pageBytes = 4096
  private static let regionBytes = 32_768

  private(set) var bytes: [UInt8]
  /// How long the file was when it was synced last.
  private var syncedCount: Int
  /// The synced content of each page that was changed since, by its number.
  private var before: [Int: [UInt8]] = [:]
  /// What was synced before the file was cut short, where that is not safe yet: a cut reaches the disk
  /// as a whole or not at all.
  private var uncut: [UInt8]?
  /// Shared memory of the connections to it, which no crash survives.
  private var regions: [UnsafeMutableRawPointer] = []
  var locks = FileLocks()

  init(_ bytes: [UInt8] = []) {
    self.bytes = bytes
    syncedCount = bytes.count
  }

  deinit { for region in regions { region.deallocate() } }

  func read(into target: UnsafeMutableRawBufferPointer, at offset: Int) -> Int {
    guard offset < bytes.count else { return 0 }
    let count = min(target.count, bytes.count - offset)
    bytes.withUnsafeBytes { target.copyMemory(from: .init(rebasing: $0[offset..<offset + count])) }
    return count
  }

  func write(_ source: UnsafeRawBufferPointer, at offset: Int) {
    guard !source.isEmpty else { return }
    let end = offset + source.count
    keepPages(from: offset, to: end)
    if bytes.count < end { bytes.append(contentsOf: repeatElement(0, count: end - bytes.count)) }
    bytes.withUnsafeMutableBytes {
      UnsafeMutableRawBufferPointer(rebasing: $0[offset..<end]).copyMemory(from: source)
    }
  }

  func truncate(to count: Int) {
    guard count < bytes.count else { return }
    uncut = uncut ?? synced
    for page in before.keys {
      let left = max(0, count - page * VirtualFile.pageBytes)
      if let old = before[page], old.count > left { before[page] = Array(old[..<left]) }
    }
    syncedCount = min(syncedCount, count)
    bytes.removeLast(bytes.count - count)
  }

  private var synced: [UInt8] {
    var result = Array(bytes.prefix(syncedCount))
    result += repeatElement(0, count: syncedCount - result.count)
    for (page, old) in before {
      let from = page * VirtualFile.pageBytes
      result.replaceSubrange(from..<from + old.count, with: old)
    }
    return result
  }

  func sync() {
    before.removeAll(keepingCapacity: true)
    uncut = nil
    syncedCount = bytes.count
  }

  private func keepPages(from start: Int, to end: Int) {
    let last = min(end, syncedCount)
    guard start < last else { return }
    for page in start / VirtualFile.pageBytes...(last - 1) / VirtualFile.pageBytes
    where before[page] == nil {
      let from = page * VirtualFile.pageBytes
      let kept = min(from + VirtualFile.pageBytes, syncedCount, bytes.count)
      before[page] = from < kept ? Array(bytes[from..<kept]) : []
    }
  }

  /// What is there after the power was cut: of each sector that was not synced, the old or the new.
  func afterPowerCut(_ random: inout SplitMix64) -> [UInt8] {
    if let uncut, random.chance(30) { return uncut }
    let sector = VirtualFile.sectorBytes
    // Sometimes all of it was still on its way, sometimes hardly anything.
    let oldPercent = random.element(of: [10, 50, 90])
    let lostPercent = random.element(of: [0, 0, 5, 20])
    let low = min(syncedCount, bytes.count)
    let high = max(syncedCount, bytes.count)
    var result = bytes
    if result.count < high {
      result.append(contentsOf: repeatElement(0, count: high - result.count))
    }
    for page in before.keys.sorted() {
      let old = before[page] ?? []
      for piece in stride(from: 0, to: old.count, by: sector) where random.chance(oldPercent) {
        let from = page * VirtualFile.pageBytes + piece
        let end = min(piece + sector, old.count)
        result.replaceSubrange(from..<from + end - piece, with: old[piece..<end])
      }
    }
    let count = low == high ? low : random.number(in: low / sector..<high / sector + 1) * sector
    let kept = min(max(count, low), high)
    for piece in stride(from: low / sector * sector + sector, to: kept, by: sector)
    where random.chance(lostPercent) {
      for index in piece..<min(piece + sector, kept) { result[index] = 0 }
    }
    return Array(result[..<kept])
  }

  /// One piece of the memory that the connections share.
  func region(_ number: Int, mayGrow: Bool) -> UnsafeMutableRawPointer? {
    while mayGrow, regions.count <= number {
      let region = UnsafeMutableRawPointer.allocate(
        byteCount: VirtualFile.regionBytes, alignment: 16)
      region.initializeMemory(as: UInt8.self, repeating: 0, count: VirtualFile.regionBytes)
      regions.append(region)
    }
    return number < regions.count ? regions[number] : nil
  }
}

/// Who holds what of one file: SQLite's five levels for the file, and its eight slots of shared
/// memory.
struct FileLocks {
  enum Level: Int, Comparable {
    case none, shared, reserved, pending, exclusive

    static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }
  }

  private var levels: [Int: Level] = [:]
  private var shared = [Int](repeating: 0, count: 8)
  private var exclusive = [Bool](repeating: false, count: 8)

  /// - Returns: Whether the connection holds that level now.
  mutating func raise(_ connection: Int, to level: Level) -> Bool {
    let others = levels.filter { $0.key != connection }.values
    let isFree =
      switch level {
      case .none: true
      case .shared: others.allSatisfy { $0 < .pending }
      case .reserved, .pending: others.allSatisfy { $0 < .reserved }
      case .exclusive: others.allSatisfy { $0 == .none }
      }
    guard isFree else { return false }
    levels[connection] = max(levels[connection] ?? .none, level)
    return true
  }

  mutating func lower(_ connection: Int, to level: Level) {
    levels[connection] = level == .none ? nil : min(levels[connection] ?? .none, level)
  }

  /// Whether somebody means to write.
  var isReserved: Bool { levels.values.contains { $0 >= .reserved } }

  mutating func lockSlots(_ slots: Range<Int>, isShared: Bool) -> Bool {
    for slot in slots where exclusive[slot] || !isShared && shared[slot] > 0 { return false }
    for slot in slots { if isShared { shared[slot] += 1 } else { exclusive[slot] = true } }
    return true
  }

  mutating func unlockSlots(_ slots: Range<Int>, isShared: Bool) {
    for slot in slots {
      if isShared { shared[slot] = max(0, shared[slot] - 1) } else { exclusive[slot] = false }
    }
  }
}
