public import Nostr
public import SyncCore

/// How the engine works.
public struct EngineOptions: Sendable {
  public var limits = Limits()
  /// Nothing is ever published.
  public var isReadOnly = false
  /// Whether messages may get a new date where their own is outside the relay's window.
  public var isRedating = true
  /// Which groups are followed live; nil follows every group that is known.
  public var groups: [Text]?
  /// Follows everything the relay serves by one feed without kinds.
  public var isEverything = false
  /// Starts without connecting; `goOnline` connects.
  public var isOffline = false

  public init() {}
}

/// Where one relay stands.
public struct RelayStatus: Sendable, Hashable {
  public let url: RelayURL
  public let state: ConnectionState
  /// Since when it has been in this state.
  public let since: Timestamp
  /// Whether it has answered in this run: it was ready once, or refused the key.
  public let wasReached: Bool
  public let lastError: Text?
  public let isAuthenticated: Bool
  public let information: RelayInformation?
  public let faults: PeerFaults
  /// By name, in the order in which they are asked for.
  public let subscriptions: [SubscriptionStatus]
  /// Whether everything wanted was reconciled since this connection was made.
  public let isCaughtUp: Bool
  /// Why the last attempt to catch up left something unread, where it did.
  public let unsettled: Text?
  /// What the relay said last in a NOTICE.
  public let notice: Text?
  /// A key that the relay names as its own now and that was not accepted.
  public let offeredSelf: PublicKey?
  /// When something of it was last heard on this connection.
  public let heardAt: Timestamp?
  /// By how many seconds its clock is ahead of ours, where it told.
  public let clockSkew: Int64?
  /// How many frames a second it is sent at most, as far as it has taught.
  public let frameRate: Double
  /// Why it counts as not reached; nil where it is connected and not mute.
  public let whyUnreached: Text?

  /// Whether the clocks differ so much that people want to know.
  public var isSkewed: Bool { Self.isSkewed(by: clockSkew ?? 0) }

  /// Whether so many seconds make a relay refuse answers to its challenges.
  public static func isSkewed(by seconds: Int64) -> Bool {
    seconds.magnitude > Limits().authSkewMax
  }

  /// Whether every wanted feed is live, or cannot be, and all of it caught up.
  public var isLive: Bool {
    state == .ready && isCaughtUp
      && subscriptions.allSatisfy { feed in
        switch feed.state {
        case .live, .refused, .parked: true
        case .wanted, .asked: false
        }
      }
  }

  public func count(where isCounted: (SubscriptionState) -> Bool) -> Int {
    subscriptions.count { isCounted($0.state) }
  }
}

extension ConnectionState {
  /// Whether only a relay that is there and has answered brings a connection here.
  var isAnswer: Bool {
    switch self {
    case .ready, .refused: true
    case .stopped, .suspended, .connecting, .authenticating, .backingOff: false
    }
  }
}

/// Where one wanted feed stands.
public struct SubscriptionStatus: Sendable, Hashable {
  public let name: Text
  public let state: SubscriptionState
}

/// What the engine is doing.
public struct EngineStatus: Sendable, Hashable {
  public let isOnline: Bool
  public let relays: [RelayStatus]
  /// Messages not sent, by state.
  public let outbox: [DeliveryState: Int]
  public let progress: SyncProgress

  /// Whether one relay at least has every wanted feed live, or as far as it can be, and all of it
  /// caught up: the relays of a community are replicas, and reading takes any of them.
  public var isLive: Bool { isOnline && relays.contains(where: \.isLive) }
}

/// Something that a view may want to look at again.
public enum EngineChange: Sendable, Hashable {
  /// The log has grown up to here.
  case log(LogSequence)
  case relay(RelayURL)
  case outbox
  case progress(SyncProgress)
}

/// How a wait ended.
public enum WaitOutcome: Sendable, Hashable {
  case reached
  case timedOut
  /// It cannot be reached, and why.
  case impossible(Text)
}
