import Nostr
import NostrCrypto
import Testing

@Suite struct ComposedTextTests {
  @Test(arguments: [
    "", "hello", "a\tb\nc", "grüße 🐝 \u{2028}\u{202e}\u{200d}", "\u{a0}", "cafe\u{301}",
    "a/b\"\\&<>",
  ])
  func `text without control characters stays as it is`(string: String) throws {
    #expect(try ComposedText(utf8: string.utf8).text == Text(string))
  }

  @Test func `carriage return and line feed become a line feed`() throws {
    #expect(try ComposedText("a\r\nb\r\n\r\n").text == "a\nb\n\n")
    #expect(throws: ComposeError.control(offset: 3, scalar: 0x0d)) {
      try ComposedText("é\n\rb")
    }
    #expect(throws: ComposeError.control(offset: 1, scalar: 0x0d)) { try ComposedText("a\r\r\n") }
    #expect(throws: ComposeError.control(offset: 1, scalar: 0x0d)) { try ComposedText("a\r") }
  }

  @Test(arguments: Array(0...0x1f) + [0x7f, 0x80, 0x85, 0x9b, 0x9f] as [UInt32])
  func `a control character is refused at its byte`(scalar: UInt32) throws {
    let character = try #require(Unicode.Scalar(scalar))
    let text = Text("é🐝\(Character(character))x")
    if scalar == 9 || scalar == 10 {
      #expect(try ComposedText(text).text == text)
    } else {
      #expect(throws: ComposeError.control(offset: 6, scalar: scalar)) { try ComposedText(text) }
    }
  }

  @Test(
    arguments: [
      ([0x61, 0xff], 1), ([0xc0, 0x80], 0), ([0x61, 0x62, 0xe2, 0x82], 2), ([0xed, 0xa0, 0x80], 0),
      ([0xf4, 0x90, 0x80, 0x80], 0), ([0xc2], 0), ([0xe0, 0x80, 0x80], 0), ([0x80], 0),
      ([0xf0, 0x8f, 0xbf, 0xbf], 0), ([0xc3, 0xa9, 0xc3], 2),
    ] as [([UInt8], Int)])
  func `bytes that are not text are refused at their place`(bytes: [UInt8], offset: Int) {
    #expect(throws: ComposeError.notUTF8(offset: offset)) { try ComposedText(utf8: bytes) }
  }

  @Test func `what is longer than clients take is refused`() throws {
    let longest = [UInt8](repeating: 0x61, count: 65_536)
    #expect(try ComposedText(utf8: longest).text.count == 65_536)
    #expect(throws: ComposeError.tooLong(65_537)) { try ComposedText(utf8: longest + [0x61]) }
  }

  @Test func `an error says where and what in words`() {
    #expect(
      ComposeError.control(offset: 1, scalar: 0).description
        == "the text has the control character U+0000 at byte 1")
  }
}
