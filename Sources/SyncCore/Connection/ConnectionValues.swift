public import Nostr

/// A request for stored events, from asking to its end.
public struct AskID: Hashable, Comparable, Sendable {
  public let number: UInt64

  public init(_ number: UInt64) { self.number = number }

  public static func < (left: AskID, right: AskID) -> Bool { left.number < right.number }
}

/// The lasting name of a wanted subscription; its id on the wire changes with every REQ.
public typealias SubscriptionName = Text

/// Where the connection to one relay stands. Every state that is not an end has a deadline.
public enum ConnectionState: Sendable, Hashable {
  /// Not started, or stopped for good.
  case stopped
  /// Put to rest on purpose; wanted subscriptions are kept.
  case suspended
  case connecting(deadline: Duration)
  /// Open, and not yet known to be usable: before or amid AUTH.
  case authenticating(deadline: Duration)
  case ready
  case backingOff(until: Duration)
  /// The relay will not have this key; only the user can change that.
  case refused(Text)

  /// One word, as `status` prints it.
  public var name: String {
    switch self {
    case .stopped: "stopped"
    case .suspended: "suspended"
    case .connecting: "connecting"
    case .authenticating: "authenticating"
    case .ready: "ready"
    case .backingOff: "backing-off"
    case .refused: "refused"
    }
  }
}

/// How far one wanted subscription has come.
public enum SubscriptionState: Sendable, Hashable {
  /// Wanted, and not asked for on this connection yet.
  case wanted
  /// Asked for; the relay has not said EOSE.
  case asked
  /// The relay's own EOSE was seen on this connection.
  case live
  /// Over until something changes, in the relay's words.
  case refused(Text)
  /// More is wanted than the relay keeps open; it waits for its turn.
  case parked
}

extension ConnectionMachine {
  public enum Input: Sendable {
    case start
    case stop
    case suspend
    /// The machine woke or the network came back.
    case resume
    /// The NIP-11 document; nil when the relay has none.
    case information(RelayInformation?)
    /// By how many seconds the relay's clock is ahead of ours.
    case clock(skew: Int64)
    case opened
    /// Opening failed, or the open connection ended.
    case ended(Text)
    case received(RelayMessage)
    case malformed(FrameError)
    /// A frame without a message: a pong.
    case heard
    case oversized
    case signed(Event, challenge: Text)
    case signingFailed(Text, challenge: Text)
    /// A pinned feed keeps its place where others have to take turns.
    case want(SubscriptionName, [Filter], isPinned: Bool = false)
    case unwant(SubscriptionName)
    /// There is news that a refused feed may be served now.
    case readmit(SubscriptionName)
    /// The feed was found deaf.
    case renew(SubscriptionName)
    case ask(AskID, HistoryWalk.Request)
    case cancel(AskID)
    case publish(Event)
    /// Compare a set by NIP-77: the filter, our first message, and how long the answer may take.
    case negotiate(AskID, Filter, [UInt8], openMax: Duration)
    /// Our answer to the relay's last message of that session.
    case reply(AskID, [UInt8])
    /// That session has served its purpose, or is given up.
    case closeNegotiation(AskID)
    /// Time has reached `deadline`.
    case tick
  }

  public enum Target: Hashable, Sendable {
    case live(SubscriptionName)
    case ask(AskID)
  }

  /// How an event stands to the request that it came for.
  public enum Fit: Hashable, Sendable {
    case inside, aboveUntil, belowSince
  }

  public enum Effect: Hashable, Sendable {
    case open
    /// Close with a handshake, without waiting for it.
    case close
    /// Drop the socket at once.
    case abandon
    case send([UInt8])
    case ping
    case sign(challenge: Text, as: AuthShape = AuthShape())
    /// Read the relay's clock anew; the answer is `Input.clock`.
    case measureClock
    case event(Target, Event, Fit)
    /// An EVENT of this request whose event could not be read.
    case unreadable(Target, ScanError)
    /// The request was asked again under a new id: its page begins anew.
    case restarted(AskID)
    case answered(AskID, PageEnd)
    case subscription(SubscriptionName, SubscriptionState)
    /// A feed is live again that was not for a while on a connection that held: what came
    /// meanwhile has to be asked for.
    case resumed(SubscriptionName)
    case verdict(EventID, accepted: Bool, Text)
    /// No answer will come for this event; where it was handed over, its fate is unknown.
    case unanswered(EventID, isHanded: Bool, Text)
    /// The relay's message in a NIP-77 session; it waits for our reply or the end.
    case negotiated(AskID, [UInt8])
    case negotiationEnded(AskID, NegotiationEnd)
    case state(ConnectionState)
    case notice(Text)
  }
}
