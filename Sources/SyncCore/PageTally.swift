public import Nostr

/// What one page of history held, as far as the walk needs to know; the events themselves have
/// already gone on to the log. Everything that was received counts, believed or not.
public struct PageTally: Sendable, Hashable {
  /// Events whose id and signature were checked and that the filter asked for.
  public private(set) var verified = 0
  /// Events that the filter asked for by what they say of themselves, and that are not what they say.
  public private(set) var invalid = 0
  /// EVENT frames whose event could not be read.
  public private(set) var unreadable = 0
  /// Events that match but for a date after the `until` asked.
  public private(set) var aboveUntil = 0
  /// Events that match but for a date before the `since` asked.
  public private(set) var belowSince = 0
  public private(set) var oldestVerified: Timestamp?
  public private(set) var newestVerified: Timestamp?
  public private(set) var oldestInvalid: Timestamp?
  /// Whether the verified events came with dates that never rise.
  public private(set) var isNewestFirst = true
  /// The last verified event delivered in order.
  public private(set) var last: EventPosition?
  /// The verified ids, kept only for a request of a single second.
  public private(set) var ids: [EventID] = []
  /// The verified ids of the newest and of the oldest second.
  private var newestIDs: [EventID] = []
  private var oldestIDs: [EventID] = []
  private let keepsIDs: Bool
  private let liveFrom: Timestamp?

  /// - Parameter liveFrom: Events from here on may be live ones that arrive amid the stored ones;
  ///   they say nothing about the order.
  public init(keepsIDs: Bool = false, liveFrom: Timestamp? = nil) {
    self.keepsIDs = keepsIDs
    self.liveFrom = liveFrom
  }

  /// How many events the relay delivered for this request, of whatever worth.
  public var delivered: Int { verified + invalid + unreadable + aboveUntil + belowSince }

  public mutating func addVerified(_ position: EventPosition) {
    verified += 1
    noteEnds(position)
    if keepsIDs { ids.append(position.id) }
    if let liveFrom, position.createdAt >= liveFrom, last != nil { return }
    if let last, position.createdAt > last.createdAt { isNewestFirst = false }
    last = position
  }

  private mutating func noteEnds(_ position: EventPosition) {
    let date = position.createdAt
    if oldestVerified.map({ date < $0 }) ?? true { (oldestVerified, oldestIDs) = (date, []) }
    if date == oldestVerified { oldestIDs.append(position.id) }
    if newestVerified.map({ date > $0 }) ?? true { (newestVerified, newestIDs) = (date, []) }
    if date == newestVerified { newestIDs.append(position.id) }
  }

  /// The verified ids of a second, where it is the newest or the oldest of the page.
  public func ids(at second: Timestamp) -> [EventID] {
    if second == newestVerified { return newestIDs }
    return second == oldestVerified ? oldestIDs : []
  }

  public mutating func addInvalid(_ claimed: Timestamp) {
    invalid += 1
    oldestInvalid = min(oldestInvalid ?? claimed, claimed)
  }

  public mutating func addUnreadable() { unreadable += 1 }

  public mutating func addAboveUntil() { aboveUntil += 1 }

  public mutating func addBelowSince() { belowSince += 1 }
}

/// How a request for stored events came to its end.
public enum PageEnd: Sendable, Hashable {
  /// The relay's own EOSE: the only end that proves anything.
  case complete(EndHint)
  /// The relay refused, by CLOSED or by a NOTICE that can mean nothing else.
  case refused(Text)
  /// No EOSE came while nothing of the request came either.
  case timedOut
  case disconnected
  /// The engine itself gave up, as at a stop.
  case cancelled

  /// NIP-67's word about whether there is more.
  public enum EndHint: Sendable, Hashable {
    case none, finish, more

    public init(_ hints: [Text]) {
      if hints.contains("finish") {
        self = .finish
      } else {
        self = hints.contains("more") ? .more : .none
      }
    }
  }
}
