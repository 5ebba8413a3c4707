import Nostr
import Testing

@_spi(Testing) @testable import NostrCrypto

/// Fields of a vector, whose absence fails the test that asks.
extension JSONValue {
  func text(_ key: Text) throws -> Text { try #require(self[key]?.string) }
  func bytes(_ key: Text) throws -> [UInt8] { try #require(Hex.bytes(try text(key).utf8)) }
  func secret(_ key: Text) throws -> SecretKey { try SecretKey(bytes: try bytes(key)) }
  func conversation() throws -> ConversationKey {
    try #require(ConversationKey(bytes: try bytes("conversation_key")))
  }
}

extension ConversationKey {
  var hex: Text { Text(withUnsafeBytes { Hex.string($0) }) }
}

@Suite struct NIP44Tests {
  private static let own = try? JSONValue.parse(Vectors.bytes("nip44-own.json"))
  static let exchanges = own?["exchange"]?.array ?? []
  static let extended = own?["extended"]?.array ?? []
  static let invalid = own?["invalid"]?.array ?? []

  @Test func `every row of the vectors is read`() {
    #expect(Self.exchanges.count == 13)
    #expect(Self.extended.count == 4)
    #expect(Self.invalid.count == 20)
  }

  @Test(arguments: exchanges)
  func `another implementation's payload is opened and made again`(row: JSONValue) throws {
    try NIP44Vector.checkExchange(row)
  }

  @Test(arguments: extended)
  func `a long text is opened, and encrypted where two bytes say its length`(
    row: JSONValue
  ) throws {
    let key = try row.conversation()
    let text = try NIP44Vector.longText(row)
    let isExtended = text.count >= 65536
    let payload = NIP44.seal(
      NIP44Vector.padded(text, extended: isExtended), with: key, nonce: try row.bytes("nonce"))
    #expect(SHA256.hash(payload.utf8).hex == (try row.text("payload_sha256").string))
    #expect(try NIP44.decrypt(payload, with: key) == text)
    if isExtended {
      #expect(throws: NIP44Error.plaintextLength(text.count)) {
        try NIP44.encrypt(text, with: key)
      }
    } else {
      #expect(try NIP44.encrypt(text, with: key, nonce: try row.bytes("nonce")) == payload)
    }
  }

  @Test func `the longest text of two bytes has no second encoding`() throws {
    let key = try #require(ConversationKey(bytes: [UInt8](repeating: 9, count: 32)))
    let nonce = [UInt8](repeating: 1, count: 32)
    let text = Text(String(repeating: "x", count: 65535))
    let twice = NIP44.seal(NIP44Vector.padded(text, extended: true), with: key, nonce: nonce)
    #expect(throws: NIP44Error.padding) { try NIP44.decrypt(twice, with: key) }
    let once = NIP44.seal(NIP44Vector.padded(text, extended: false), with: key, nonce: nonce)
    #expect(try NIP44.decrypt(once, with: key) == text)
  }

  @Test(arguments: invalid)
  func `a bent payload is refused for its reason`(row: JSONValue) throws {
    let key = try row.conversation()
    let payload = try row.text("payload")
    guard let expected = row["error"]?.string?.string else {
      #expect(try NIP44.decrypt(payload, with: key) == "hello")
      return
    }
    let error = #expect(throws: NIP44Error.self) { try NIP44.decrypt(payload, with: key) }
    #expect(error.map { "\($0)".isEmpty } == false)
    let reason =
      switch error {
      case .version: "version"
      case .payloadLength: "payloadLength"
      case .base64: "base64"
      case .mac: "mac"
      case .padding: "padding"
      case .notUTF8: "notUTF8"
      case .plaintextLength, .publicKey, nil: "none"
      }
    #expect(reason == expected)
  }

  @Test func `nothing is not encrypted`() throws {
    let key = try #require(ConversationKey(bytes: [UInt8](repeating: 9, count: 32)))
    #expect(throws: NIP44Error.plaintextLength(0)) { try NIP44.encrypt("", with: key) }
    #expect(throws: Never.self) { try NIP44.encrypt(" ", with: key) }
  }

  @Test func `the same text is never encrypted twice alike`() throws {
    let key = try #require(ConversationKey(bytes: [UInt8](repeating: 9, count: 32)))
    #expect(try NIP44.encrypt("same", with: key) != NIP44.encrypt("same", with: key))
  }

  @Test func `a conversation key prints as nothing`() throws {
    let key = try #require(ConversationKey(bytes: [UInt8](repeating: 0xab, count: 32)))
    var dumped = "\(key) \(String(reflecting: key))"
    dump(key, to: &dumped)
    #expect(!dumped.contains("171") && !dumped.contains("abab"))
  }

  @Test func `the ciphertext of NIP-RS opens with key one`() throws {
    let payload: Text = """
      Akt10yui5aDIjfH+xED2Dr1NJ/SGWp85SC/r/bloiLRtj8K59rJrYhcfsNQMoMhpLlvhKqrN0HIGb9/V9BcYKxWV8HT/\
      jjDdvfHLUVfo688I6WpapcX41GzL4VnGGDdFyUom53odJncjHszS3dpTrG1OKp2x9dtdG+924/+Ne49KN4nztd1pikqY\
      eqQuxflKCmh+VcCFbDclQ8a9NUpqWkPpeoweISVVuZDnP9WFoKG5X6YcpXBWH6wjc69xK4cs6KkJ
      """
    let secret = try SecretKey.small(1)
    let key = try NIP44.conversationKey(secret: secret, public: secret.publicKey)
    let state = try JSONValue.parse(Array(try NIP44.decrypt(payload, with: key).utf8))
    #expect(state["client_id"]?.string == "test-vector-client")
    #expect(state["contexts"]?["group:general"]?.int == 1_700_001_000)
    #expect(state["contexts"]?["group:dev"]?.int == 1_700_000_500)
  }
}

/// The published vectors, which are not ours to copy: `SKEP_VECTORS` names their folder.
@Suite(.enabled(if: Vectors.outside("nip44.vectors.json") != nil, "SKEP_VECTORS names no folder"))
struct NIP44PublishedTests {
  private static let published = Vectors.outside("nip44.vectors.json")
    .flatMap { try? JSONValue.parse($0) }?["v2"]
  static let valid = published?["valid"]
  static let invalid = published?["invalid"]

