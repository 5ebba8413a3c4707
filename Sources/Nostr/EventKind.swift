/// An event's kind, 0…65535. Unknown kinds are as good as known ones.
public struct EventKind: Hashable, Comparable, Sendable, CustomStringConvertible,
  ExpressibleByIntegerLiteral
{
  public let number: UInt16

  public init(_ number: UInt16) { self.number = number }

  public init(integerLiteral value: UInt16) { number = value }

  public var description: String { String(number) }

  public static func < (left: EventKind, right: EventKind) -> Bool { left.number < right.number }

  /// How long a relay keeps events of this kind, and what they replace (NIP-01).
  public enum Storage: Sendable, Hashable {
    case regular, replaceable, addressable, ephemeral
  }

  public var storage: Storage {
    switch number {
    case 0, 3, 10000...19999: .replaceable
    case 20000...29999: .ephemeral
    case 30000...39999: .addressable
    default: .regular
    }
  }
}
