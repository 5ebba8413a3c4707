import Nostr
import Testing

@testable import NostrCrypto

@Suite struct NIP49Tests {
  static let own =
    (try? JSONValue.parse(Vectors.bytes("nip49-own.json")))?["encrypted"]?.array ?? []

  private func hex(_ key: SecretKey) -> String { key.withUnsafeBytes { Hex.string($0) } }

  @Test func `the key of the NIP opens`() throws {
    let text = """
      ncryptsec1qgg9947rlpvqu76pj5ecreduf9jxhselq2nae2kghhvd5g7dgjtcxfqtd67p9m0w57lspw8gsq6yphnm8623\
      nsl8xn9j4jdzz84zm3frztj3z7s35vpzmqf6ksu8r89qk5z2zxfmu5gv8th8wclt0h4p
      """
    let key = try NIP49.decrypt(text, passphrase: Array("nostr".utf8))
    #expect(hex(key) == "3501454135014541350145413501453fefb02227e449e57cf4d3a3ce05378683")
    #expect(throws: NIP49Error.doesNotDecrypt) {
      try NIP49.decrypt(text, passphrase: Array("Nostr".utf8))
    }
  }

  @Test func `every row of the vectors is read`() { #expect(Self.own.count == 3) }

  @Test(arguments: own)
  func `another implementation's key opens`(row: JSONValue) throws {
    let text = try row.text("ncryptsec").string
    let passphrase = Array(try row.text("passphrase").utf8)
    #expect(try hex(NIP49.decrypt(text, passphrase: passphrase)) == row.text("secret").string)
  }

  @Test func `what is encrypted opens with its passphrase alone`() throws {
    let key = try SecretKey.small(77)
    let text = try NIP49.encrypt(key, passphrase: [1, 2], logN: 2, care: .careful)
    #expect(try hex(NIP49.decrypt(text, passphrase: [1, 2])) == hex(key))
    #expect(throws: NIP49Error.doesNotDecrypt) { try NIP49.decrypt(text, passphrase: [1]) }
    #expect(throws: NIP49Error.doesNotDecrypt) { try NIP49.decrypt(text, passphrase: []) }
  }

  @Test func `the byte that says how the key was treated cannot be changed`() throws {
    let text = try NIP49.encrypt(.small(77), passphrase: [1], logN: 2, care: .careless)
    var bytes = try Bech32.decode(text).data
    #expect(bytes.count == 91 && bytes[42] == 0)
    bytes[42] = 1
    let bent = Bech32.encode(prefix: "ncryptsec", bytes)
    #expect(throws: NIP49Error.doesNotDecrypt) { try NIP49.decrypt(bent, passphrase: [1]) }
  }

  @Test func `a text of another shape is refused before any work`() throws {
    func text(_ bytes: [UInt8]) -> String { Bech32.encode(prefix: "ncryptsec", bytes) }
    var bytes = [UInt8](repeating: 0, count: 91)
    bytes[0] = 2
    bytes[1] = 23
    #expect(throws: NIP49Error.rounds(logN: 23)) { try NIP49.decrypt(text(bytes), passphrase: []) }
    bytes[1] = 0
    #expect(throws: NIP49Error.rounds(logN: 0)) { try NIP49.decrypt(text(bytes), passphrase: []) }
    #expect(throws: NIP49Error.malformed) {
      try NIP49.decrypt(text(bytes.dropLast()), passphrase: [])
    }
    bytes[0] = 1
    #expect(throws: NIP49Error.version(1)) { try NIP49.decrypt(text(bytes), passphrase: []) }
    #expect(throws: NIP49Error.malformed) { try NIP49.decrypt("ncryptsec1", passphrase: []) }
    #expect(throws: NIP49Error.malformed) {
      try NIP49.decrypt(try SecretKey.small(1).nsec(), passphrase: [])
    }
  }

  /// The example of draft-irtf-cfrg-xchacha, section 2.2.1.
  @Test func `HChaCha20 gives the key of the draft`() throws {
    let key = SecretBytes(count: 32) { buffer in
      for index in buffer.indices { buffer[index] = UInt8(index) }
    }
    let nonce = try #require(Hex.bytes("000000090000004a0000000031415927".utf8))
    let subkey = XChaCha20Poly1305.hchacha20(key: key, nonce: nonce[...])
    #expect(
      subkey.withUnsafeBytes { Hex.string($0) }
        == "82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc")
  }
}
