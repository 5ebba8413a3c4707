import Nostr
import Testing

private let id = String(repeating: "1a", count: 32)
private let key = String(repeating: "2b", count: 32)
private let sig = String(repeating: "3c", count: 64)

/// A good event with some of its fields spelled otherwise, and with text around and inside it.
private func line(
  id: String = "\"\(id)\"", pubkey: String = "\"\(key)\"", createdAt: String = "1700000000",
  kind: String = "1", tags: String = "[]", content: String = "\"ok\"",
  sig: String = "\"\(sig)\"", more: String = "", after: String = ""
) -> String {
  "{\"id\":\(id),\"pubkey\":\(pubkey),\"created_at\":\(createdAt),\"kind\":\(kind),"
    + "\"tags\":\(tags),\"content\":\(content),\"sig\":\(sig)\(more)}\(after)"
}

struct EventScannerTests {
  @Test func `a plain event is read field by field`() throws {
    let event = try scan(line(kind: "9", tags: "[[\"h\",\"ops\"],[\"-\"]]", content: "\"hé\""))
    #expect(event.id.hex == id)
    #expect(event.pubkey.hex == key)
    #expect(event.createdAt == 1_700_000_000)
    #expect(event.kind == 9)
    #expect(event.tags == Tags([["h", "ops"], ["-"]]))
    #expect(event.content == "hé")
    #expect(event.sig.hex == sig)
  }

  @Test func `fields come in any order, with space of all four kinds between`() throws {
    let shuffled =
      " \t\r\n{ \"sig\" :\n\"\(sig)\",\"content\":\"ok\" , \"tags\":[ [ \"a\" , \"b\" ] ],"
      + "\"kind\": 1 ,\"created_at\":1700000000,\"pubkey\":\"\(key)\",\"id\":\"\(id)\" } \n"
    #expect(try scan(shuffled) == scan(line(tags: "[[\"a\",\"b\"]]")))
  }

  @Test(arguments: [
    ("1", "ok"), ("0", "ok"), ("65535", "ok"), ("65536", "range"), ("65537", "range"),
    ("18446744073709551616", "range"), (String(repeating: "9", count: 400), "range"),
    ("-0", "range"), ("-1", "range"), ("1.0", "range"), ("1e3", "range"), ("1E+3", "range"),
    ("-1.5e-7", "range"), ("\"1\"", "shape"), ("null", "shape"), ("true", "shape"),
    ("[1]", "shape"), ("{\"a\":1}", "shape"), ("01", "json"), ("+1", "json"), ("1.", "json"),
    (".5", "json"), ("1e", "json"), ("-", "json"), ("0x1", "json"), ("NaN", "json"), ("", "json"),
  ])
  func `a kind is a plain integer up to 65535`(spelled: String, expected: String) {
    #expect(verdict(line(kind: spelled)) == expected)
  }

  @Test(arguments: [
    ("0", "ok"), ("2147483648", "ok"), ("4294967296", "ok"), ("9223372036854775807", "ok"),
    ("9223372036854775808", "range"), ("18446744073709551616", "range"), ("-1", "range"),
    ("1.7e9", "range"), ("1700000000.0", "range"), ("\"1700000000\"", "shape"), ("007", "json"),
  ])
  func `a time is a plain integer up to 2^63-1`(spelled: String, expected: String) {
    #expect(verdict(line(createdAt: spelled)) == expected)
  }

  @Test func `64-bit times are read whole`() throws {
    #expect(try scan(line(createdAt: "9223372036854775807")).createdAt.seconds == .max)
  }

  @Test(arguments: [
    "\"\(id.uppercased())\"", "\"0x\(id)\"", "\"\(id.dropLast())\"", "\"\(id)0\"", "\"\"",
    "\"\(id.dropLast())g\"", "\"\(id.dropLast()) \"", "\"\(id.dropLast(2))é\"",
  ])
  func `an id and a key are 64 lowercase digits`(spelled: String) {
    #expect(verdict(line(id: spelled)) == "hex")
    #expect(verdict(line(pubkey: spelled)) == "hex")
    #expect(verdict(line(id: "1")) == "shape")
  }

  @Test func `a signature is 128 lowercase digits`() {
    #expect(verdict(line(sig: "\"\(sig.dropLast(2))\"")) == "hex")
    #expect(verdict(line(sig: "\"\(sig.dropLast())F\"")) == "hex")
    #expect(verdict(line(sig: "\"\(sig)\"")) == "ok")
    #expect(verdict(line(sig: "[]")) == "shape")
  }

  @Test func `hex digits and keys may be spelled with escapes`() throws {
    let spelled = "\"\\u0031\(id.dropFirst())\""
    #expect(try scan(line(id: spelled)).id.hex == id)
    let renamed = line().replacing("\"kind\"", with: "\"k\\u0069nd\"")
    #expect(try scan(renamed) == scan(line()))
  }

