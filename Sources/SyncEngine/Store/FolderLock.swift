import Glibc
import Platform

/// Holds a community's folder for this process, for as long as the value lives.
///
/// The kernel's lock decides, and goes with the process however that ends; the number in the file
/// only tells people who holds it.
final class FolderLock: Sendable {
  static let name = "lock"
  private let descriptor: Int32

  init(folder: String) throws(StoreError) {
    let path = folder + "/" + Self.name
    let opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
    guard opened >= 0 else { throw StoreError(errno: errno, path: path) }
    if let problem = FileLock.take(opened) {
      let pid = Self.pid(in: opened)
      Glibc.close(opened)
      throw problem == EWOULDBLOCK
        ? StoreError.inUse(folder: folder, pid: pid) : StoreError(errno: problem, path: path)
    }
    descriptor = opened
    let text = Array("\(getpid())\n".utf8)
    // Without the number somebody would be told less; the lock holds all the same.
    _ = ftruncate(descriptor, 0)
    _ = pwrite(descriptor, text, text.count, 0)
  }

  deinit { Glibc.close(descriptor) }

  /// Whether a process holds the folder; nil where that cannot be told.
  static func isHeld(folder: String) -> Bool? {
    let opened = open(folder + "/" + name, O_RDONLY | O_CLOEXEC)
    guard opened >= 0 else { return errno == ENOENT ? false : nil }
    defer { Glibc.close(opened) }
    if flock(opened, LOCK_SH | LOCK_NB) == 0 { return false }
    return errno == EWOULDBLOCK ? true : nil
  }

  private static func pid(in descriptor: Int32) -> Int32? {
    var bytes = [UInt8](repeating: 0, count: 16)
    let count = pread(descriptor, &bytes, bytes.count, 0)
    guard count > 0 else { return nil }
    return Int32(String(decoding: bytes.prefix(count).prefix { $0 != 0x0a }, as: UTF8.self))
  }
}

extension StoreError {
  init(errno problem: Int32, path: String) {
    switch problem {
    case EACCES, EPERM, EROFS: self = .readOnly(path)
    case ENOSPC, EDQUOT: self = .full(path)
    default: self = .io("\(path): \(String(cString: strerror(problem)))")
    }
  }
}
