public import EventLog
public import Nostr
public import SyncCore

/// What one run did, in the words of the command line's summary.
public struct SyncSummary: Sendable, Hashable {
  public var stored = 0
  public var duplicates = 0
  /// By reason.
  public var rejected: [String: Int] = [:]
  public var sent = 0
  public var queued = 0
  public var failed = 0
  /// Whether every span that was asked for is proved at every relay that was asked.
  public var isComplete = true
  public var gaps: [CoverageGap] = []
  public var viaNegentropy = 0
  public var viaPaging = 0
  /// The relays that were reached, and what became of those that were not.
  public var relays: [RelayURL: Text?] = [:]

  public init() {}

  /// What a run that was stopped had done until then.
  public init(_ progress: SyncProgress) {
    stored = progress.stored
    duplicates = progress.duplicates
    rejected = progress.rejected
    viaNegentropy = progress.viaNegentropy
    viaPaging = progress.viaPaging
  }
}

/// How far a run has come.
public struct SyncProgress: Sendable, Hashable {
  public internal(set) var stored = 0
  public internal(set) var duplicates = 0
  /// By reason.
  public internal(set) var rejected: [String: Int] = [:]
  public internal(set) var viaNegentropy = 0
  public internal(set) var viaPaging = 0
  public internal(set) var received = 0
  public internal(set) var scopesDone = 0
  public internal(set) var scopesKnown = 0
  public internal(set) var pages = 0

  public init() {}
}

/// Why a run came to nothing.
public enum EngineError: Error, Sendable, CustomStringConvertible {
  /// No relay could be reached in time; each with the last thing that went wrong.
  case noRelayReached([(relay: RelayURL, why: Text)])
  /// The community has no relay.
  case noRelay
  /// The relay serves only those who say who they are, and there is no key to do so.
  case keyNeeded(RelayURL, Text)
  /// Writing needs a key.
  case noKey
  case signing(String)
  /// The store failed: what was committed before stays.
  case store(LogError)
  case outboxFull(Int)
  case unknownMessage(MessageID)
  /// A relay has the message, so it cannot be given up any more.
  case alreadySent(MessageID)
  /// The version that it would replace is dated too far ahead of the clock for another to follow.
  case versionAhead(Timestamp)
  case stopped

  public var description: String {
    switch self {
    case .noRelayReached(let relays):
      "no relay could be reached: "
        + relays.map { "\($0.relay): \($0.why)" }.joined(separator: "; ")
    case .noRelay: "the community has no relay; add one first"
    case .keyNeeded(let relay, let why):
      "\(relay) asks who you are (\(why)) and there is no key: make one, or use a throwaway key"
    case .noKey: "writing needs a key: make one first"
    case .signing(let why): why
    case .store(let error): error.description
    case .outboxFull(let count): "\(count) messages already wait to be sent; send or discard some"
    case .unknownMessage(let id): "there is no message \(id) in the outbox"
    case .alreadySent(let id): LogError.alreadySent(id.description).description
    case .versionAhead(let date):
      "there is a version of this dated \(date), too far ahead of the clock for a new one to follow "
        + "it: check the clock; nothing was written"
    case .stopped: "stopped"
    }
  }
}
