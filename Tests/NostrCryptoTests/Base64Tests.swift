import NostrCrypto
import Testing

@Suite struct Base64Tests {
  @Test(arguments: [
    ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="),
    ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"), ("\u{fffd}?>", "77+9Pz4="),
  ])
  func `bytes and text turn into each other`(plain: String, text: String) {
    #expect(String(decoding: Base64.encode(plain.utf8), as: UTF8.self) == text)
    #expect(Base64.decode(Array(text.utf8)) == Array(plain.utf8))
  }

  @Test(arguments: [
    "Z", "Zg", "Zg=", "Zg===", "Zg==Zg==", "=", "==", "===", "====", "Zm9v=", "Zm9vY===", "Z===",
    "Zm 9v", "Zm9v\n", "Zm-_", "Zh==", "Zm9=", "Zm9vé",
  ])
  func `another spelling is refused`(text: String) {
    #expect(Base64.decode(Array(text.utf8)) == nil)
  }
}
