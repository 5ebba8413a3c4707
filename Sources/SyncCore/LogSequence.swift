/// A place in the log; events and facts share one gapless count that begins at 1.
public struct LogSequence: Hashable, Comparable, Sendable, CustomStringConvertible {
  public let number: Int64

  /// Before the first entry.
  public static let start = LogSequence(0)

  public init(_ number: Int64) { self.number = number }

  public var next: LogSequence { LogSequence(number + 1) }

  public var description: String { String(number) }

  public static func < (left: LogSequence, right: LogSequence) -> Bool {
    left.number < right.number
  }
}
