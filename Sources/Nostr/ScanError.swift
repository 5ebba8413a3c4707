/// Why bytes are not an event. Of several reasons the first in the order of these cases is named.
public enum ScanError: Error, Hashable, Sendable {
  /// Not one JSON object as RFC 8259 has it; the offset counts bytes from 0.
  case json(offset: Int, String)
  /// A field is missing, stands there twice or has the wrong type.
  case shape(String)
  /// An id, key or signature is not lowercase hex of the exact length.
  case hex(String)
  /// A number is not a plain integer, or is too large.
  case range(String)
  /// The event's bytes, where they are more than `EventScanner.eventBytesMax`.
  case size(Int)

  /// The one word by which rejects are counted.
  public var reason: String {
    switch self {
    case .json: "json"
    case .shape: "shape"
    case .hex: "hex"
    case .range: "range"
    case .size: "size"
    }
  }

  var rank: Int {
    switch self {
    case .json: 0
    case .shape: 1
    case .hex: 2
    case .range: 3
    case .size: 4
    }
  }
}

extension ScanError: CustomStringConvertible {
  public var description: String { "\(reason): \(detail)" }

  /// What is wrong, without the word that it is counted by.
  public var detail: String {
    switch self {
    case .json(let offset, let why): "\(why) at byte \(offset)"
    case .shape(let why), .hex(let why), .range(let why): why
    case .size(let bytes): "\(bytes) bytes"
    }
  }
}