  @Test(arguments: [
    ("[]", "ok"), ("[[\"a\"]]", "ok"), ("[[\"\"]]", "ok"), ("[[]]", "shape"),
    ("[[\"a\"],[]]", "shape"), ("[\"a\"]", "shape"), ("[[\"a\",1]]", "shape"),
    ("[[\"e\",null]]", "shape"), ("[[[\"a\"]]]", "shape"), ("[null]", "shape"), ("{}", "shape"),
    ("null", "shape"), ("\"\"", "shape"), ("[[\"a\"]", "json"), ("[[\"a\",]]", "json"),
    ("[[\"a\"],]", "json"), ("[[1,]]", "json"), ("[[1],[\"\\ud800\"]]", "json"), ("[,]", "json"),
  ])
  func `tags are arrays of at least one string`(spelled: String, expected: String) {
    #expect(verdict(line(tags: spelled)) == expected)
  }

  @Test func `a key that stands there twice is refused, however it is spelled`() {
    #expect(verdict(line(more: ",\"content\":\"ok\"")) == "shape")
    #expect(verdict(line(more: ",\"c\\u006fntent\":\"ok\"")) == "shape")
    #expect(verdict(line(more: ",\"x\":1,\"\\u0078\":1")) == "shape")
    #expect(verdict(line(more: ",\"x\":1,\"y\":{\"z\":1,\"z\":2}")) == "ok")
  }

  @Test(arguments: ["id", "pubkey", "created_at", "kind", "tags", "content", "sig"])
  func `a field that is missing is refused`(name: String) {
    #expect(verdict(line().replacing("\"\(name)\":", with: "\"other\":")) == "shape")
  }

  @Test func `unknown keys are checked and dropped`() throws {
    let more = ",\"seen_on\":[\"x\",{\"y\":[1.5e3,true,null,\"\\n\"]}],\"relay\":{}"
    #expect(try scan(line(more: more)) == scan(line()))
    #expect(verdict(line(more: ",\"x\":[1,]")) == "json")
    #expect(verdict(line(more: ",\"x\":tru")) == "json")
    #expect(verdict(line(more: ",\"x\":\"\\ud800\"")) == "json")
  }

  @Test func `nesting costs no stack and has a bound`() {
    func nested(_ depth: Int) -> String {
      String(repeating: "[{\"a\":", count: depth) + "1" + String(repeating: "}]", count: depth)
    }
    #expect(verdict(line(more: ",\"x\":\(nested(10_000))")) == "ok")
    #expect(verdict(line(tags: nested(10_000))) == "shape")
    #expect(verdict(line(more: ",\"x\":" + String(repeating: "[", count: 10_000))) == "json")
    #expect(verdict(line(more: ",\"x\":" + String(repeating: "[", count: 1_100_000))) == "json")
  }

  @Test(arguments: [
    "", " ", "[]", "null", "1", "\"x\"", "{", "{}x", "{,}", "{\"a\"}", "{\"a\":}", "{1:2}",
    "{'a':1}", "\u{feff}{}", "{} {}", "{\"a\":1,}", "{\"a\" 1}", "nulll",
  ])
  func `anything but one JSON object is no JSON here`(text: String) {
    #expect(verdict(text) == "json")
  }

  @Test func `an empty object lacks its fields`() { #expect(verdict(" {} ") == "shape") }

  @Test func `trailing text and a byte-order mark are refused`() {
    #expect(verdict(line(after: " x")) == "json")
    #expect(verdict(line(after: "\u{0}")) == "json")
    #expect(verdict("\u{feff}" + line()) == "json")
    #expect(verdict(line(after: " \n")) == "ok")
  }
}

struct EventScannerStringTests {
  /// The content of an event whose content has these bytes on the wire, or the reason for none.
  private func content(_ raw: [UInt8]) -> String {
    let marker = "\u{1}"
    let around = line(content: "\"\(marker)\"").split(separator: marker).map { Array($0.utf8) }
    do throws(ScanError) {
      return try EventScanner.event(around[0] + raw + around[1]).content.string
    } catch {
      return error.reason
    }
  }

