import Nostr
import Testing

struct VectorTests {
  /// Why the scanner refuses those rows of the wire vectors that need no hash and no signature.
  static let reasons = [
    "pubkey-upper-selfconsistent": "hex", "id-upper": "hex", "sig-upper": "hex", "id-0x": "hex",
    "created_at-float": "range", "created_at-exp": "range", "created_at-string": "shape",
    "dup-key": "shape", "tag-null": "shape", "tag-empty": "shape", "lone-surrogate": "json",
    "ts-negative": "range", "kind-65536": "range", "kind-65537": "range",
  ]

  @Test func `every row of the vectors is read`() {
    #expect(Vectors.wire.count == 30)
    #expect(Vectors.contents.count == 14)
  }

  @Test(arguments: Vectors.wire)
  func `a wire line gets the verdict of its row`(line: Vectors.Line) {
    // Two rows are refused by their hash or signature, which the scanner does not look at.
    let isOpaque = line.name == "content-swapped" || line.name == "sig-bitflip"
    let expected = line.isAccepted || isOpaque ? "ok" : Self.reasons[line.name]
    #expect(verdict(String(decoding: line.bytes, as: UTF8.self)) == expected)
  }

  @Test(arguments: Vectors.contents)
  func `an event comes out of the writer as it went in`(content: Vectors.Content) throws {
    let event = try EventScanner.event(content.event)
    #expect(try EventScanner.event(event.json()) == event)
  }
}
