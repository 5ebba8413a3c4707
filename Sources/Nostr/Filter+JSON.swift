/// Why JSON is not a filter.
public enum FilterError: Error, Hashable, Sendable, CustomStringConvertible {
  case json(offset: Int, String)
  case notAnObject
  /// The field as it is spelled in the filter, and what is wrong with it.
  case field(Text, String)

  public var description: String {
    switch self {
    case .json(let offset, let why): "\(why) at byte \(offset)"
    case .notAnObject: "a filter is a JSON object"
    case .field(let name, let why): "\(name): \(why)"
    }
  }
}

extension Filter {
  /// Reads a filter as NIP-01 spells it; keys it does not know are ignored.
  public init(json: some Collection<UInt8>) throws(FilterError) {
    let value: JSONValue
    do throws(ScanError) {
      value = try JSONValue.parse(json)
    } catch .json(let offset, let why) {
      throw .json(offset: offset, why)
    } catch {
      throw .notAnObject
    }
    try self.init(value)
  }

  public init(_ value: JSONValue) throws(FilterError) {
    guard let members = value.members else { throw .notAnObject }
    self.init()
    var seen: Set<Text> = []
    for (name, value) in members {
      guard seen.insert(name).inserted else { throw .field(name, "stands there twice") }
      try read(name, value)
    }
  }

  /// The keys of a filter, beside those of one tag.
  public static let names: [Text] = [
    "authors", "ids", "kinds", "limit", "search", "since", "until",
  ]

  /// Whether a key asks for anything.
  public static func knows(_ name: Text) -> Bool { names.contains(name) || letter(name) != nil }

  private mutating func read(_ name: Text, _ value: JSONValue) throws(FilterError) {
    switch name {
    case "ids":
      ids = try Self.list(name, value, "64 lowercase hex digits") { element in
        element.string.flatMap(Bytes32.init(hex:)).map(EventID.init)
      }
    case "authors":
      authors = try Self.list(name, value, "64 lowercase hex digits") { element in
        element.string.flatMap(Bytes32.init(hex:)).map(PublicKey.init)
      }
    case "kinds":
      kinds = try Self.list(name, value, "kinds from 0 to 65535") { element in
        element.int.flatMap { UInt16(exactly: $0) }.map { EventKind($0) }
      }
    case "since": since = Timestamp(try Self.whole(name, value))
    case "until": until = Timestamp(try Self.whole(name, value))
    case "limit": limit = Int(try Self.whole(name, value))
    case "search":
      guard let text = value.string else { throw .field(name, "is not a string") }
      search = text
    default:
      guard let letter = Self.letter(name) else { return }
      tags[letter] = try Self.list(name, value, "strings") { $0.string }
    }
  }

  /// The letter of a key like `#h`.
  private static func letter(_ name: Text) -> UInt8? {
    guard name.count == 2, name.utf8.first == 0x23, let letter = name.utf8.last else { return nil }
    switch letter {
    case 0x41...0x5a, 0x61...0x7a: return letter
    default: return nil
    }
  }

  private static func list<Element>(
    _ name: Text, _ value: JSONValue, _ what: String, _ read: (JSONValue) -> Element?
  ) throws(FilterError) -> [Element] {
    guard let elements = value.array else { throw .field(name, "is not an array") }
    var result: [Element] = []
    result.reserveCapacity(elements.count)
    for element in elements {
      guard let one = read(element) else {
        throw .field(name, "holds something other than \(what)")
      }
      result.append(one)
    }
    return result
  }

  private static func whole(_ name: Text, _ value: JSONValue) throws(FilterError) -> Int64 {
    guard let number = value.int, number >= 0, value != .number("-0") else {
      throw .field(name, "is not a whole number from 0 to 2^63-1")
    }
    return number
  }
}

extension Bytes32 {
  /// As `init(hex:)`, without a `String` between.
  init?(hex text: Text) {
    guard let value = text.utf8.withUnsafeBytes({ Hex.bytes32($0) }) else { return nil }
    self = value
  }
}

extension Filter {
  /// The filter as JSON with its keys sorted and unset fields left out, so that equal filters have
  /// equal bytes. An empty list stays: without it the filter would ask for everything.
  public func json() -> [UInt8] {
    var buffer: [UInt8] = []
    writeJSON(into: &buffer)
    return buffer
  }

  public func writeJSON(into buffer: inout [UInt8]) {
    buffer.append(0x7b)
    let start = buffer.count
    func key(_ name: StaticString, in buffer: inout [UInt8]) {
      if buffer.count > start { buffer.append(0x2c) }
      buffer.append(0x22)
      buffer.appendASCII(name)
      buffer.appendASCII("\":")
    }
    for (letter, values) in tags.sorted(by: { $0.key < $1.key }) {
      key("#", in: &buffer)
      // The letter belongs between the quotes that `key` has just written.
      buffer.removeLast(2)
      buffer.append(letter)
      buffer.appendASCII("\":")
      buffer.appendList(values) { $0.appendString($1) }
    }
    if let authors {
      key("authors", in: &buffer)
      buffer.appendList(authors) { $0.appendQuotedHex($1.bytes) }
    }
    if let ids {
      key("ids", in: &buffer)
      buffer.appendList(ids) { $0.appendQuotedHex($1.bytes) }
    }
    if let kinds {
      key("kinds", in: &buffer)
      buffer.appendList(kinds) { $0.appendDecimal(Int64($1.number)) }
    }
    if let limit {
      key("limit", in: &buffer)
      buffer.appendDecimal(Int64(limit))
    }
    if let search {
      key("search", in: &buffer)
      buffer.appendString(search)
    }
    if let since {
      key("since", in: &buffer)
      buffer.appendDecimal(since.seconds)
    }
    if let until {
      key("until", in: &buffer)
      buffer.appendDecimal(until.seconds)
    }
    buffer.append(0x7d)
  }
}

extension [UInt8] {
  mutating func appendList<Item>(_ items: [Item], _ write: (inout [UInt8], Item) -> Void) {
    append(0x5b)
    for (index, item) in items.enumerated() {
      if index > 0 { append(0x2c) }
      write(&self, item)
    }
    append(0x5d)
  }
}
