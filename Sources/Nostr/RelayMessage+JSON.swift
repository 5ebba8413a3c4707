extension RelayMessage: WireMessage {
  public static func parse(_ bytes: UnsafeRawBufferPointer) throws(FrameError) -> RelayMessage {
    try FrameReader.message(bytes, read)
  }

  private static func read(_ frame: inout FrameReader) throws(FrameError) -> RelayMessage {
    switch frame {
    case "EVENT": return try event(&frame)
    case "OK": return try ok(&frame)
    case "EOSE":
      let id = try frame.subscription()
      let hints = try frame.optionalValue()?.array ?? []
      return .eose(id, hints: hints.compactMap(\.string))
    case "CLOSED": return .closed(try frame.subscription(), try frame.optionalText() ?? .empty)
    case "NOTICE": return .notice(try frame.text("the notice"))
    case "AUTH": return .auth(challenge: try frame.text("the challenge"))
    case "COUNT": return try count(&frame)
    case "NEG-MSG": return .negMessage(try frame.subscription(), try frame.hex("the message"))
    case "NEG-ERR": return try negError(&frame)
    default: throw frame.unknownLabel
    }
  }

  /// An EVENT is the one message whose loss leaves a hole, so whatever is wrong with one is told as
  /// that, and with its subscription as far as that could be read.
  private static func event(_ frame: inout FrameReader) throws(FrameError) -> RelayMessage {
    let id: SubscriptionID
    do throws(FrameError) {
      id = try frame.subscription()
    } catch {
      throw frame.shape(error.description)
    }
    do throws(FrameError) {
      let event = try frame.event { FrameError.badEvent(id, $1) }
      try frame.finish()
      return .event(id, event)
    } catch {
      switch error {
      case .badEvent: throw error
      case .json(let offset, let why): throw .badEvent(id, .json(offset: offset, why))
      default: throw .badEvent(id, .shape(error.description))
      }
    }
  }

  private static func ok(_ frame: inout FrameReader) throws(FrameError) -> RelayMessage {
    let text = try frame.text("the event id")
    let id = Bytes32(hex: text).map(EventID.init)
    guard id != nil || text.isEmpty else { throw frame.shape("the event id is not hex") }
    guard let accepted = try frame.optionalValue()?.bool else {
      throw frame.shape("the verdict is not true or false")
    }
    return .ok(id, accepted: accepted, try frame.optionalText() ?? .empty)
  }

  private static func count(_ frame: inout FrameReader) throws(FrameError) -> RelayMessage {
    let id = try frame.subscription()
    let answer = try frame.optionalValue()
    guard let number = answer?["count"]?.int, number >= 0 else {
      throw frame.shape("the count is not a whole number")
    }
    return .count(id, Int(number), approximate: answer?["approximate"]?.bool ?? false)
  }

  private static func negError(_ frame: inout FrameReader) throws(FrameError) -> RelayMessage {
    let id = try frame.subscription()
    let reason = try frame.text("the reason")
    let recordsMax = try frame.optionalValue()?.int.flatMap { $0 > 0 ? Int($0) : nil }
    return .negError(id, reason, recordsMax: recordsMax)
  }
}

extension RelayMessage {
  public func writeJSON(into frame: inout [UInt8]) {
    switch self {
    case .event(let id, let event):
      frame.appendASCII("[\"EVENT\",")
      frame.appendString(id)
      frame.append(0x2c)
      event.writeJSON(into: &frame)
    case .ok(let id, let accepted, let text):
      frame.appendASCII("[\"OK\",\"")
      if let id { id.bytes.withUnsafeBytes { frame.appendHex($0) } }
      frame.appendASCII(accepted ? "\",true," : "\",false,")
      frame.appendString(text)
    case .eose(let id, let hints):
      frame.appendASCII("[\"EOSE\",")
      frame.appendString(id)
      if !hints.isEmpty {
        frame.append(0x2c)
        frame.appendList(hints) { $0.appendString($1) }
      }
    case .closed(let id, let text):
      frame.appendASCII("[\"CLOSED\",")
      frame.appendString(id)
      frame.append(0x2c)
      frame.appendString(text)
    case .notice(let text):
      frame.appendASCII("[\"NOTICE\",")
      frame.appendString(text)
    case .auth(let challenge):
      frame.appendASCII("[\"AUTH\",")
      frame.appendString(challenge)
    case .count(let id, let number, let approximate):
      frame.appendASCII("[\"COUNT\",")
      frame.appendString(id)
      frame.appendASCII(",{\"count\":")
      frame.appendDecimal(Int64(number))
      frame.appendASCII(approximate ? ",\"approximate\":true}" : "}")
    case .negMessage(let id, let message):
      frame.appendASCII("[\"NEG-MSG\",")
      frame.appendString(id)
      frame.appendPayload(message)
    case .negError(let id, let reason, let recordsMax):
      frame.appendASCII("[\"NEG-ERR\",")
      frame.appendString(id)
      frame.append(0x2c)
      frame.appendString(reason)
      if let recordsMax {
        frame.append(0x2c)
        frame.appendDecimal(Int64(recordsMax))
      }
    }
    frame.append(0x5d)
  }
}
