/// Why a frame is not a message. A bad frame is counted and shown; it never ends a connection.
public enum FrameError: Error, Hashable, Sendable {
  /// The text is not one JSON value.
  case json(offset: Int, String)
  /// Not an array that begins with a label.
  case notAMessage(String)
  /// A label that this side does not know; over 32 bytes it is left out.
  case unknownLabel(Text)
  /// A known label with an element missing or of the wrong type.
  case shape(label: Text, String)
  /// A relay's EVENT that names a subscription and holds no event that can be read; the subscription
  /// tells whose page has a hole now.
  case badEvent(SubscriptionID, ScanError)
  /// A client's EVENT or AUTH whose event is bad; the id, where it could be read, is for the OK.
  case badSubmission(EventID?, ScanError)
  /// A filter of a REQ, COUNT or NEG-OPEN is bad.
  case badFilter(SubscriptionID, FilterError)

  init(_ error: ScanError) {
    switch error {
    case .json(let offset, let why): self = .json(offset: offset, why)
    case .shape(let why): self = .notAMessage(why)
    default: self = .notAMessage(error.description)
    }
  }
}

extension FrameError {
  /// Whether it is a relay's EVENT that does not say whose: any page may have a hole now.
  public var isUnaddressedEvent: Bool {
    if case .shape("EVENT", _) = self { true } else { false }
  }
}

extension FrameError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .json(let offset, let why): "\(why) at byte \(offset)"
    case .notAMessage(let why): why
    case .unknownLabel(let label): "unknown message \(label)"
    case .shape(let label, let why): "\(label): \(why)"
    case .badEvent(_, let error): "bad event: \(error)"
    case .badSubmission(_, let error): "bad event: \(error)"
    case .badFilter(_, let error): "bad filter: \(error)"
    }
  }
}
