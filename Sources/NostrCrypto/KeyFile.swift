import Glibc

/// Why a key file was neither read nor written. Each sentence says what to do.
public enum KeyFileError: Error, Hashable, Sendable, CustomStringConvertible {
  case missing(path: String)
  /// Others may read or change it; the mode is what it has now.
  case tooOpen(path: String, mode: UInt32)
  /// Others may put another key in its place; the mode is the folder's.
  case folderTooOpen(path: String, mode: UInt32)
  /// A link stands there, and what it points to does not.
  case linkToNothing(path: String)
  /// It holds neither `nsec1…` nor `ncryptsec1…`.
  case malformed(path: String)
  case needsPassphrase(path: String)
  case doesNotDecrypt(path: String)
  /// The encryption asks for more than this machine or program gives.
  case cannotDecrypt(path: String, NIP49Error)
  /// There is a key already, and it was not to be replaced.
  case exists(path: String)
  case io(path: String, doing: String, errno: Int32)

  public var description: String {
    switch self {
    case .missing(let path):
      "there is no key at \(path): make one, or import yours"
    case .tooOpen(let path, let mode):
      "others may reach the key at \(path) (mode \(String(mode, radix: 8))): run chmod 600 on it,"
        + " and think of the key as seen if others use this machine"
    case .folderTooOpen(let path, let mode):
      "others may put a key of theirs into \(path) (mode \(String(mode, radix: 8))): run chmod 700 on"
        + " it, and look whether the key is yours"
    case .linkToNothing(let path):
      "\(path) is a link to nothing: put the key back where it points, or remove the link"
    case .malformed(let path):
      "\(path) holds no secret key (nsec1… or ncryptsec1…): import yours again"
    case .needsPassphrase(let path):
      "the key at \(path) is encrypted: give its passphrase"
    case .doesNotDecrypt(let path):
      "the passphrase does not open the key at \(path): try again"
    case .cannotDecrypt(let path, let error):
      "the key at \(path) could not be decrypted: \(error)"
    case .exists(let path):
      "there is a key at \(path) already: export it and move it away first"
    case .io(let path, let doing, let code):
      "could not \(doing) \(path): \(String(cString: strerror(code)))"
    }
  }
}

extension KeyFileError {
  fileprivate init(_ error: NIP49Error, _ path: String) {
    self =
      switch error {
      case .doesNotDecrypt: .doesNotDecrypt(path: path)
      case .malformed: .malformed(path: path)
      case .version, .rounds, .memory: .cannotDecrypt(path: path, error)
      }
  }
}

/// The file of one identity: a single line, `nsec1…` or `ncryptsec1…` (NIP-49), that only its owner
/// may reach.
public enum KeyFile {
  /// Whether opening the key takes a passphrase; looks at its form as far as that goes without one.
  public static func isEncrypted(path: String) throws(KeyFileError) -> Bool {
    var line = try read(path)
    defer { wipe(&line) }
    guard line.starts(with: NIP49.prefix.utf8) else {
      _ = try plainKey(line, path)
      return false
    }
    do throws(NIP49Error) {
      _ = try NIP49.parts(String(decoding: line, as: UTF8.self))
      return true
    } catch {
      throw KeyFileError(error, path)
    }
  }

  private static func plainKey(
    _ line: [UInt8], _ path: String
  ) throws(KeyFileError) -> SecretKey {
    do throws(KeyError) {
      return try SecretKey(nsec: String(decoding: line, as: UTF8.self))
    } catch {
      throw .malformed(path: path)
    }
  }

  /// - Parameter passphrase: In Unicode form NFKC; not looked at where the key is not encrypted.
  /// - Complexity: scrypt where the key is encrypted; it blocks.
  public static func load(
    path: String, passphrase: [UInt8]? = nil
  ) throws(KeyFileError) -> SecretKey {
    var line = try read(path)
    defer { wipe(&line) }
    guard line.starts(with: NIP49.prefix.utf8) else { return try plainKey(line, path) }
    guard let passphrase else { throw .needsPassphrase(path: path) }
    do throws(NIP49Error) {
      return try NIP49.decrypt(String(decoding: line, as: UTF8.self), passphrase: passphrase)
    } catch {
      throw KeyFileError(error, path)
    }
  }

