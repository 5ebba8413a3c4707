/// Reads the elements of a frame in order, each as what its message needs there.
///
/// Elements beyond those a message knows are stepped over: later protocols add some.
struct FrameReader {
  private var reader: JSONReader
  private var isEnded = false
  private let labelSpan: JSONSpan

  init(_ bytes: UnsafeRawBufferPointer) throws(FrameError) {
    reader = JSONReader(bytes)
    do throws(ScanError) {
      guard reader.take(0x5b), !reader.take(0x5d), reader.next == 0x22 else {
        reader.offset = 0
        try reader.skipValue()
        try reader.end()
        throw .shape("not an array that begins with a label")
      }
      labelSpan = try reader.string()
    } catch {
      throw FrameError(error)
    }
  }

  /// Lets a message be chosen by its label without making a text of it.
  static func ~= (label: StaticString, frame: FrameReader) -> Bool {
    frame.reader.spells(frame.labelSpan, label)
  }

  var unknownLabel: FrameError { .unknownLabel(label.count <= 32 ? label : .empty) }

  private var label: Text { reader.text(labelSpan) }

  func shape(_ why: String) -> FrameError { .shape(label: label, why) }

  /// Steps to the next element; false where the array has ended.
  mutating func advance() throws(FrameError) -> Bool {
    guard !isEnded else { return false }
    do throws(ScanError) {
      let hasMore = try reader.hasMore(until: 0x5d)
      isEnded = !hasMore
      return hasMore
    } catch {
      throw FrameError(error)
    }
  }

  mutating func text(_ name: String) throws(FrameError) -> Text {
    guard let text = try optionalText() else { throw shape("\(name) is not a string") }
    return text
  }

  /// The next element if it is a string; anything else is stepped over, a missing one too.
  mutating func optionalText() throws(FrameError) -> Text? {
    guard try advance() else { return nil }
    do throws(ScanError) {
      if reader.next == 0x22 { return reader.text(try reader.string()) }
      try reader.skipValue()
      return nil
    } catch {
      throw FrameError(error)
    }
  }

  mutating func subscription() throws(FrameError) -> SubscriptionID {
    try text("the subscription id")
  }

  mutating func optionalValue() throws(FrameError) -> JSONValue? {
    guard try advance() else { return nil }
    do throws(ScanError) {
      return try JSONValue(reading: &reader, depthMax: 64)
    } catch {
      throw FrameError(error)
    }
  }

  mutating func hex(_ name: String) throws(FrameError) -> [UInt8] {
    guard let bytes = Hex.bytes(try text(name).utf8) else { throw shape("\(name) is not hex") }
    return bytes
  }

  mutating func filter(of id: SubscriptionID) throws(FrameError) -> Filter? {
    guard let value = try optionalValue() else { return nil }
    do throws(FilterError) {
      return try Filter(value)
    } catch {
      throw .badFilter(id, error)
    }
  }

  /// The next element as an event; `blame` says whose fault a bad one is.
  mutating func event(
    _ blame: (EventID?, ScanError) -> FrameError
  ) throws(FrameError) -> Event {
    guard try advance(), reader.next == 0x7b else { throw shape("the event is not an object") }
    let fields: EventFields
    do throws(ScanError) {
      fields = try EventFields(reading: &reader)
    } catch {
      throw blame(nil, error)
    }
    // The rest of the frame comes first: what is not JSON says nothing of its fields.
    try finish()
    do throws(ScanError) {
      return try fields.event()
    } catch {
      throw blame(fields.id, error)
    }
  }

  /// Steps over what is left; nothing may follow the array.
  mutating func finish() throws(FrameError) {
    while try advance() {
      do throws(ScanError) { try reader.skipValue() } catch { throw FrameError(error) }
    }
    do throws(ScanError) { try reader.end() } catch { throw FrameError(error) }
  }
}
