import Nostr

/// A row of `--json` output. Keys keep the order in which they are written, so that the same answer
/// is the same bytes; text is written exactly as it is.
indirect enum JSON: Sendable {
  case null
  case bool(Bool)
  case int(Int64)
  case double(Double)
  case text(Text)
  /// JSON already, such as an event.
  case raw([UInt8])
  case array([JSON])
  case object([(String, JSON)])

  func write(into buffer: inout [UInt8]) {
    switch self {
    case .null: buffer.append(contentsOf: "null".utf8)
    case .bool(let value): buffer.append(contentsOf: (value ? "true" : "false").utf8)
    case .int(let value): buffer.append(contentsOf: String(value).utf8)
    case .double(let value): buffer.append(contentsOf: JSON.decimal(value).utf8)
    case .text(let text): JSON.write(text, into: &buffer)
    case .raw(let bytes): buffer.append(contentsOf: bytes)
    case .array(let values):
      buffer.append(UInt8(ascii: "["))
      for (index, value) in values.enumerated() {
        if index > 0 { buffer.append(UInt8(ascii: ",")) }
        value.write(into: &buffer)
      }
      buffer.append(UInt8(ascii: "]"))
    case .object(let members):
      buffer.append(UInt8(ascii: "{"))
      for (index, member) in members.enumerated() {
        if index > 0 { buffer.append(UInt8(ascii: ",")) }
        JSON.write(Text(member.0), into: &buffer)
        buffer.append(UInt8(ascii: ":"))
        member.1.write(into: &buffer)
      }
      buffer.append(UInt8(ascii: "}"))
    }
  }

  /// The row as one line.
  var line: [UInt8] {
    var buffer: [UInt8] = []
    write(into: &buffer)
    buffer.append(UInt8(ascii: "\n"))
    return buffer
  }

  /// Three decimals at most; JSON has no infinity, so there is none here.
  private static func decimal(_ value: Double) -> String {
    guard value.isFinite, abs(value) < 1e15 else { return "0" }
    let thousandths = Int64((value * 1000).rounded())
    let sign = thousandths < 0 ? "-" : ""
    let whole = String(thousandths.magnitude / 1000)
    let rest = thousandths.magnitude % 1000
    guard rest > 0 else { return sign + whole }
    var digits = TimeWords.padded(Int64(rest), 3)
    while digits.hasSuffix("0") { digits.removeLast() }
    return sign + whole + "." + digits
  }

  private static func write(_ text: Text, into buffer: inout [UInt8]) {
    buffer.append(UInt8(ascii: "\""))
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"):
        buffer.append(UInt8(ascii: "\\"))
        buffer.append(byte)
      case 0x0a: buffer.append(contentsOf: "\\n".utf8)
      case 0x0d: buffer.append(contentsOf: "\\r".utf8)
      case 0x09: buffer.append(contentsOf: "\\t".utf8)
      case 0x00..<0x20, 0x7f: buffer.append(contentsOf: "\\u00\(Hex.string([byte]))".utf8)
      default: buffer.append(byte)
      }
    }
    buffer.append(UInt8(ascii: "\""))
  }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByBooleanLiteral,
  ExpressibleByNilLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  init(stringLiteral value: String) { self = .text(Text(value)) }
  init(integerLiteral value: Int64) { self = .int(value) }
  init(booleanLiteral value: Bool) { self = .bool(value) }
  init(nilLiteral: ()) { self = .null }
  init(arrayLiteral elements: JSON...) { self = .array(elements) }
  init(dictionaryLiteral elements: (String, JSON)...) { self = .object(elements) }

  init(_ value: Text?) { self = value.map { .text($0) } ?? .null }
  init(_ value: String?) { self = value.map { .text(Text($0)) } ?? .null }
  init(_ value: Int?) { self = value.map { .int(Int64($0)) } ?? .null }
  init(_ value: Bool?) { self = value.map { .bool($0) } ?? .null }
  init(_ value: Timestamp?) { self = value.map { .int($0.seconds) } ?? .null }

  /// Counts by name, the names sorted.
  init(counts: [String: Int]) {
    self = .object(counts.sorted { $0.key < $1.key }.map { ($0.key, .int(Int64($0.value))) })
  }
}
