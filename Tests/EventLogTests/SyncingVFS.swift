import CSQLite
import Platform

/// A copy of the system's VFS that counts how often a file is brought to the disk, can make it fail,
/// and lets a test look at the files before each change.
///
/// All files of the system's VFS share the functions for it, so that one original of each is enough.
enum SyncingVFS {
  static let name = "syncing"

  private struct State {
    var syncs = 0
    var isFailing = false
    var original: (@convention(c) (UnsafeMutablePointer<sqlite3_file>?, Int32) -> Int32)?
    var originalWrite: Write?
    var onChange: (@Sendable () -> Void)?
    /// Where each copied table of functions is, by where the system's is; they are never freed.
    var methods: [Int: Int] = [:]
    var isRegistered = false
  }

  private typealias Write =
    @convention(c) (
      UnsafeMutablePointer<sqlite3_file>?, UnsafeRawPointer?, Int32, sqlite3_int64
    ) -> Int32

  private static let state = Lock(State())

  static var syncs: Int { state.withLock { $0.syncs } }

  static func setFailing(_ isFailing: Bool) { state.withLock { $0.isFailing = isFailing } }

  /// Is called before each write and each sync.
  static func setOnChange(_ body: (@Sendable () -> Void)?) {
    state.withLock { $0.onChange = body }
  }

  static func register() {
    state.withLock { state in
      guard !state.isRegistered, let system = sqlite3_vfs_find(nil) else { return }
      state.isRegistered = true
      let copy = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
      copy.initialize(to: system.pointee)
      let bytes = Array(name.utf8CString)
      let cName = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count)
      cName.initialize(from: bytes, count: bytes.count)
      copy.pointee.zName = UnsafePointer(cName)
      copy.pointee.xOpen = { _, path, file, flags, outFlags in
        guard let system = sqlite3_vfs_find(nil), let open = system.pointee.xOpen else {
          return SQLITE_ERROR
        }
        let code = open(system, path, file, flags, outFlags)
        if code == SQLITE_OK, let file { SyncingVFS.watch(file) }
        return code
      }
      sqlite3_vfs_register(copy, 0)
    }
  }

  private static func watch(_ file: UnsafeMutablePointer<sqlite3_file>) {
    guard let methods = file.pointee.pMethods else { return }
    let address = Int(bitPattern: methods)
    let copied = state.withLock { state -> Int in
      if let known = state.methods[address] { return known }
      let copy = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
      copy.initialize(to: methods.pointee)
      state.original = methods.pointee.xSync
      state.originalWrite = methods.pointee.xWrite
      copy.pointee.xSync = { file, flags in SyncingVFS.sync(file, flags) }
      copy.pointee.xWrite = { file, bytes, count, offset in
        let (body, original) = SyncingVFS.state.withLock { ($0.onChange, $0.originalWrite) }
        body?()
        return original?(file, bytes, count, offset) ?? SQLITE_ERROR
      }
      state.methods[address] = Int(bitPattern: copy)
      return Int(bitPattern: copy)
    }
    file.pointee.pMethods = UnsafePointer(bitPattern: copied)
  }

  private static func sync(_ file: UnsafeMutablePointer<sqlite3_file>?, _ flags: Int32) -> Int32 {
    let (isFailing, original, body) = state.withLock { state in
      state.syncs += 1
      return (state.isFailing, state.original, state.onChange)
    }
    body?()
    if isFailing { return SQLITE_IOERR | (4 << 8) }
    return original?(file, flags) ?? SQLITE_ERROR
  }
}