  static func rows(_ part: JSONValue?, _ key: Text) -> [JSONValue] { part?[key]?.array ?? [] }

  @Test func `every row of the vectors is read`() {
    #expect(Self.rows(Self.valid, "get_conversation_key").count == 35)
    #expect(Self.rows(Self.valid?["get_message_keys"], "keys").count == 32)
    #expect(Self.rows(Self.valid, "calc_padded_len").count == 24)
    #expect(Self.rows(Self.valid, "encrypt_decrypt").count == 10)
    #expect(Self.rows(Self.valid, "encrypt_decrypt_long_msg").count == 3)
    #expect(Self.rows(Self.invalid, "get_conversation_key").count == 8)
    #expect(Self.rows(Self.invalid, "decrypt").count == 12)
    #expect(Self.rows(Self.invalid, "encrypt_msg_lengths").count == 4)
  }

  @Test(arguments: rows(valid, "get_conversation_key"))
  func `both parties share the key of the row`(row: JSONValue) throws {
    let other = try #require(PublicKey(hex: try row.text("pub2").string))
    let key = try NIP44.conversationKey(secret: try row.secret("sec1"), public: other)
    #expect(key.hex == (try row.text("conversation_key")))
  }

  @Test(arguments: rows(valid?["get_message_keys"], "keys"))
  func `a message's keys come from its nonce`(row: JSONValue) throws {
    let conversation = try #require(Self.valid?["get_message_keys"]).conversation()
    let keys = MessageKeys(conversation, nonce: try row.bytes("nonce"))
    let expected = try ["chacha_key", "chacha_nonce", "hmac_key"].flatMap { try row.bytes($0) }
    #expect(keys.withUnsafeBytes { Array($0) } == expected)
  }

