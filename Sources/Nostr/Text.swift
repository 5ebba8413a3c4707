/// UTF-8 text compared, ordered and hashed by its bytes.
///
/// Swift's `String` treats composed and decomposed spellings as equal; on the wire they are two
/// tags, two group ids, two events. Whatever takes part in identity is a `Text`. A `Text` taken
/// from an event shares the event's storage; `owned()` cuts it loose for keeping.
public struct Text: Hashable, Comparable, Sendable, ExpressibleByStringLiteral,
  CustomStringConvertible
{
  public let utf8: ArraySlice<UInt8>

  public static let empty = Text(utf8: [])

  /// - Parameter utf8: Valid UTF-8. Whoever makes a `Text` from outside bytes has checked them.
  public init(utf8: ArraySlice<UInt8>) { self.utf8 = utf8 }

  public init(utf8: [UInt8]) { self.utf8 = utf8[...] }

  public init(_ string: some StringProtocol) { utf8 = Array(string.utf8)[...] }

  public init(stringLiteral value: String) { self.init(value) }

  public var isEmpty: Bool { utf8.isEmpty }

  /// The number of bytes.
  public var count: Int { utf8.count }

  public var string: String { String(decoding: utf8, as: UTF8.self) }

  public var description: String { string }

  /// A copy that keeps no larger storage alive.
  public func owned() -> Text { Text(utf8: Array(utf8)) }

  public func hasPrefix(_ prefix: Text) -> Bool { utf8.starts(with: prefix.utf8) }

  public static func == (left: Text, right: Text) -> Bool {
    left.utf8.withUnsafeBytes { leftBytes in
      right.utf8.withUnsafeBytes { rightBytes in
        leftBytes.count == rightBytes.count && leftBytes.elementsEqual(rightBytes)
      }
    }
  }

  public static func < (left: Text, right: Text) -> Bool {
    left.utf8.lexicographicallyPrecedes(right.utf8)
  }

  public func hash(into hasher: inout Hasher) {
    utf8.withUnsafeBytes { hasher.combine(bytes: $0) }
  }
}
