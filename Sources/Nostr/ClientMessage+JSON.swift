extension ClientMessage: WireMessage {
  /// The longest subscription id that a client may use.
  public static let subscriptionBytesMax = 256

  public static func parse(_ bytes: UnsafeRawBufferPointer) throws(FrameError) -> ClientMessage {
    try FrameReader.message(bytes, read)
  }

  private static func read(_ frame: inout FrameReader) throws(FrameError) -> ClientMessage {
    switch frame {
    case "EVENT": return .event(try frame.event(FrameError.badSubmission))
    case "AUTH": return .auth(try frame.event(FrameError.badSubmission))
    case "REQ":
      let id = try subscription(&frame)
      return .req(id, try filters(of: id, &frame))
    case "COUNT":
      let id = try subscription(&frame)
      return .count(id, try filters(of: id, &frame))
    case "CLOSE": return .close(try subscription(&frame))
    case "NEG-OPEN":
      let id = try subscription(&frame)
      guard let filter = try frame.filter(of: id) else { throw frame.shape("no filter") }
      return .negOpen(id, filter, try frame.hex("the message"))
    case "NEG-MSG":
      let id = try subscription(&frame)
      return .negMessage(id, try frame.hex("the message"))
    case "NEG-CLOSE": return .negClose(try subscription(&frame))
    default: throw frame.unknownLabel
    }
  }

  private static func subscription(
    _ frame: inout FrameReader
  ) throws(FrameError) -> SubscriptionID {
    let id = try frame.subscription()
    guard !id.isEmpty else { throw frame.shape("the subscription id is empty") }
    guard id.count <= subscriptionBytesMax else {
      throw frame.shape("the subscription id is too long")
    }
    return id
  }

  private static func filters(
    of id: SubscriptionID, _ frame: inout FrameReader
  ) throws(FrameError) -> [Filter] {
    var filters: [Filter] = []
    while let filter = try frame.filter(of: id) { filters.append(filter) }
    guard !filters.isEmpty else { throw frame.shape("no filter") }
    return filters
  }
}

extension ClientMessage {
  public func writeJSON(into frame: inout [UInt8]) {
    switch self {
    case .event(let event):
      frame.appendASCII("[\"EVENT\",")
      event.writeJSON(into: &frame)
    case .auth(let event):
      frame.appendASCII("[\"AUTH\",")
      event.writeJSON(into: &frame)
    case .req(let id, let filters):
      frame.appendASCII("[\"REQ\",")
      frame.appendString(id)
      frame.appendFilters(filters)
    case .count(let id, let filters):
      frame.appendASCII("[\"COUNT\",")
      frame.appendString(id)
      frame.appendFilters(filters)
    case .close(let id):
      frame.appendASCII("[\"CLOSE\",")
      frame.appendString(id)
    case .negOpen(let id, let filter, let message):
      frame.appendASCII("[\"NEG-OPEN\",")
      frame.appendString(id)
      frame.appendFilters([filter])
      frame.appendPayload(message)
    case .negMessage(let id, let message):
      frame.appendASCII("[\"NEG-MSG\",")
      frame.appendString(id)
      frame.appendPayload(message)
    case .negClose(let id):
      frame.appendASCII("[\"NEG-CLOSE\",")
      frame.appendString(id)
    }
    frame.append(0x5d)
  }
}

extension [UInt8] {
  fileprivate mutating func appendFilters(_ filters: [Filter]) {
    for filter in filters {
      append(0x2c)
      filter.writeJSON(into: &self)
    }
  }

  mutating func appendPayload(_ bytes: [UInt8]) {
    appendASCII(",\"")
    bytes.withUnsafeBytes { appendHex($0) }
    append(0x22)
  }
}
