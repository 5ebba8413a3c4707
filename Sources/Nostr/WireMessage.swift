/// A message of the wire, in either direction: one JSON array, read and written whole.
public protocol WireMessage: Sendable {
  static func parse(_ bytes: UnsafeRawBufferPointer) throws(FrameError) -> Self

  /// Appends the message as one line of JSON.
  func writeJSON(into frame: inout [UInt8])
}

extension WireMessage {
  public static func parse(_ bytes: some Collection<UInt8>) throws(FrameError) -> Self {
    try bytes.withRawBytes { (buffer) throws(FrameError) in try parse(buffer) }
  }

  public func json() -> [UInt8] {
    var frame: [UInt8] = []
    writeJSON(into: &frame)
    return frame
  }
}

extension FrameReader {
  /// Reads one whole frame as the message that `read` makes of it.
  static func message<Message>(
    _ bytes: UnsafeRawBufferPointer,
    _ read: (inout FrameReader) throws(FrameError) -> Message
  ) throws(FrameError) -> Message {
    var frame = try FrameReader(bytes)
    let message = try read(&frame)
    try frame.finish()
    return message
  }
}
