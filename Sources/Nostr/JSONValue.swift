/// Any JSON value: for profiles, relay information and other JSON that is not an event.
public indirect enum JSONValue: Sendable {
  case null
  case bool(Bool)
  /// The number as it was spelled.
  case number(Text)
  case string(Text)
  case array([JSONValue])
  /// The members in the order in which they stood.
  case object([(Text, JSONValue)])

  /// - Parameter depthMax: Lists nested more deeply are refused.
  public static func parse(
    _ bytes: some Collection<UInt8>, depthMax: Int = 64
  ) throws(ScanError) -> JSONValue {
    try bytes.withRawBytes { (buffer) throws(ScanError) in
      var reader = JSONReader(buffer)
      let value = try JSONValue(reading: &reader, depthMax: depthMax)
      try reader.end()
      return value
    }
  }

  public static func parse(_ text: Text, depthMax: Int = 64) throws(ScanError) -> JSONValue {
    try parse(text.utf8, depthMax: depthMax)
  }

  init(reading reader: inout JSONReader, depthMax: Int) throws(ScanError) {
    reader.skipSpace()
    switch reader.next {
    case 0x22: self = .string(reader.text(try reader.string()))
    case 0x7b: self = .object(try Self.members(&reader, depthMax))
    case 0x5b: self = .array(try Self.elements(&reader, depthMax))
    case 0x74:
      try reader.literal("true")
      self = .bool(true)
    case 0x66:
      try reader.literal("false")
      self = .bool(false)
    case 0x6e:
      try reader.literal("null")
      self = .null
    default:
      let number = try reader.number()
      self = .number(Text(utf8: Array(reader.bytes[number.start..<number.end])))
    }
  }

  private static func members(
    _ reader: inout JSONReader, _ depthMax: Int
  ) throws(ScanError) -> [(Text, JSONValue)] {
    guard depthMax > 0 else { throw reader.failure("nested too deeply") }
    reader.offset += 1
    var members: [(Text, JSONValue)] = []
    if reader.take(0x7d) { return members }
    repeat {
      let key = reader.text(try reader.key())
      members.append((key, try JSONValue(reading: &reader, depthMax: depthMax - 1)))
    } while try reader.hasMore(until: 0x7d)
    return members
  }

  private static func elements(
    _ reader: inout JSONReader, _ depthMax: Int
  ) throws(ScanError) -> [JSONValue] {
    guard depthMax > 0 else { throw reader.failure("nested too deeply") }
    reader.offset += 1
    var elements: [JSONValue] = []
    if reader.take(0x5d) { return elements }
    repeat {
      elements.append(try JSONValue(reading: &reader, depthMax: depthMax - 1))
    } while try reader.hasMore(until: 0x5d)
    return elements
  }
}

extension JSONValue {
  /// The member of that name; of several, the last, as most parsers read it.
  public subscript(_ key: Text) -> JSONValue? {
    members?.last { $0.0 == key }?.1
  }

  public var members: [(Text, JSONValue)]? {
    if case .object(let members) = self { members } else { nil }
  }

  public var array: [JSONValue]? {
    if case .array(let elements) = self { elements } else { nil }
  }

  public var string: Text? {
    if case .string(let text) = self { text } else { nil }
  }

  public var bool: Bool? {
    if case .bool(let value) = self { value } else { nil }
  }

  /// A whole number spelled without fraction and exponent.
  public var int: Int64? {
    guard case .number(let text) = self else { return nil }
    return Int64(text.string)
  }

  public var isNull: Bool {
    if case .null = self { true } else { false }
  }
}

extension JSONValue {
  public static func int(_ value: some BinaryInteger) -> JSONValue { .number(Text(String(value))) }

  /// Appends the value without space, its members in the order in which they stand.
  public func writeJSON(into buffer: inout [UInt8]) {
    switch self {
    case .null: buffer.appendASCII("null")
    case .bool(let value): buffer.appendASCII(value ? "true" : "false")
    case .number(let text): buffer.append(contentsOf: text.utf8)
    case .string(let text): buffer.appendString(text)
    case .array(let elements):
      buffer.append(0x5b)
      for (index, element) in elements.enumerated() {
        if index > 0 { buffer.append(0x2c) }
        element.writeJSON(into: &buffer)
      }
      buffer.append(0x5d)
    case .object(let members):
      buffer.append(0x7b)
      for (index, member) in members.enumerated() {
        if index > 0 { buffer.append(0x2c) }
        buffer.appendString(member.0)
        buffer.append(0x3a)
        member.1.writeJSON(into: &buffer)
      }
      buffer.append(0x7d)
    }
  }

  public func json() -> [UInt8] {
    var buffer: [UInt8] = []
    writeJSON(into: &buffer)
    return buffer
  }
}

extension JSONValue: Equatable {
  public static func == (left: JSONValue, right: JSONValue) -> Bool {
    switch (left, right) {
    case (.null, .null): true
    case (.bool(let first), .bool(let second)): first == second
    case (.number(let first), .number(let second)): first == second
    case (.string(let first), .string(let second)): first == second
    case (.array(let first), .array(let second)): first == second
    case (.object(let first), .object(let second)):
      first.count == second.count
        && zip(first, second).allSatisfy { $0.0 == $1.0 && $0.1 == $1.1 }
    default: false
    }
  }
}
