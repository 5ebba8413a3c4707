public import Nostr

/// A relay's NIP-11 document: hints only. What the relay answers on the socket is what counts.
public struct RelayInformation: Sendable, Hashable {
  public var name: Text?
  public var software: Text?
  public var version: Text?
  /// The key that signs this relay's group state (NIP-29).
  public var selfKey: PublicKey?
  public var supportedNIPs: [Int] = []
  public var supportedExtensions: [Text] = []
  public var authRequired: Bool?
  public var restrictedWrites: Bool?
  public var subscriptionsMax: Int?
  public var filtersMax: Int?
  /// The largest `limit` of a filter that the relay says it honours.
  public var limitMax: Int?
  public var messageBytesMax: Int?
  public var subscriptionIDBytesMax: Int?
  /// How many seconds in the past an event's date may lie.
  public var createdAtLowerLimit: Int64?
  public var createdAtUpperLimit: Int64?

  public init() {}

  /// - Parameter document: Nil unless it is a JSON object; fields of a wrong type are left out.
  public init?(document: [UInt8]) {
    // Why the document does not parse makes no difference: the relay then gives no hints.
    guard let value = try? JSONValue.parse(document) else { return nil }
    self.init(value)
  }

  public init?(_ value: JSONValue) {
    guard value.members != nil else { return nil }
    name = value["name"]?.string
    software = value["software"]?.string
    version = value["version"]?.string
    selfKey = value["self"]?.string.flatMap { PublicKey(hex: $0.string) }
    supportedNIPs = (value["supported_nips"]?.array ?? []).compactMap { $0.int }
      .compactMap { Int(exactly: $0) }
    supportedExtensions = Self.extensions(value["supported_extensions"])
    guard let limitation = value["limitation"] else { return }
    authRequired = limitation["auth_required"]?.bool
    restrictedWrites = limitation["restricted_writes"]?.bool
    subscriptionsMax = Self.count(limitation["max_subscriptions"])
    filtersMax = Self.count(limitation["max_filters"])
    limitMax = Self.count(limitation["max_limit"])
    messageBytesMax = Self.count(limitation["max_message_length"])
    subscriptionIDBytesMax = Self.count(limitation["max_subid_length"])
    createdAtLowerLimit = limitation["created_at_lower_limit"]?.int.flatMap { $0 > 0 ? $0 : nil }
    createdAtUpperLimit = limitation["created_at_upper_limit"]?.int.flatMap { $0 > 0 ? $0 : nil }
  }

  /// Buzz's software, which may only switch extras on.
  public var isBuzz: Bool { software == "https://github.com/block/buzz" }

  /// Whether a filter may carry `before_id` beside `until`, to page inside one second.
  public var hasKeysetCursor: Bool { isBuzz || supportedExtensions.contains("before_id") }

  /// Whether windows of a channel may be asked for by `POST /query` (NIP-CW).
  public var hasChannelWindows: Bool { isBuzz || supportedExtensions.contains("channel_window") }

  /// How far in the past an event's date may lie; nil where no limit is known.
  public var dateWindow: Int64? { isBuzz ? 900 : createdAtLowerLimit }

  /// Whether the document says that no challenge will come before one is needed.
  public var neverChallenges: Bool {
    if let authRequired { return !authRequired }
    return !supportedNIPs.isEmpty && !supportedNIPs.contains(42)
  }

  private static func count(_ value: JSONValue?) -> Int? {
    guard let number = value?.int, number > 0 else { return nil }
    return Int(exactly: number)
  }

  /// A list of names, or an object keyed by them: both are in use.
  private static func extensions(_ value: JSONValue?) -> [Text] {
    if let list = value?.array { return list.compactMap(\.string) }
    return value?.members?.map(\.0) ?? []
  }
}