  /// Writes the key, whole or not at all; after a crash the path holds the old state or the new.
  ///
  /// - Parameters:
  ///   - passphrase: Encrypts the key where given; in Unicode form NFKC.
  ///   - replacing: Whether a key that is there already gives way.
  public static func save(
    _ key: SecretKey, path: String, passphrase: [UInt8]? = nil, logN: UInt8 = NIP49.logNDefault,
    replacing: Bool = false, entropy: any Entropy = SystemEntropy()
  ) throws(KeyFileError) {
    var line: [UInt8]
    if let passphrase {
      do throws(NIP49Error) {
        let text = try NIP49.encrypt(key, passphrase: passphrase, logN: logN, entropy: entropy)
        line = Array(text.utf8)
      } catch {
        throw .cannotDecrypt(path: path, error)
      }
    } else {
      line = Array(key.nsec().utf8)
    }
    defer { wipe(&line) }
    line.append(UInt8(ascii: "\n"))
    let draft = path + ".new-" + entropy.bytes(8).map { String($0, radix: 16) }.joined()
    do throws(KeyFileError) {
      try write(line, draft: draft)
      try publish(draft: draft, as: path, replacing: replacing)
    } catch {
      unlink(draft)
      throw error
    }
    try syncFolder(of: path)
  }

  private static let bytesMax = 4096

  /// The first line, its white space cut off, of a file that only its owner may reach.
  private static func read(_ path: String) throws(KeyFileError) -> [UInt8] {
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else {
      let problem = errno
      var link = stat()
      guard problem == ENOENT else { throw .io(path: path, doing: "read", errno: problem) }
      throw lstat(path, &link) == 0 ? .linkToNothing(path: path) : .missing(path: path)
    }
    defer { close(file) }
    try refuseOpen(folder(of: path))
    // Asked of the open file, so that nobody can swap it in between.
    var status = stat()
    guard fstat(file, &status) == 0 else { throw .io(path: path, doing: "read", errno: errno) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw .malformed(path: path) }
    guard status.st_mode & 0o077 == 0 else {
      throw .tooOpen(path: path, mode: status.st_mode & 0o777)
    }
    var bytes = [UInt8](repeating: 0, count: bytesMax + 1)
    defer { wipe(&bytes) }
    var count = 0
    while count < bytes.count {
      let room = bytes.count - count
      let got = bytes.withUnsafeMutableBytes { buffer in
        Glibc.read(file, buffer.baseAddress.map { $0 + count }, room)
      }
      if got < 0 && errno == EINTR { continue }
      guard got >= 0 else { throw .io(path: path, doing: "read", errno: errno) }
      if got == 0 { break }
      count += got
    }
    let isSpace: (UInt8) -> Bool = { $0 == 0x20 || (0x09...0x0d).contains($0) }
    let line = bytes[..<count].drop(while: isSpace).prefix { !isSpace($0) }
    let rest = bytes[line.endIndex..<count]
    guard !line.isEmpty, count <= bytesMax, rest.allSatisfy(isSpace)
    else { throw .malformed(path: path) }
    return Array(line)
  }

  /// Refuses a folder in which others may replace the key. In one that is sticky they cannot.
  private static func refuseOpen(_ folder: String) throws(KeyFileError) {
    var status = stat()
    guard stat(folder, &status) == 0 else {
      throw .io(path: folder, doing: "read", errno: errno)
    }
    guard status.st_mode & 0o022 == 0 || status.st_mode & 0o1000 != 0 else {
      throw .folderTooOpen(path: folder, mode: status.st_mode & 0o777)
    }
  }

  private static func write(_ line: [UInt8], draft: String) throws(KeyFileError) {
    // Created closed: a chmod afterwards would leave a moment in which others can open it.
    let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode_t(0o600))
    guard file >= 0 else { throw .io(path: draft, doing: "create", errno: errno) }
    var written = 0
    var failure: Int32?
    while failure == nil && written < line.count {
      let went = line.withUnsafeBytes { bytes in
        Glibc.write(file, bytes.baseAddress.map { $0 + written }, line.count - written)
      }
      if went < 0 {
        if errno != EINTR { failure = errno }
      } else {
        written += went
      }
    }
    if failure == nil && fsync(file) != 0 { failure = errno }
    close(file)
    if let failure { throw .io(path: draft, doing: "write", errno: failure) }
  }

  private static func publish(
    draft: String, as path: String, replacing: Bool
  ) throws(KeyFileError) {
    if replacing {
      guard rename(draft, path) == 0 else { throw .io(path: path, doing: "write", errno: errno) }
      return
    }
    // A rename would replace silently; a link is refused where the name is taken.
    guard link(draft, path) == 0 else {
      throw errno == EEXIST ? .exists(path: path) : .io(path: path, doing: "write", errno: errno)
    }
    unlink(draft)
  }

  private static func folder(of path: String) -> String {
    let end = path.utf8.lastIndex(of: UInt8(ascii: "/"))
    return end.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
  }

  /// A file's name survives power loss only once its folder is written.
  private static func syncFolder(of path: String) throws(KeyFileError) {
    let folder = folder(of: path)
    let file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard file >= 0 else { throw .io(path: folder, doing: "write", errno: errno) }
    defer { close(file) }
    guard fsync(file) == 0 else { throw .io(path: folder, doing: "write", errno: errno) }
  }
}
