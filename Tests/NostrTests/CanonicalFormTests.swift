import Nostr
import Testing

private let author = PublicKey(Bytes32(hex: String(repeating: "6e", count: 32)) ?? .zero)

private func preimage(_ content: Text, tags: [[String]] = [], form: IdForm = .standard) -> String {
  let event = Event(
    id: EventID(.zero), pubkey: author, createdAt: 1_700_000_000, kind: 9, tags: Tags(tags),
    content: content, sig: Signature(first: .zero, second: .zero))
  var buffer = bytes("left over from the event before")
  CanonicalForm.writePreimage(of: event, form: form, into: &buffer)
  return String(decoding: buffer, as: UTF8.self)
}

struct CanonicalFormTests {
  @Test func `the preimage is the array of NIP-01 without space`() {
    #expect(
      preimage("hi there", tags: [["h", "channel-uuid-1"], ["e", "abc123", "", "reply"]])
        == "[0,\"\(author.hex)\",1700000000,9,"
        + "[[\"h\",\"channel-uuid-1\"],[\"e\",\"abc123\",\"\",\"reply\"]],\"hi there\"]")
  }

  @Test func `a draft has the preimage of the event that it becomes`() {
    let draft = EventDraft(
      createdAt: 1_700_000_000, kind: 9, tags: Tags([["h", "a"]]), content: "\u{1}\"")
    var buffer: [UInt8] = []
    CanonicalForm.writePreimage(of: draft, author: author, into: &buffer)
    #expect(String(decoding: buffer, as: UTF8.self) == preimage("\u{1}\"", tags: [["h", "a"]]))
  }

  @Test func `seven characters have short escapes and the other controls a lowercase number`() {
    let controls = Text(
      String(String.UnicodeScalarView((0..<0x20).compactMap(Unicode.Scalar.init))))
    let escaped =
      #"\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f"#
      + #"\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d"#
      + #"\u001e\u001f"#
    #expect(preimage(controls).hasSuffix(",[],\"\(escaped)\"]"))
  }

  @Test(arguments: ["/", "&<>'", "\u{7f}", "🍕 café", "cafe\u{301}", "\u{2028}\u{202e}", "\u{80}"])
  func `everything else is literal`(content: String) {
    #expect(
      Array(preimage(Text(content)).utf8).suffix(content.utf8.count + 4)
        == (bytes(",\"") + bytes(content) + bytes("\"]"))[...])
  }

  @Test func `a line break of two characters is escaped as two`() {
    #expect(preimage("a\r\nb").hasSuffix(#""a\r\nb"]"#))
  }

  @Test func `the raw form leaves only the numbered controls as they are`() {
    #expect(
      preimage("\u{1b}[31m\n\"\u{7f}", form: .rawControl).hasSuffix(",\"\u{1b}[31m\\n\\\"\u{7f}\"]")
    )
  }

  @Test func `the escaped-delete form differs in U+007F alone`() {
    #expect(preimage("a\u{7f}b\u{1}", form: .escapedDelete).hasSuffix(#""a\u007fb\u0001"]"#))
  }

  @Test func `the form holds in tags too`() {
    #expect(
      preimage("", tags: [["t", "\u{7f}"]], form: .escapedDelete).contains(#"["t","\u007f"]"#))
    #expect(preimage("", tags: [["t", "\u{1}"]], form: .rawControl).contains("[\"t\",\"\u{1}\"]"))
  }

  @Test func `negative and large numbers are plain decimals`() {
    var buffer: [UInt8] = []
    for seconds in [Int64.min, -1, 0, 2_147_483_648, .max] {
      let draft = EventDraft(createdAt: Timestamp(seconds), kind: 0, tags: .none, content: "")
      CanonicalForm.writePreimage(of: draft, author: author, into: &buffer)
      #expect(String(decoding: buffer, as: UTF8.self).contains(",\(seconds),0,[],"))
    }
  }

  @Test(arguments: ["", "[", "[[]]", "[[1]]", "{}", "[[\"a\"]] x", "[[\"\\ud800\"]]"])
  func `stored tags that are no tags are not read`(text: String) {
    #expect(bytes(text).withUnsafeBytes { CanonicalForm.tags(json: $0) } == nil)
  }
}

struct IdentityTests {
  @Test func `texts are equal by their bytes, never by how they look`() {
    let composed: Text = "caf\u{e9}"
    let decomposed: Text = "cafe\u{301}"
    #expect(composed != decomposed)
    #expect(Set([composed, decomposed]).count == 2)
  }

  @Test func `two spellings of one word are two addresses`() throws {
    let first = Tags([["d", "caf\u{e9}"]])
    let second = Tags([["d", "cafe\u{301}"]])
    #expect(first != second)
    #expect(first.firstValue("d") != second.firstValue("d"))
  }

  @Test func `uppercase hex in a tag is text, not an id`() {
    let upper = String(repeating: "AB", count: 32)
    let tags = Tags([["e", upper], ["e", upper.lowercased()]])
    #expect(tags.map { $0.bytes32(1) != nil } == [false, true])
  }

  @Test func `a bare tag is skipped for a value, and counts as the identifier`() {
    let tags = Tags([["h"], ["h", "ops"], ["d"], ["d", "x"]])
    #expect(tags.firstValue("h") == "ops")
    #expect(tags.values("h") == ["ops"])
    #expect(tags.contains(named: "d"))
    let event = Event(
      id: EventID(.zero), pubkey: author, createdAt: 0, kind: 30000, tags: tags, content: "",
      sig: Signature(first: .zero, second: .zero))
    #expect(event.identifier == .empty)
    #expect(event.group == "ops")
  }
}