  @Test(arguments: [
    (#"a\/b"#, "a/b"), (#"\u006f\u006B"#, "ok"), (#"\ud83c\udf55"#, "🍕"), (#"\uD83C\uDF55"#, "🍕"),
    (#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{c}\n\r\t"), (#"\u0000"#, "\u{0}"), (#"\u00e9"#, "é"),
    (#"\u20ac"#, "€"), (#"\uffff"#, "\u{ffff}"), (#"\\u0041"#, #"\u0041"#), ("\u{7f}", "\u{7f}"),
    ("cafe\u{301}", "cafe\u{301}"), ("\u{2028}", "\u{2028}"), ("", ""),
  ])
  func `escapes and plain characters spell the same text`(raw: String, expected: String) {
    // As bytes, for a String would hold two spellings of one letter to be equal.
    #expect(Array(content(Array(raw.utf8)).utf8) == Array(expected.utf8))
  }

  @Test(arguments: [
    #"\ud83c"#, #"\ud83cx"#, #"\ud83c\n"#, #"\ud83c\u0041"#, #"\udf55"#, #"\udf55\ud83c"#,
    #"\ud83c\ud83c\udf55"#, #"\u12g4"#, #"\u123"#, #"\x41"#, #"\'"#, #"\U0041"#,
  ])
  func `a lone surrogate or an unknown escape is no JSON`(raw: String) {
    #expect(content(Array(raw.utf8)) == "json")
  }

  @Test(arguments: 0..<0x20)
  func `a raw control character is no JSON`(byte: Int) {
    #expect(content([0x61, UInt8(byte), 0x62]) == "json")
  }

  @Test(
    arguments: [
      [0x80], [0xbf], [0xc0, 0x80], [0xc1, 0xbf], [0xc3], [0xc3, 0x28], [0xe0, 0x9f, 0xbf],
      [0xe2, 0x82], [0xe2, 0x28, 0xa1], [0xed, 0xa0, 0x80], [0xed, 0xbf, 0xbf],
      [0xf0, 0x8f, 0xbf, 0xbf], [0xf4, 0x90, 0x80, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xff],
      [0xf0, 0x9f, 0x8d], [0xf0, 0x9f, 0x28, 0x95],
    ] as [[UInt8]])
  func `invalid UTF-8 is no JSON`(raw: [UInt8]) {
    // At every place in an eight-byte word.
    for offset in 0..<9 {
      let padding = [UInt8](repeating: 0x61, count: offset)
      #expect(content(padding + raw) == "json")
      #expect(content(padding + raw + padding) == "json")
    }
  }

  @Test(
    arguments: [
      [0xc2, 0x80], [0xdf, 0xbf], [0xe0, 0xa0, 0x80], [0xed, 0x9f, 0xbf], [0xee, 0x80, 0x80],
      [0xef, 0xbf, 0xbf], [0xf0, 0x90, 0x80, 0x80], [0xf4, 0x8f, 0xbf, 0xbf],
    ] as [[UInt8]])
  func `the first and last characters of each length are valid`(raw: [UInt8]) {
    #expect(Array(content(raw).utf8) == raw)
  }

  @Test func `a special byte is found at every place of a word`() {
    for length in 0..<40 {
      let text = String(repeating: "x", count: length)
      #expect(content(Array((text + #"\n"# + text).utf8)) == text + "\n" + text)
      #expect(content(Array((text + "é" + text).utf8)) == text + "é" + text)
    }
  }
}

struct EventScannerOrderTests {
  private let long = String(repeating: "x", count: 8 << 20)

  @Test func `of several reasons the first in the order is named, wherever it stands`() {
    #expect(verdict(line(id: "\"\"", after: "x")) == "json")
    #expect(verdict(line(id: "\"\"", kind: "70000", tags: "[[]]")) == "shape")
    #expect(verdict(line(kind: "70000", sig: "\"\"")) == "hex")
    #expect(verdict(line(pubkey: "\"\"", kind: "-1", more: ",\"id\":1")) == "shape")
    #expect(verdict(line(kind: "1.5", content: "\"\(long)\"")) == "range")
    #expect(verdict(line(kind: "1.5", content: "\"\(long)\\ud800\"")) == "json")
  }

  @Test func `an event of more than 8 MiB is too large, and one of 8 MiB is not`() {
    let overhead = line(content: "\"\"").utf8.count
    let exact = line(content: "\"\(long.dropLast(overhead))\"")
    #expect(exact.utf8.count == EventScanner.eventBytesMax)
    #expect(verdict("  " + exact) == "ok")
    #expect(verdict(line(content: "\"x\(long.dropLast(overhead))\"")) == "size")
  }
}

struct EventScannerPropertyTests {
  @Test(arguments: [1, 2, 3, UInt64.random(in: 0...UInt64.max)])
  func `what is written is read back`(seed: UInt64) throws {
    var generator = Generator(seed: seed)
    for _ in 0..<300 {
      let event = generator.event()
      #expect(try EventScanner.event(event.json()) == event, "seed \(seed)")
      let tags = CanonicalForm.tagsJSON(event.tags)
      #expect(tags.withUnsafeBytes { CanonicalForm.tags(json: $0) } == event.tags, "seed \(seed)")
    }
  }

  @Test(arguments: [4, 5, UInt64.random(in: 0...UInt64.max)])
  func `changed bytes give an event or a reason, and an event is read back`(seed: UInt64) throws {
    var generator = Generator(seed: seed)
    for _ in 0..<1500 {
      var bytes = generator.event().json()
      for _ in 0...generator.below(3) {
        let place = generator.below(bytes.count)
        switch generator.below(3) {
        case 0: bytes[place] = UInt8(truncatingIfNeeded: generator.next())
        case 1: bytes.remove(at: place)
        default: bytes.insert(UInt8(truncatingIfNeeded: generator.next()), at: place)
        }
      }
      // Most are refused; what is not must be a fixed point.
      guard let event = try? EventScanner.event(bytes) else { continue }
      #expect(try EventScanner.event(event.json()) == event, "seed \(seed)")
    }
  }

  @Test func `a cut event is never an event`() {
    var generator = Generator(seed: 7)
    let bytes = generator.event().json()
    for length in 0..<bytes.count {
      #expect(throws: ScanError.self) { try EventScanner.event(bytes[..<length]) }
    }
  }
}
