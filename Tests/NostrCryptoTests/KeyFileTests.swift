import Foundation
import Glibc
import Nostr
import NostrCrypto
import Testing

@Suite struct KeyFileTests {
  /// A folder of its own for each test, gone afterwards.
  private final class Folder {
    let path: String

    init() throws {
      path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    // The folder is scratch: what cannot be removed is left to the system.
    deinit { try? FileManager.default.removeItem(atPath: path) }

    var file: String { path + "/key" }
    var names: [String] {
      get throws { try FileManager.default.contentsOfDirectory(atPath: path).sorted() }
    }

    func write(_ text: String, mode: Int = 0o600) throws {
      try Data(text.utf8).write(to: URL(fileURLWithPath: file))
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
    }
  }

  private let nsec = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"
  private let encrypted =
    "ncryptsec1qgzxhvmcnvq9aknl2633f7g94m7epyhpf9ue7m5a5jrve0md877k7qy8xls9h7fe44dsz6wfvkwfrpp0f7pqpct5uumyd5f7kwjarm25tx9k4v4xgqwgpwfye8wp0fj39pnhnz3n06tcamu0mgx8wvde"

  @Test(arguments: [(0o700, true), (0o755, true), (0o777, false), (0o720, false), (0o1777, true)])
  func `a key in a folder that others may write into is refused`(mode: Int, isTaken: Bool) throws {
    let folder = try Folder()
    try folder.write(nsec)
    #expect(chmod(folder.path, mode_t(mode)) == 0)
    defer { _ = chmod(folder.path, 0o700) }
    let refusal = KeyFileError.folderTooOpen(path: folder.path, mode: UInt32(mode & 0o777))
    if isTaken {
      #expect(try KeyFile.load(path: folder.file).nsec() == nsec)
    } else {
      #expect(throws: refusal) { try KeyFile.load(path: folder.file) }
    }
  }

  @Test func `a link to nothing is not called a missing key`() throws {
    let folder = try Folder()
    #expect(symlink(folder.path + "/gone", folder.file) == 0)
    #expect(throws: KeyFileError.linkToNothing(path: folder.file)) {
      try KeyFile.load(path: folder.file)
    }
    #expect(throws: KeyFileError.missing(path: folder.path + "/other")) {
      try KeyFile.load(path: folder.path + "/other")
    }
  }

  @Test func `a saved key is closed to others and comes back`() throws {
    let folder = try Folder()
    let key = SecretKey.generate()
    try KeyFile.save(key, path: folder.file)
    let attributes = try FileManager.default.attributesOfItem(atPath: folder.file)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    #expect(try KeyFile.load(path: folder.file).nsec() == key.nsec())
    #expect(try !KeyFile.isEncrypted(path: folder.file))
    #expect(try folder.names == ["key"])
  }

  @Test func `an encrypted key asks for its passphrase`() throws {
    let folder = try Folder()
    let key = SecretKey.generate()
    let path = folder.file
    try KeyFile.save(key, path: path, passphrase: Array("open".utf8), logN: 2)
    #expect(try KeyFile.isEncrypted(path: path))
    #expect(try KeyFile.load(path: path, passphrase: Array("open".utf8)).nsec() == key.nsec())
    #expect(throws: KeyFileError.needsPassphrase(path: path)) { try KeyFile.load(path: path) }
    #expect(throws: KeyFileError.doesNotDecrypt(path: path)) {
      try KeyFile.load(path: path, passphrase: Array("shut".utf8))
    }
    let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    #expect(!String(decoding: bytes, as: UTF8.self).contains("nsec1v"))
  }

  @Test(arguments: ["garbage", "", "nsec1qqqq", "ncryptsec1qqqq", "npub1garbage"])
  func `what is no key is not called one, encrypted or not`(text: String) throws {
    let folder = try Folder()
    try folder.write(text, mode: 0o600)
    #expect(throws: KeyFileError.malformed(path: folder.file)) {
      try KeyFile.isEncrypted(path: folder.file)
    }
  }

  @Test(arguments: [0o640, 0o604, 0o644, 0o660, 0o601, 0o777])
  func `a file that others may reach is refused`(mode: Int) throws {
    let folder = try Folder()
    try folder.write(nsec, mode: mode)
    let error = #expect(throws: KeyFileError.tooOpen(path: folder.file, mode: UInt32(mode))) {
      try KeyFile.load(path: folder.file)
    }
    #expect(error?.description.contains("chmod 600") == true)
  }

  @Test(arguments: [0o600, 0o400])
  func `a file that only its owner may reach is read`(mode: Int) throws {
    let folder = try Folder()
    try folder.write(nsec, mode: mode)
    #expect(try KeyFile.load(path: folder.file).nsec() == nsec)
  }

  @Test(arguments: ["", "\n"])
  func `white space around the key does no harm`(space: String) throws {
    let folder = try Folder()
    try folder.write(" \t" + nsec + "\r\n" + space)
    #expect(try KeyFile.load(path: folder.file).nsec() == nsec)
  }

  @Test func `what is no key is called so`() throws {
    let folder = try Folder()
    let path = folder.file
    for text in [
      "", "\n", "hello", nsec.dropLast() + "x", nsec + "\n" + nsec, encrypted.dropLast() + "x",
      String(repeating: "x", count: 5000), "ncryptsec", nsec + String(repeating: "\n", count: 5000),
    ] {
      try folder.write(String(text))
      #expect(throws: KeyFileError.malformed(path: path)) {
        try KeyFile.load(path: path, passphrase: [1])
      }
    }
  }

  @Test func `a missing file and a folder are told apart`() throws {
    let folder = try Folder()
    #expect(throws: KeyFileError.missing(path: folder.file)) { try KeyFile.load(path: folder.file) }
    #expect(throws: KeyFileError.malformed(path: folder.path)) {
      try KeyFile.load(path: folder.path)
    }
  }

  @Test func `a key is replaced only where that was asked`() throws {
    let folder = try Folder()
    let path = folder.file
    let (first, second) = (SecretKey.generate(), SecretKey.generate())
    try KeyFile.save(first, path: path)
    #expect(throws: KeyFileError.exists(path: path)) { try KeyFile.save(second, path: path) }
    #expect(try KeyFile.load(path: path).nsec() == first.nsec())
    try KeyFile.save(second, path: path, replacing: true)
    #expect(try KeyFile.load(path: path).nsec() == second.nsec())
    #expect(try folder.names == ["key"])
  }

  @Test func `a folder that is not there is an error with its name`() throws {
    let folder = try Folder()
    let path = folder.path + "/none/key"
    let error = #expect(throws: KeyFileError.self) {
      try KeyFile.save(.generate(), path: path)
    }
    #expect(error?.description.contains("No such file or directory") == true)
  }
}
