/// What was read of one event, whether or not it makes one.
struct EventFields {
  private(set) var id: EventID?
  /// The first reason in `ScanError`'s order so far; `json` is thrown at once, for nothing
  /// comes before it.
  private(set) var fault: ScanError?

  private var pubkey: PublicKey?
  private var createdAt: Timestamp?
  private var kind: EventKind?
  private var tags: Tags?
  private var content: Text?
  private var sig: Signature?
  private var seen: Field = []
  private var unknown = UnknownKeys()

  private struct Field: OptionSet {
    let rawValue: UInt8
    static let id = Field(rawValue: 1)
    static let pubkey = Field(rawValue: 2)
    static let createdAt = Field(rawValue: 4)
    static let kind = Field(rawValue: 8)
    static let tags = Field(rawValue: 16)
    static let content = Field(rawValue: 32)
    static let sig = Field(rawValue: 64)
    static let all = Field(rawValue: 127)
  }

  /// Reads one object; the cursor must stand on its brace, and ends behind it.
  init(reading reader: inout JSONReader) throws(ScanError) {
    let start = reader.offset
    reader.offset += 1
    if !reader.take(0x7d) {
      repeat {
        let key = try reader.key()
        try readField(key, &reader)
      } while try reader.hasMore(until: 0x7d)
    }
    if seen != .all { note(.shape("a field is missing")) }
    let size = reader.offset - start
    if size > EventScanner.eventBytesMax { note(.size(size)) }
  }

  /// The event, or the reason why there is none.
  func event() throws(ScanError) -> Event {
    if let fault { throw fault }
    guard let id, let pubkey, let createdAt, let kind, let tags, let content, let sig else {
      throw .shape("a field is missing")
    }
    return Event(
      id: id, pubkey: pubkey, createdAt: createdAt, kind: kind, tags: tags, content: content,
      sig: sig)
  }

  private mutating func note(_ reason: ScanError) {
    if let fault, fault.rank <= reason.rank { return }
    fault = reason
  }

  private mutating func readField(
    _ key: JSONSpan, _ reader: inout JSONReader
  ) throws(ScanError) {
    guard let field = Self.field(key, reader) else {
      if !unknown.insert(key, reader) { note(.shape("a key stands there twice")) }
      return try reader.skipValue()
    }
    guard !seen.contains(field) else {
      note(.shape("a field stands there twice"))
      return try reader.skipValue()
    }
    seen.insert(field)
    switch field {
    case .id: if let hex = try hex(64, "id", &reader) { id = EventID(hex.first) }
    case .pubkey: if let hex = try hex(64, "pubkey", &reader) { pubkey = PublicKey(hex.first) }
    case .sig:
      if let hex = try hex(128, "sig", &reader) {
        sig = Signature(first: hex.first, second: hex.second)
      }
    case .createdAt:
      if let number = try integer(max: UInt64(Int64.max), "created_at", &reader) {
        createdAt = Timestamp(Int64(number))
      }
    case .kind:
      if let number = try integer(max: 65535, "kind", &reader) {
        kind = EventKind(UInt16(number))
      }
    case .tags:
      tags = try reader.tags()
      if tags == nil { note(.shape("tags is not an array of arrays of strings")) }
    default:
      if reader.next == 0x22 {
        content = Text(utf8: reader.decoded(try reader.string()))
      } else {
        note(.shape("content is not a string"))
        try reader.skipValue()
      }
    }
  }

  private static func field(_ key: JSONSpan, _ reader: JSONReader) -> Field? {
    switch key.count {
    case 2 where reader.spells(key, "id"): .id
    case 3 where reader.spells(key, "sig"): .sig
    case 4 where reader.spells(key, "kind"): .kind
    case 4 where reader.spells(key, "tags"): .tags
    case 6 where reader.spells(key, "pubkey"): .pubkey
    case 7 where reader.spells(key, "content"): .content
    case 10 where reader.spells(key, "created_at"): .createdAt
    default: nil
    }
  }

  private mutating func hex(
    _ digits: Int, _ name: String, _ reader: inout JSONReader
  ) throws(ScanError) -> (first: Bytes32, second: Bytes32)? {
    guard reader.next == 0x22 else {
      note(.shape("\(name) is not a string"))
      try reader.skipValue()
      return nil
    }
    let span = try reader.string()
    let value =
      span.isEscaped
      ? reader.decoded(span).withUnsafeBytes { Self.words($0, digits) }
      : Self.words(UnsafeRawBufferPointer(rebasing: reader.bytes[span.start..<span.end]), digits)
    if value == nil { note(.hex("\(name) is not \(digits) lowercase hex digits")) }
    return value
  }

  private static func words(
    _ text: UnsafeRawBufferPointer, _ digits: Int
  ) -> (first: Bytes32, second: Bytes32)? {
    guard text.count == digits,
      let first = Hex.bytes32(UnsafeRawBufferPointer(rebasing: text[0..<64]))
    else { return nil }
    guard digits == 128 else { return (first, .zero) }
    guard let second = Hex.bytes32(UnsafeRawBufferPointer(rebasing: text[64..<128])) else {
      return nil
    }
    return (first, second)
  }

  private mutating func integer(
    max: UInt64, _ name: String, _ reader: inout JSONReader
  ) throws(ScanError) -> UInt64? {
    guard let first = reader.next, first == 0x2d || (first >= 0x30 && first <= 0x39) else {
      note(.shape("\(name) is not a number"))
      try reader.skipValue()
      return nil
    }
    let number = try reader.number()
    guard number.isPlain else {
      note(.range("\(name) is not a plain integer"))
      return nil
    }
    guard let digits = number.digits, digits <= max else {
      note(.range("\(name) is too large"))
      return nil
    }
    return digits
  }
}

/// The keys of an event that NIP-01 does not know, remembered only to find one that stands there
/// twice: parsers disagree about which of two counts.
private struct UnknownKeys {
  private var keys: Set<Text> = []

  /// Returns false where the key was there before.
  mutating func insert(_ key: JSONSpan, _ reader: JSONReader) -> Bool {
    keys.insert(reader.text(key)).inserted
  }
}
