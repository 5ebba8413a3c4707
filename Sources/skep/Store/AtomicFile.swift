import Glibc

/// A file that appears whole or not at all: written without a name where the file system can do
/// that, so that nothing is left whatever ends the program; made durable, named, then renamed.
///
/// What is no file (a terminal, a named pipe, `/dev/null`) is written to as it is, since a rename
/// would replace it for everybody; and a link goes on pointing where it points.
final class AtomicFile {
  private let path: String
  /// Nil where the path is written to as it is.
  private let draft: String?
  /// Whether the draft has its name already, because it could not be made without one.
  private var isNamed = false
  private var descriptor: Int32
  private var buffer: [UInt8] = []
  private static let pieceBytes = 1024 * 1024

  init(_ path: String) throws {
    var status = stat()
    let isThere = stat(path, &status) == 0
    if isThere, status.st_mode & S_IFMT != S_IFREG {
      self.path = path
      draft = nil
      descriptor = open(path, O_WRONLY | O_CLOEXEC)
    } else {
      let place = Self.target(of: path)
      let draft = place + Self.mark + "\(getpid())"
      self.path = place
      self.draft = draft
      Self.sweep(place)
      // What has no name is given one through its number.
      let canName = access("/proc/self/fd", X_OK) == 0
      descriptor =
        !canName
        ? -1
        : open(
          Self.folder(of: place), Self.nameless | O_DIRECTORY | O_WRONLY | O_CLOEXEC, mode_t(0o644))
      if descriptor < 0 {
        descriptor = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode_t(0o644))
        isNamed = true
      }
      // What was kept from others stays so.
      if isThere, descriptor >= 0 { fchmod(descriptor, status.st_mode & 0o777) }
    }
    guard descriptor >= 0 else { throw failure() }
  }

  deinit {
    guard descriptor >= 0 else { return }
    close(descriptor)
    if let draft, isNamed { unlink(draft) }
  }

  private static let mark = ".part-"
  /// `__O_TMPFILE`, a macro that is not imported; it goes with `O_DIRECTORY`.
  private static let nameless: Int32 = 0o20_000_000

  /// Removes the drafts of this file that processes left which are no more.
  private static func sweep(_ place: String) {
    let folder = folder(of: place)
    let end = place.lastIndex(of: "/").map { place.index(after: $0) } ?? place.startIndex
    let start = place[end...] + mark
    guard let entries = opendir(folder) else { return }
    defer { closedir(entries) }
    while let entry = readdir(entries) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      guard name.hasPrefix(start), let process = pid_t(name.dropFirst(start.count)), process > 0,
        kill(process, 0) != 0, errno == ESRCH
      else { continue }
      unlink(folder + "/" + name)
    }
  }

  static func folder(of place: String) -> String {
    place.lastIndex(of: "/").map { $0 == place.startIndex ? "/" : String(place[..<$0]) } ?? "."
  }

  /// Whether two paths name one file, through links too, also where nothing is there yet.
  static func isSame(_ left: String, _ right: String) -> Bool {
    let places = [left, right].map { path -> [UInt64] in
      let place = target(of: path)
      var status = stat()
      if stat(place, &status) == 0 {
        // Writing twice to what is no file, such as a terminal, replaces nothing.
        return status.st_mode & S_IFMT == S_IFREG
          ? [UInt64(status.st_dev), UInt64(status.st_ino)] : []
      }
      guard stat(folder(of: place), &status) == 0 else { return [] }
      let name = place.utf8.split(separator: 0x2f).last.map { $0.map { UInt64($0) } } ?? []
      return [UInt64(status.st_dev), UInt64(status.st_ino)] + name
    }
    return !places[0].isEmpty && places[0] == places[1]
  }

  /// Where a chain of links ends, also where nothing is there yet.
  static func target(of path: String) -> String {
    var place = path
    for _ in 0..<linksMax {
      var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
      let count = readlink(place, &buffer, buffer.count)
      // What is no link cannot be read as one, and is the end.
      guard count > 0, count < buffer.count else { return place }
      let next = String(
        decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
      let end = place.lastIndex(of: "/").map { place.index(after: $0) } ?? place.startIndex
      place = next.hasPrefix("/") ? next : place[..<end] + next
    }
    return place
  }

  /// As many as the kernel follows.
  private static let linksMax = 40

  func write(_ bytes: [UInt8]) throws {
    buffer.append(contentsOf: bytes)
    if buffer.count >= Self.pieceBytes { try drain() }
  }

  /// Puts the file in its place; it survives a power cut from then on.
  func finish() throws {
    try drain()
    guard let draft else {
      close(descriptor)
      descriptor = -1
      return
    }
    guard fsync(descriptor) == 0 else { throw failure() }
    if !isNamed {
      unlink(draft)
      guard
        linkat(
          AT_FDCWD, "/proc/self/fd/\(descriptor)", AT_FDCWD, draft, Int32(AT_SYMLINK_FOLLOW)) == 0
      else { throw failure() }
      isNamed = true
    }
    close(descriptor)
    descriptor = -1
    guard rename(draft, path) == 0 else {
      let code = errno
      unlink(draft)
      throw SystemError.failure(code, doing: "\(path) cannot be written")
    }
    let folder = open(Self.folder(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard folder >= 0 else { return }
    fsync(folder)
    close(folder)
  }

  private func drain() throws {
    var start = 0
    while start < buffer.count {
      let written = buffer.withUnsafeBytes { bytes in
        Glibc.write(descriptor, bytes.baseAddress.map { $0 + start }, bytes.count - start)
      }
      if written >= 0 { start += written } else if errno != EINTR { throw failure() }
    }
    buffer.removeAll(keepingCapacity: true)
  }

  private func failure() -> Failure {
    SystemError.failure(errno, doing: "\(path) cannot be written")
  }
}