  @Test(arguments: rows(valid, "calc_padded_len"))
  func `a length is padded to the row's`(row: JSONValue) throws {
    let pair = try #require(row.array).compactMap(\.int)
    try #require(pair.count == 2)
    #expect(NIP44.paddedLength(Int(pair[0])) == Int(pair[1]))
  }

  @Test(arguments: rows(valid, "encrypt_decrypt"))
  func `a conversation goes both ways`(row: JSONValue) throws {
    try NIP44Vector.checkExchange(row)
  }

  @Test(arguments: rows(valid, "encrypt_decrypt_long_msg"))
  func `a long message has the payload of the row`(row: JSONValue) throws {
    let key = try row.conversation()
    let text = try NIP44Vector.longText(row)
    #expect(SHA256.hash(text.utf8).hex == (try row.text("plaintext_sha256").string))
    let payload = try NIP44.encrypt(text, with: key, nonce: try row.bytes("nonce"))
    #expect(SHA256.hash(payload.utf8).hex == (try row.text("payload_sha256").string))
    #expect(try NIP44.decrypt(payload, with: key) == text)
  }

  @Test(arguments: rows(invalid, "get_conversation_key"))
  func `a key that is none makes no conversation`(row: JSONValue) throws {
    let other = try #require(PublicKey(hex: try row.text("pub2").string))
    let bytes = try row.bytes("sec1")
    #expect(throws: (any Error).self) {
      try NIP44.conversationKey(secret: try SecretKey(bytes: bytes), public: other)
    }
  }

  @Test(arguments: rows(invalid, "decrypt"))
  func `a wrong payload does not decrypt`(row: JSONValue) throws {
    let key = try row.conversation()
    let payload = try row.text("payload")
    let error = #expect(throws: NIP44Error.self) { try NIP44.decrypt(payload, with: key) }
    let note = try row.text("note").string
    let expected: Bool =
      switch error {
      case .version: note.contains("version")
      case .base64: note.contains("base64")
      case .mac: note.contains("MAC")
      case .padding: note.contains("padding")
      case .payloadLength: note.contains("payload length")
      case .notUTF8, .plaintextLength, .publicKey, nil: false
      }
    #expect(expected, "\(note)")
  }

  @Test(arguments: rows(invalid, "encrypt_msg_lengths"))
  func `nothing, and more than two bytes can count, is not encrypted`(row: JSONValue) throws {
    let count = Int(try #require(row.int))
    let key = try #require(ConversationKey(bytes: [UInt8](repeating: 1, count: 32)))
    let text = Text(utf8: [UInt8](repeating: 0x61, count: count))
    #expect(throws: NIP44Error.plaintextLength(count)) { try NIP44.encrypt(text, with: key) }
  }
}

private enum NIP44Vector {
  static func checkExchange(_ row: JSONValue) throws {
    let (one, two) = (try row.secret("sec1"), try row.secret("sec2"))
    let key = try NIP44.conversationKey(secret: one, public: two.publicKey)
    #expect(key.hex == (try row.text("conversation_key")))
    #expect(try NIP44.conversationKey(secret: two, public: one.publicKey).hex == key.hex)
    let plain = try row.text("plaintext")
    let payload = try row.text("payload")
    #expect(try NIP44.encrypt(plain, with: key, nonce: try row.bytes("nonce")) == payload)
    #expect(try NIP44.decrypt(payload, with: key) == plain)
  }

  static func longText(_ row: JSONValue) throws -> Text {
    let count = Int(try #require(row["repeat"]?.int))
    return Text(String(repeating: try row.text("pattern").string, count: count))
  }

  static func padded(_ text: Text, extended: Bool) -> [UInt8] {
    let count = UInt32(text.count)
    let prefix = extended ? [0, 0, UInt8(count >> 24), UInt8(count >> 16 & 255)] : []
    return prefix + [UInt8(count >> 8 & 255), UInt8(count & 255)] + text.utf8
      + [UInt8](repeating: 0, count: NIP44.paddedLength(text.count) - text.count)
  }
}
