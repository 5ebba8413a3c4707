import CSQLite
import Glibc
import Platform
import RelayServer

/// SQLite's way to the virtual disks: a VFS under which a path's folder names a disk.
enum VirtualFileSystem {
  static let name = "skep-virtual"

  // Unchecked: each disk is used by the thread of its world alone; the table itself is locked.
  private struct Mounted: @unchecked Sendable { let disk: VirtualDisk }

  private static let disks = Lock<[String: Mounted]>([:])

  static func mount(_ disk: VirtualDisk, at folder: String) {
    precondition(isRegistered, "SQLite took no further file system")
    disks.withLock { $0[folder] = Mounted(disk: disk) }
  }

  static func unmount(_ folder: String) { disks.withLock { $0[folder] = nil } }

  fileprivate static func find(_ path: UnsafePointer<CChar>) -> (disk: VirtualDisk, name: String)? {
    let path = String(cString: path)
    guard let slash = path.utf8.lastIndex(of: 0x2f) else { return nil }
    let mounted = disks.withLock { $0[String(path[..<slash])] }
    return mounted.map { ($0.disk, String(path[path.index(after: slash)...])) }
  }

  /// The tables of functions live as long as the process, as SQLite wants it.
  private static let isRegistered: Bool = {
    let table = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    guard let system = sqlite3_vfs_find(nil) else { return false }
    table.initialize(to: system.pointee)
    let bytes = Array(name.utf8CString)
    let cName = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count)
    cName.initialize(from: bytes, count: bytes.count)
    table.pointee.zName = UnsafePointer(cName)
    table.pointee.iVersion = 2
    table.pointee.pNext = nil
    table.pointee.szOsFile = Int32(MemoryLayout<OpenFile>.size)
    table.pointee.xOpen = { _, path, file, flags, outFlags in
      OpenFile.open(path, file, flags, outFlags)
    }
    table.pointee.xDelete = { _, path, _ in
      guard let path, let (disk, name) = find(path) else { return SQLITE_IOERR }
      return disk.remove(name)
    }
    table.pointee.xAccess = { _, path, _, result in
      guard let path, let (disk, name) = find(path) else { return SQLITE_IOERR }
      result?.pointee = disk.exists(name) ? 1 : 0
      return SQLITE_OK
    }
    table.pointee.xFullPathname = { _, path, count, result in
      guard let path, let result else { return SQLITE_CANTOPEN }
      let length = strlen(path) + 1
      guard length <= Int(count) else { return SQLITE_CANTOPEN }
      memcpy(result, path, length)
      return SQLITE_OK
    }
    table.pointee.xRandomness = { _, count, result in
      // Salts of the write-ahead log, which no answer depends on.
      if let result { memset(result, 7, Int(count)) }
      return count
    }
    // Time does not pass in a call.
    table.pointee.xSleep = { _, microseconds in microseconds }
    table.pointee.xCurrentTimeInt64 = { _, result in
      result?.pointee = 212_626_800_000_000
      return SQLITE_OK
    }
    return sqlite3_vfs_register(table, 0) == SQLITE_OK
  }()
}

/// What SQLite keeps for each open file; it begins as SQLite's own header does.
private struct OpenFile {
  var base: sqlite3_file
  var handle: UnsafeMutableRawPointer?

  /// One opening of one file.
  final class Handle {
    let disk: VirtualDisk
    let file: VirtualFile
    let name: String
    let isTransient: Bool

    init(disk: VirtualDisk, file: VirtualFile, name: String, isTransient: Bool) {
      self.disk = disk
      self.file = file
      self.name = name
      self.isTransient = isTransient
    }

    var number: Int { Int(bitPattern: ObjectIdentifier(self)) }
  }

  static func open(
    _ path: UnsafePointer<CChar>?, _ file: UnsafeMutablePointer<sqlite3_file>?, _ flags: Int32,
    _ outFlags: UnsafeMutablePointer<Int32>?
  ) -> Int32 {
    guard let file else { return SQLITE_CANTOPEN }
    file.pointee.pMethods = nil
    let handle: Handle
    if let path {
      guard let (disk, name) = VirtualFileSystem.find(path),
        let opened = disk.open(name, mayMake: flags & SQLITE_OPEN_CREATE != 0)
      else { return SQLITE_CANTOPEN }
      handle = Handle(
        disk: disk, file: opened, name: name,
        isTransient: flags & SQLITE_OPEN_DELETEONCLOSE != 0)
    } else {
      handle = Handle(
        disk: VirtualDisk(random: .init(seed: 0)), file: VirtualFile(), name: "", isTransient: true)
    }
    outFlags?.pointee = flags
    UnsafeMutableRawPointer(file).assumingMemoryBound(to: OpenFile.self).pointee.handle =
      Unmanaged.passRetained(handle).toOpaque()
    file.pointee.pMethods = UnsafePointer(methods)
    return SQLITE_OK
  }

