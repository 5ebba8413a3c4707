import Glibc

/// The first hundred bytes of a SQLite file, read without SQLite: looking at a file through SQLite
/// may already make files beside it, and a file that is not ours is not to be touched.
struct FileHeader {
  let pageSize: Int
  let pageCount: Int
  /// Whether `pageCount` was written together with the last change.
  let isPageCountValid: Bool
  let schemaVersion: Int
  let applicationID: UInt32
  let fileBytes: Int

  /// The number that marks a file as a log: "SKEP".
  static let application: UInt32 = 0x534b_4550

  /// - Returns: Nil where there is no file, or an empty one.
  static func read(path: String) throws(LogError) -> FileHeader? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      let problem = errno
      if problem == ENOENT || problem == ENOTDIR { return nil }
      throw LogError.io("\(path): \(String(cString: strerror(problem)))")
    }
    defer { Glibc.close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      throw LogError.notALog(path)
    }
    guard status.st_size > 0 else { return nil }
    var bytes = [UInt8](repeating: 0, count: 100)
    // Only logs are ever put where this program looks for one, so it was one.
    guard pread(descriptor, &bytes, 100, 0) == 100, bytes.starts(with: magic) else {
      throw LogError.damaged("\(path) does not begin as a log does")
    }
    return FileHeader(bytes, fileBytes: Int(status.st_size))
  }

  /// Makes an empty file, because SQLite does not say why it cannot.
  static func create(path: String) throws(LogError) {
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
    if descriptor >= 0 {
      Glibc.close(descriptor)
      return
    }
    switch errno {
    case EACCES, EPERM, EROFS: throw LogError.readOnly(path)
    case ENOSPC, EDQUOT: throw LogError.full(path)
    case let problem: throw LogError.io("\(path): \(String(cString: strerror(problem)))")
    }
  }

  private static let magic = Array("SQLite format 3\0".utf8)

  private init(_ bytes: [UInt8], fileBytes: Int) {
    func number(at offset: Int, count: Int = 4) -> Int {
      bytes[offset..<offset + count].reduce(0) { $0 << 8 | Int($1) }
    }
    let size = number(at: 16, count: 2)
    pageSize = size == 1 ? 65_536 : size
    pageCount = number(at: 28)
    isPageCountValid = number(at: 24) == number(at: 92)
    schemaVersion = number(at: 60)
    applicationID = UInt32(number(at: 68))
    self.fileBytes = fileBytes
  }

  /// Whether the file is shorter than it says of itself.
  var isTruncated: Bool {
    isPageCountValid && pageCount > 0 && pageSize > 0 && fileBytes < pageCount * pageSize
  }
}

/// What the file system says about a path.
enum FileSize {
  /// The size in bytes; nil where there is no such file.
  static func of(_ path: String) -> Int? {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    return Int(status.st_size)
  }
}
