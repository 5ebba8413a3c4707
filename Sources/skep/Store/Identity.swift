import Foundation
import Glibc
import NostrCrypto
import SyncEngine

/// The key files of a home: one for each community that has its own, and a default one.
struct Identity {
  let home: Home
  let environment: [String: String]

  /// - Parameter community: Nil for the default identity.
  func path(of community: CommunityName?) -> String {
    home.identityFolder + "/" + (community.map { $0.text + ".key" } ?? "default.key")
  }

  /// The file that a community uses: its own, else the default one; nil where there is neither.
  func pathInUse(by community: CommunityName?) -> String? {
    // A file that may not be looked for is told by whoever opens it, not taken for none.
    [community, nil].map(path(of:)).first { path in
      var status = stat()
      return lstat(path, &status) == 0 || errno == EACCES
    }
  }

  /// Opens the key that a community uses; nil where there is none.
  func load(for community: CommunityName?) throws -> SecretKey? {
    guard let path = pathInUse(by: community) else { return nil }
    return try load(path)
  }

  func load(_ path: String) throws -> SecretKey {
    guard try KeyFile.isEncrypted(path: path) else { return try KeyFile.load(path: path) }
    guard let passphrase = try passphrase(prompt: "passphrase of \(path): ") else {
      throw KeyFileError.needsPassphrase(path: path)
    }
    return try KeyFile.load(path: path, passphrase: passphrase)
  }

  /// - Parameter passphrase: What the key was encrypted with where it came from; else nil.
  func save(
    _ key: SecretKey, for community: CommunityName?, encrypts: Bool, passphrase known: [UInt8]?
  ) throws {
    try makeFolder()
    var passphrase = known ?? given
    if passphrase == nil && encrypts {
      passphrase = try Passphrase.ask("new passphrase: ")
      guard let passphrase, !passphrase.isEmpty else {
        throw Failure(.key, "no passphrase: set SKEP_PASSPHRASE, or run this on a terminal")
      }
      guard try Passphrase.ask("the same again: ") == passphrase else {
        throw Failure(.key, "the two passphrases differ; nothing was saved")
      }
    }
    try KeyFile.save(key, path: path(of: community), passphrase: passphrase)
  }

  private func makeFolder() throws {
    do {
      try FileManager.default.createDirectory(
        atPath: home.identityFolder, withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700])
    } catch {
      throw SystemError.failure(errno, doing: "\(home.identityFolder) cannot be made")
    }
  }

  func passphrase(prompt: String) throws -> [UInt8]? {
    if let given { return given }
    return try Passphrase.ask(prompt)
  }

  /// `SKEP_PASSPHRASE`, in the Unicode form that NIP-49 asks for.
  private var given: [UInt8]? {
    environment["SKEP_PASSPHRASE"].flatMap { $0.isEmpty ? nil : Passphrase.normalised($0) }
  }
}

/// A passphrase asked for on the terminal.
enum Passphrase {
  static func normalised(_ text: String) -> [UInt8] {
    Array(text.precomposedStringWithCompatibilityMapping.utf8)
  }

  /// Nil where there is no terminal to ask.
  static func ask(_ prompt: String) throws -> [UInt8]? {
    let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
    guard terminal >= 0 else { return nil }
    defer { close(terminal) }
    var settings = termios()
    guard tcgetattr(terminal, &settings) == 0 else { return nil }
    var silent = settings
    silent.c_lflag &= ~tcflag_t(ECHO)
    tcsetattr(terminal, TCSAFLUSH, &silent)
    defer { tcsetattr(terminal, TCSAFLUSH, &settings) }
    put(prompt, terminal)
    var bytes: [UInt8] = []
    var byte: UInt8 = 0
    while bytes.count < 4096, read(terminal, &byte, 1) == 1, byte != 0x0a { bytes.append(byte) }
    put("\n", terminal)
    return normalised(String(decoding: bytes, as: UTF8.self))
  }

  private static func put(_ text: String, _ descriptor: Int32) {
    let bytes = Array(text.utf8)
    _ = write(descriptor, bytes, bytes.count)
  }
}