  private static func handle(_ file: UnsafeMutablePointer<sqlite3_file>?) -> Handle? {
    guard let file else { return nil }
    return UnsafeMutableRawPointer(file).assumingMemoryBound(to: OpenFile.self).pointee.handle
      .map { Unmanaged<Handle>.fromOpaque($0).takeUnretainedValue() }
  }

  // Unchecked for the compiler only: it is written once and never changed.
  nonisolated(unsafe) private static let methods: UnsafeMutablePointer<sqlite3_io_methods> = {
    let table = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    table.initialize(to: sqlite3_io_methods())
    table.pointee.iVersion = 2
    table.pointee.xClose = { close($0) }
    table.pointee.xRead = { read($0, $1, $2, $3) }
    table.pointee.xWrite = { file, bytes, count, offset in
      guard let handle = handle(file) else { return SQLITE_IOERR }
      return handle.disk.write(
        UnsafeRawBufferPointer(start: bytes, count: Int(count)), to: handle.file, at: Int(offset))
    }
    table.pointee.xTruncate = { file, count in
      guard let handle = handle(file), !handle.disk.isDead else { return SQLITE_IOERR }
      handle.file.truncate(to: Int(count))
      return SQLITE_OK
    }
    table.pointee.xSync = { file, _ in
      guard let handle = handle(file) else { return SQLITE_IOERR }
      return handle.disk.sync(handle.file)
    }
    table.pointee.xFileSize = { file, result in
      guard let handle = handle(file), !handle.disk.isDead else { return SQLITE_IOERR }
      result?.pointee = sqlite3_int64(handle.file.bytes.count)
      return SQLITE_OK
    }
    table.pointee.xLock = { lock($0, $1) }
    table.pointee.xUnlock = { file, level in
      guard let handle = handle(file) else { return SQLITE_IOERR }
      handle.file.locks.lower(handle.number, to: FileLocks.Level(rawValue: Int(level)) ?? .none)
      return SQLITE_OK
    }
    table.pointee.xCheckReservedLock = { file, result in
      result?.pointee = handle(file)?.file.locks.isReserved == true ? 1 : 0
      return SQLITE_OK
    }
    table.pointee.xFileControl = { _, _, _ in SQLITE_NOTFOUND }
    table.pointee.xSectorSize = { _ in Int32(VirtualFile.sectorBytes) }
    table.pointee.xDeviceCharacteristics = { _ in 0 }
    table.pointee.xShmMap = { file, number, _, mayGrow, result in
      guard let handle = handle(file), !handle.disk.isDead else { return SQLITE_IOERR }
      result?.pointee = handle.file.region(Int(number), mayGrow: mayGrow != 0)
      return SQLITE_OK
    }
    table.pointee.xShmLock = { lockSlots($0, $1, $2, $3) }
    table.pointee.xShmBarrier = { _ in }
    table.pointee.xShmUnmap = { _, _ in SQLITE_OK }
    return table
  }()

  private static func close(_ file: UnsafeMutablePointer<sqlite3_file>?) -> Int32 {
    guard let file, let handle = handle(file) else { return SQLITE_OK }
    handle.file.locks.lower(handle.number, to: .none)
    if handle.isTransient, !handle.name.isEmpty { _ = handle.disk.remove(handle.name) }
    UnsafeMutableRawPointer(file).assumingMemoryBound(to: OpenFile.self).pointee.handle = nil
    Unmanaged.passUnretained(handle).release()
    return SQLITE_OK
  }

  private static func read(
    _ file: UnsafeMutablePointer<sqlite3_file>?, _ target: UnsafeMutableRawPointer?,
    _ count: Int32, _ offset: sqlite3_int64
  ) -> Int32 {
    guard let handle = handle(file), !handle.disk.isDead, let target else { return SQLITE_IOERR }
    let buffer = UnsafeMutableRawBufferPointer(start: target, count: Int(count))
    let got = handle.file.read(into: buffer, at: Int(offset))
    guard got < Int(count) else { return SQLITE_OK }
    memset(target + got, 0, Int(count) - got)
    return SQLITE_IOERR | (2 << 8)
  }

  private static func lock(_ file: UnsafeMutablePointer<sqlite3_file>?, _ level: Int32) -> Int32 {
    guard let handle = handle(file), !handle.disk.isDead,
      let level = FileLocks.Level(rawValue: Int(level))
    else { return SQLITE_IOERR }
    return handle.file.locks.raise(handle.number, to: level) ? SQLITE_OK : SQLITE_BUSY
  }

  private static func lockSlots(
    _ file: UnsafeMutablePointer<sqlite3_file>?, _ first: Int32, _ count: Int32, _ flags: Int32
  ) -> Int32 {
    guard let handle = handle(file), !handle.disk.isDead else { return SQLITE_IOERR }
    let slots = Int(first)..<Int(first + count)
    let isShared = flags & SQLITE_SHM_SHARED != 0
    if flags & SQLITE_SHM_UNLOCK != 0 {
      handle.file.locks.unlockSlots(slots, isShared: isShared)
      return SQLITE_OK
    }
    return handle.file.locks.lockSlots(slots, isShared: isShared) ? SQLITE_OK : SQLITE_BUSY
  }
}
