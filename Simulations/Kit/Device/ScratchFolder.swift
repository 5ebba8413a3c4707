import Glibc
import Platform

/// Folders for what has to be real files: the caches and the locks of simulated homes.
///
/// They lie in memory where the system has such a place, and go with the world that made them.
package enum ScratchFolder {
  private static let counter = Lock(0)

  private static let base: String = {
    let root = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"
    removeAbandoned(in: root)
    return "\(root)/skep-sim-\(getpid())"
  }()

  /// A new folder; nothing of a run may depend on its name.
  package static func make() -> String {
    let number = counter.withLock { count -> Int in
      count += 1
      return count
    }
    mkdir(base, 0o700)
    let path = "\(base)/\(number)"
    mkdir(path, 0o700)
    return path
  }

  /// Removes a folder and all in it.
  package static func remove(_ path: String) {
    for name in names(in: path) {
      let child = "\(path)/\(name)"
      if unlink(child) != 0 { remove(child) }
    }
    rmdir(path)
  }

  /// What a process that was killed left behind.
  private static func removeAbandoned(in root: String) {
    for name in names(in: root) where name.hasPrefix("skep-sim-") {
      guard let process = pid_t(name.dropFirst(9)), kill(process, 0) != 0, errno == ESRCH else {
        continue
      }
      remove("\(root)/\(name)")
    }
  }

  static func removeFiles(in path: String) {
    for name in names(in: path) { unlink("\(path)/\(name)") }
  }

  static func names(in path: String) -> [String] {
    guard let folder = opendir(path) else { return [] }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
      // The name is an array of a fixed size, which Swift sees as a tuple.
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
  }

  /// Copies the files of a folder with their times, as they are now.
  static func copyFiles(from: String, to: String) {
    mkdir(to, 0o700)
    for name in names(in: from) {
      guard let bytes = read("\(from)/\(name)") else { continue }
      write(bytes, to: "\(to)/\(name)")
      copyTimes(from: "\(from)/\(name)", to: "\(to)/\(name)")
    }
  }

  static func read(_ path: String) -> [UInt8]? {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { return nil }
    var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
    let count = Glibc.read(file, &bytes, bytes.count)
    return count == bytes.count ? bytes : nil
  }

  static func write(_ bytes: [UInt8], to path: String) {
    let file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard file >= 0 else { return }
    defer { close(file) }
    _ = Glibc.write(file, bytes, bytes.count)
  }

  private static func copyTimes(from: String, to: String) {
    var status = stat()
    guard stat(from, &status) == 0 else { return }
    var times = (status.st_atim, status.st_mtim)
    _ = withUnsafePointer(to: &times) { pointer in
      pointer.withMemoryRebound(to: timespec.self, capacity: 2) {
        utimensat(AT_FDCWD, to, $0, 0)
      }
    }
  }
}
