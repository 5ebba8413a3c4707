public import Nostr

/// What one page of history held, as far as the walk needs to know; the events themselves have
/// already gone on to the log. Everything that was received counts, believed or not.
public struct PageTally: Sendable, Hashable {
  /// An event that is not what it says, and the span in which the genuine one would stand.
  public struct Doubt: Sendable, Hashable {
    /// The id that came with it; nil where it could not be read.
    public let id: EventID?
    /// Nil where no verified event came before it.
    public var newest: Timestamp?
    /// Nil where no verified event came after it.
    public var oldest: Timestamp?
  }

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
  public private(set) var oldestInvalid: Timestamp?
  /// Whether the verified events came with dates that never rise.
  public private(set) var isNewestFirst = true
  /// The last verified event delivered in order.
  public private(set) var last: EventPosition?
  /// Events, believed or not, that the relay had served before this page was asked for. They were
  /// stored then, so they cannot be live ones that arrived amid the page.
  public private(set) var knownCount = 0
  /// The oldest verified event of those.
  public private(set) var oldestKnown: Timestamp?
  /// Whether those came with dates that never rise.
  public private(set) var isKnownNewestFirst = true
  /// Whether one of those stands before the `since` asked.
  public private(set) var isKnownBelowSince = false
  /// The last verified one of those.
  public private(set) var lastKnown: EventPosition?
  /// The verified events in the order of their arrival, as far as they are kept.
  public private(set) var positions: [EventPosition] = []
  /// The ids that the other events claim.
  private var claimed: [EventID] = []
  private var doubted: [Doubt] = []
  /// Of those, the ones after which no verified event has come yet.
  private var undated: [Int] = []
  private var dismissed: Set<EventID> = []
  private let known: Set<EventID>
  private let liveFrom: Timestamp?

  /// A page larger than this is told apart from what was known only by its first part.
  private static let positionsMax = 1 << 16

  /// - Parameters:
  ///   - known: The ids that the relay has served before, where the page is asked for again.
  ///   - liveFrom: Events from here on may be live ones that arrive amid the stored ones; they say
  ///     nothing about the order.
  public init(known: Set<EventID> = [], liveFrom: Timestamp? = nil) {
    self.known = known
    self.liveFrom = liveFrom
  }

  /// How many events the relay delivered for this request, of whatever worth.
  public var delivered: Int { verified + invalid + unreadable + aboveUntil + belowSince }

  /// The verified ids.
  public var ids: [EventID] { positions.map(\.id) }

  /// The verified ids of a second.
  public func ids(at second: Timestamp) -> [EventID] {
    positions.filter { $0.createdAt == second }.map(\.id)
  }

  /// Every id that the relay named, rightly or not.
  public var served: [EventID] { ids + claimed }

  /// The ids that came with an event that is not theirs, the genuine one not being on the page.
  public var doubts: [Doubt] {
    guard !doubted.isEmpty else { return [] }
    let genuine = Set(ids).union(dismissed)
    return doubted.filter { doubt in doubt.id.map { !genuine.contains($0) } ?? true }
  }

  /// These ids are no longer in doubt: the genuine events are held.
  public mutating func dismissDoubts(_ ids: Set<EventID>) { dismissed.formUnion(ids) }

  public mutating func addVerified(_ position: EventPosition) {
    verified += 1
    let date = position.createdAt
    oldestVerified = min(oldestVerified ?? date, date)
    if positions.count < Self.positionsMax { positions.append(position) }
    for index in undated { doubted[index].oldest = date }
    undated = []
    noteKnown(position)
    if let liveFrom, date >= liveFrom, last != nil { return }
    if let last, date > last.createdAt { isNewestFirst = false }
    last = position
  }

  private mutating func noteKnown(_ position: EventPosition) {
    guard known.contains(position.id) else { return }
    knownCount += 1
    let date = position.createdAt
    oldestKnown = min(oldestKnown ?? date, date)
    if let lastKnown, date > lastKnown.createdAt { isKnownNewestFirst = false }
    lastKnown = position
  }

  private mutating func noteClaimed(_ id: EventID) -> Bool {
    if claimed.count < Self.positionsMax { claimed.append(id) }
    guard known.contains(id) else { return false }
    knownCount += 1
    return true
  }

  /// - Parameter isDated: Whether the id is that of its content, so that the date is the genuine
  ///   one. Else the date may have been changed with the rest, and only the place in the page tells.
  public mutating func addInvalid(_ position: EventPosition, isDated: Bool) {
    invalid += 1
    let date = position.createdAt
    oldestInvalid = min(oldestInvalid ?? date, date)
    _ = noteClaimed(position.id)
    if isDated, doubted.count < Self.positionsMax {
      doubted.append(Doubt(id: position.id, newest: date, oldest: date))
    } else {
      addUndated(position.id)
    }
  }

  public mutating func addUnreadable() {
    unreadable += 1
    addUndated(nil)
  }

  private mutating func addUndated(_ id: EventID?) {
    if doubted.count >= Self.positionsMax, let full = doubted.last {
      // The last one stands for all that follow: its span goes on down to the next event believed.
      let newest = full.newest.flatMap { newest in last.map { max($0.createdAt, newest) } }
      doubted[doubted.count - 1] = Doubt(id: nil, newest: newest, oldest: nil)
      if undated.last != doubted.count - 1 { undated.append(doubted.count - 1) }
      return
    }
    undated.append(doubted.count)
    doubted.append(Doubt(id: id, newest: last?.createdAt, oldest: nil))
  }

  public mutating func addAboveUntil(_ position: EventPosition) {
    aboveUntil += 1
    _ = noteClaimed(position.id)
  }

  public mutating func addBelowSince(_ position: EventPosition) {
    belowSince += 1
    if noteClaimed(position.id) { isKnownBelowSince = true }
  }
}

/// How a request for stored events came to its end.
public enum PageEnd: Sendable, Hashable {
  /// The relay's own EOSE: the only end that proves anything.
  case complete(EndHint)
  /// The relay refused, by CLOSED.
  case refused(Text)
  /// A NOTICE came that can mean no other request, and nothing else.
  case noticed(Text)
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
