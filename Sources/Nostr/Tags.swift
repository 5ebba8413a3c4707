/// An event's tags, packed into one buffer: no array and no string is made until one is asked for.
///
/// Layout: each tag is its element count and then its elements, each element its byte count and
/// its bytes; counts are LEB128.
public struct Tags: Hashable, Sendable, Sequence {
  let packed: [UInt8]

  /// The number of tags.
  public let count: Int

  public static let none = Tags(packed: [], count: 0)

  init(packed: [UInt8], count: Int) {
    self.packed = packed
    self.count = count
  }

  /// - Parameter lists: Each of at least one element; an empty list is left out.
  public init(_ lists: [[Text]]) {
    var builder = TagsBuilder()
    for list in lists where !list.isEmpty { builder.append(list) }
    self = builder.finish()
  }

  public init(_ lists: [[String]]) {
    self.init(lists.map { list in list.map { Text($0) } })
  }

  public var isEmpty: Bool { count == 0 }

  public func makeIterator() -> Iterator { Iterator(packed: packed) }

  public struct Iterator: IteratorProtocol {
    private let packed: [UInt8]
    private var offset = 0

    init(packed: [UInt8]) { self.packed = packed }

    public mutating func next() -> Tag? {
      guard offset < packed.count else { return nil }
      let count = Tags.readCount(packed, at: &offset)
      let start = offset
      for _ in 0..<count {
        let length = Tags.readCount(packed, at: &offset)
        offset += length
      }
      return Tag(packed: packed, start: start, end: offset, count: count)
    }
  }

  /// The value (element 1) of the first tag named `name` that has one; a bare tag is skipped.
  public func firstValue(_ name: Text) -> Text? {
    for tag in self where tag.count > 1 && tag.name == name { return tag[1] }
    return nil
  }

  /// Element 1 of every tag named `name` that has one, in order.
  public func values(_ name: Text) -> [Text] {
    var result: [Text] = []
    for tag in self where tag.count > 1 && tag.name == name { result.append(tag[1]) }
    return result
  }

  /// The first tag named `name`, bare or not.
  public func first(named name: Text) -> Tag? {
    for tag in self where tag.name == name { return tag }
    return nil
  }

  /// When the event stops counting (NIP-40): the first `expiration` that has a value, if that is
  /// written as `created_at` is, which leaves no room for a sign, a space or a leading zero.
  public var expiration: Timestamp? {
    guard let digits = firstValue("expiration")?.utf8, !digits.isEmpty,
      digits.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), digits.first != 0x30 || digits.count == 1
    else { return nil }
    return Int64(Text(utf8: digits).string).map { Timestamp($0) }
  }

  public func contains(named name: Text) -> Bool { first(named: name) != nil }

  @inline(__always)
  static func readCount<Bytes: RandomAccessCollection>(
    _ packed: Bytes, at offset: inout Int
  ) -> Int where Bytes.Element == UInt8, Bytes.Index == Int {
    var result = 0
    var shift = 0
    while true {
      let byte = packed[offset]
      offset += 1
      result |= Int(byte & 0x7f) << shift
      if byte < 0x80 { return result }
      shift += 7
    }
  }
}

/// One tag of an event: at least one element, the first of which is its name.
public struct Tag: Sendable, Hashable, Sequence {
  private let packed: [UInt8]
  private let start: Int
  private let end: Int

  /// The number of elements, the name included; at least 1.
  public let count: Int

  init(packed: [UInt8], start: Int, end: Int, count: Int) {
    self.packed = packed
    self.start = start
    self.end = end
    self.count = count
  }

  public var name: Text { self[0] }

  /// The single letter of a tag that NIP-01 makes queryable (`a-z`, `A-Z`), else nil.
  public var letter: UInt8? {
    var offset = start
    guard Tags.readCount(packed, at: &offset) == 1 else { return nil }
    let byte = packed[offset]
    return (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a) ? byte : nil
  }

  /// The element at `index`.
  ///
  /// - Complexity: O(`index`).
  public subscript(index: Int) -> Text {
    precondition(index >= 0 && index < count, "a tag has no element \(index)")
    var offset = start
    for _ in 0..<index {
      let length = Tags.readCount(packed, at: &offset)
      offset += length
    }
    let length = Tags.readCount(packed, at: &offset)
    return Text(utf8: packed[offset..<offset + length])
  }

  /// The element at `index`, or nil where the tag is shorter.
  public func value(_ index: Int) -> Text? { index >= 0 && index < count ? self[index] : nil }

  /// Element `index` as 32 bytes of lowercase hex, or nil.
  public func bytes32(_ index: Int) -> Bytes32? {
    guard let text = value(index) else { return nil }
    return text.utf8.withUnsafeBytes { Hex.bytes32($0) }
  }

  public func makeIterator() -> Iterator { Iterator(packed: packed, offset: start, end: end) }

  public struct Iterator: IteratorProtocol {
    private let packed: [UInt8]
    private var offset: Int
    private let end: Int

    init(packed: [UInt8], offset: Int, end: Int) {
      self.packed = packed
      self.offset = offset
      self.end = end
    }

    public mutating func next() -> Text? {
      guard offset < end else { return nil }
      let length = Tags.readCount(packed, at: &offset)
      defer { offset += length }
      return Text(utf8: packed[offset..<offset + length])
    }
  }

  public static func == (left: Tag, right: Tag) -> Bool {
    left.packed[left.start..<left.end] == right.packed[right.start..<right.end]
  }

  public func hash(into hasher: inout Hasher) {
    packed[start..<end].withUnsafeBytes { hasher.combine(bytes: $0) }
  }
}

/// Packs tags one element at a time.
public struct TagsBuilder {
  private var packed: [UInt8] = []
  private var count = 0

  public init() {}

  /// - Parameter elements: At least one.
  public mutating func append(_ elements: [Text]) {
    precondition(!elements.isEmpty, "a tag has at least one element")
    appendCount(elements.count)
    for element in elements {
      appendCount(element.count)
      packed.append(contentsOf: element.utf8)
    }
    count += 1
  }

  public consuming func finish() -> Tags { Tags(packed: packed, count: count) }

  private mutating func appendCount(_ value: Int) {
    var rest = value
    while rest >= 0x80 {
      packed.append(UInt8(rest & 0x7f) | 0x80)
      rest >>= 7
    }
    packed.append(UInt8(rest))
  }
}
