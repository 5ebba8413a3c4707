/// Unix time in whole seconds, 0…2^63−1 on the wire (NIP-01).
public struct Timestamp: Hashable, Comparable, Sendable, CustomStringConvertible,
  ExpressibleByIntegerLiteral
{
  public let seconds: Int64

  public init(_ seconds: Int64) { self.seconds = seconds }

  public init(integerLiteral value: Int64) { seconds = value }

  public var description: String { String(seconds) }

  public static func < (left: Timestamp, right: Timestamp) -> Bool { left.seconds < right.seconds }

  /// Saturates at both ends instead of trapping on a hostile time.
  public static func + (left: Timestamp, right: Int64) -> Timestamp {
    let (sum, overflow) = left.seconds.addingReportingOverflow(right)
    return Timestamp(overflow ? (right < 0 ? .min : .max) : sum)
  }

  public static func - (left: Timestamp, right: Int64) -> Timestamp {
    let (difference, overflow) = left.seconds.subtractingReportingOverflow(right)
    return Timestamp(overflow ? (right < 0 ? .max : .min) : difference)
  }
}
