package import SyncCore

/// Joins the fragments of messages, and drops whatever grows over the limit.
///
/// A relay may send any message in any number of fragments. What is over the limit is told once
/// and skipped to its end, so that one large event does not cost the connection: a client that
/// closes here reconnects, asks again, and is sent the same message again.
package struct MessageAssembly {
  private let limit: Int
  private var partial: [UInt8] = []
  private var isSkipping = false

  package init(limit: Int) { self.limit = limit }

  /// Takes the next piece; a frame comes out when a message is whole, or at the moment it
  /// outgrows the limit.
  package mutating func append(_ piece: UnsafeRawBufferPointer, isFinal: Bool) -> InboundFrame? {
    if isSkipping {
      isSkipping = !isFinal
      return nil
    }
    if partial.count + piece.count > limit {
      partial = []
      isSkipping = !isFinal
      return .tooLarge(limit: limit)
    }
    partial.append(contentsOf: piece)
    guard isFinal else { return nil }
    defer { partial = [] }
    return .message(partial)
  }
}
