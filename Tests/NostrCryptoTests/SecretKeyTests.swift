import Nostr
import NostrCrypto
import Testing

@Suite struct SecretKeyTests {
  private let order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"
  private let highest = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364140"

  @Test func `a key is the scalar that its bytes spell`() throws {
    let hex = "67dea2ed018072d675f5415ecfaed7d2597555e202d85b3d65ea4e58d2d92ffa"
    let key = try SecretKey(bytes: try #require(Hex.bytes(hex.utf8)))
    #expect(key.withUnsafeBytes { Hex.string($0) } == hex)
    #expect(key.nsec() == "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5")
    let again = try SecretKey(nsec: key.nsec())
    #expect(again.publicKey == key.publicKey)
    #expect(try SecretKey(nsec: key.nsec().uppercased()).publicKey == key.publicKey)
  }

  @Test func `the public key of one is the generator's x`() throws {
    #expect(
      try SecretKey.small(1).publicKey.hex
        == "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798")
  }

  @Test func `a number outside the group is refused when the key is made`() throws {
    let zero = [UInt8](repeating: 0, count: 32)
    #expect(throws: KeyError.range) { try SecretKey(bytes: zero) }
    let order = try #require(Hex.bytes(order.utf8))
    #expect(throws: KeyError.range) { try SecretKey(bytes: order) }
    #expect(throws: KeyError.length(31)) { try SecretKey(bytes: zero.dropLast()) }
    #expect(throws: KeyError.length(0)) { try SecretKey(bytes: []) }
    let highest = try #require(Hex.bytes(highest.utf8))
    #expect(throws: Never.self) { try SecretKey(bytes: highest) }
  }

  @Test(arguments: [
    "", "nsec1", "nsec", "1", "hello",
    // An npub, a wrong last character, mixed case, one character short.
    "npub1dergggklka99wwrs92yz8wdjs952h2ux2ha2ed598ngwu9w7a6fsh9xzpc",
    "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe6",
    "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfE5",
    "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe",
    "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfé5",
  ])
  func `text that is not an nsec makes no key`(text: String) {
    let error = #expect(throws: KeyError.self) { try SecretKey(nsec: text) }
    if case .notNsec = error { return }
    Issue.record("another reason: \(String(describing: error))")
  }

  @Test func `nothing that prints a key shows it`() throws {
    struct Holder { let key: SecretKey }
    let key = SecretKey.generate()
    let digits = key.withUnsafeBytes { Hex.string($0) }
    var texts = ["\(key)", String(reflecting: key), "\(Holder(key: key))", "\([key])"]
    for value in [key as Any, Holder(key: key), [key], ["a": key], LocalSigner(key)] {
      var dumped = ""
      dump(value, to: &dumped)
      texts.append(dumped)
    }
    let decimal = key.withUnsafeBytes { Array($0).description.dropFirst().dropLast() }
    for text in texts {
      #expect(text.contains("<redacted>"))
      #expect(!text.contains(digits.prefix(8)) && !text.contains(decimal.prefix(12)))
    }
  }

  @Test func `a key is neither encoded nor compared by accident`() {
    let type: Any.Type = SecretKey.self
    #expect(!(type is any Encodable.Type))
    #expect(!(type is any Decodable.Type))
    #expect(!(type is any Equatable.Type))
  }

  @Test func `two generated keys differ, and the same chance gives the same key`() {
    #expect(SecretKey.generate().publicKey != SecretKey.generate().publicKey)
    let entropy = SeededEntropy(seed: 3)
    let first = SecretKey.generate(from: entropy)
    #expect(first.publicKey == SecretKey.generate(from: entropy).publicKey)
  }
}
