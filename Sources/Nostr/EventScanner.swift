/// Reads events from bytes, strictly: what decides an event's identity has one spelling here.
///
/// Fields may come in any order; keys that NIP-01 does not know are checked and dropped. The whole
/// text is read before a reason is named, so that the first reason in `ScanError`'s order wins
/// wherever in the text it stands.
public enum EventScanner {
  /// An event of more bytes than this is refused.
  public static let eventBytesMax = 8 << 20

  /// A line of more bytes than this is to be refused by its reader, before anything is parsed.
  public static let lineBytesMax = 16 << 20

  /// - Parameter bytes: One JSON object and nothing else but space.
  public static func event(_ bytes: UnsafeRawBufferPointer) throws(ScanError) -> Event {
    var reader = JSONReader(bytes)
    reader.skipSpace()
    guard reader.next == 0x7b else { throw reader.failure("expected an object") }
    let fields = try EventFields(reading: &reader)
    try reader.end()
    return try fields.event()
  }

  /// - Parameter bytes: One JSON object and nothing else but space.
  public static func event(_ bytes: some Collection<UInt8>) throws(ScanError) -> Event {
    try bytes.withRawBytes { (buffer) throws(ScanError) in try event(buffer) }
  }
}

extension Collection<UInt8> {
  /// Calls `body` with the bytes in one piece; they are copied only where they are not.
  func withRawBytes<Value, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    let inPlace = withContiguousStorageIfAvailable { buffer in
      Result { () throws(Failure) in try body(UnsafeRawBufferPointer(buffer)) }
    }
    if let inPlace { return try inPlace.get() }
    return try Array(self).withUnsafeBytes { buffer in
      Result { () throws(Failure) in try body(buffer) }
    }.get()
  }
}
