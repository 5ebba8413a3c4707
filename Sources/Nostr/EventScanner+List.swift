extension EventScanner {
  /// Reads a JSON array of events, as relays answer over HTTP; an element that is no event is a
  /// failure of its own.
  ///
  /// - Parameter countMax: An array of more elements is refused.
  public static func list(
    _ bytes: some Collection<UInt8>, countMax: Int
  ) throws(ScanError) -> [Result<Event, ScanError>] {
    try bytes.withRawBytes { (buffer) throws(ScanError) in
      var reader = JSONReader(buffer)
      guard reader.take(UInt8(ascii: "[")) else { throw reader.failure("expected an array") }
      var events: [Result<Event, ScanError>] = []
      let close = UInt8(ascii: "]")
      var hasMore = !reader.take(close)
      while hasMore {
        guard events.count < countMax else { throw reader.failure("more than \(countMax) events") }
        reader.skipSpace()
        let start = reader.offset
        try reader.skipValue()
        let element = UnsafeRawBufferPointer(rebasing: buffer[start..<reader.offset])
        events.append(Result { () throws(ScanError) in try event(element) })
        hasMore = try reader.hasMore(until: close)
      }
      try reader.end()
      return events
    }
  }
}
