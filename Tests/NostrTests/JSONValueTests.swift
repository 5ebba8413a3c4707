import Nostr
import Testing

struct JSONValueTests {
  @Test func `every kind of value is read`() throws {
    let value = try JSONValue.parse(
      bytes(#" {"a":null,"b":[true,false],"c":"x\ny","d":-1.5e3,"e":42,"f":{},"g":[]} "#))
    #expect(value["a"]?.isNull == true)
    #expect(value["b"]?.array == [.bool(true), .bool(false)])
    #expect(value["c"]?.string == "x\ny")
    #expect(value["d"] == .number("-1.5e3"))
    #expect(value["d"]?.int == nil)
    #expect(value["e"]?.int == 42)
    #expect(value["f"]?.members?.isEmpty == true)
    #expect(value["g"]?.array?.isEmpty == true)
    #expect(value["h"] == nil)
  }

  @Test func `of two members with one name the last counts`() throws {
    #expect(try JSONValue.parse(bytes(#"{"a":1,"a":2}"#))["a"]?.int == 2)
  }

  @Test func `what is written is what was read`() throws {
    let text = #"{"a":null,"b":[true,false,[]],"c":"\u0001\"é","d":-1.5e3,"e":{"f":""}}"#
    #expect(try JSONValue.parse(bytes(text)).json() == bytes(text))
  }

  @Test func `depth has a bound that the caller sets`() throws {
    func nested(_ depth: Int) -> [UInt8] {
      bytes(String(repeating: "[", count: depth) + String(repeating: "]", count: depth))
    }
    #expect(throws: ScanError.self) { try JSONValue.parse(nested(65)) }
    #expect(throws: ScanError.self) { try JSONValue.parse(nested(100_000)) }
    #expect(try JSONValue.parse(nested(64)).array?.count == 1)
    #expect(throws: ScanError.self) { try JSONValue.parse(nested(3), depthMax: 2) }
  }

  @Test(arguments: ["", "tru", "[1,]", "{\"a\":1,}", "01", "\"\u{1}\"", "1 2", "\u{feff}1", "'a'"])
  func `what RFC 8259 does not allow is refused`(text: String) {
    #expect(throws: ScanError.self) { try JSONValue.parse(bytes(text)) }
  }

  @Test func `a value beyond 64 bits is no integer`() throws {
    #expect(try JSONValue.parse(bytes("9223372036854775808")).int == nil)
    #expect(try JSONValue.parse(bytes("-9223372036854775808")).int == .min)
  }

  @Test func `the place of a fault is told`() {
    #expect(throws: ScanError.json(offset: 4, "expected a digit")) {
      try JSONValue.parse(bytes("[1, x]"))
    }
  }
}
