public import Nostr

/// Reads everything that one relay holds for one filter, newest first, and says what that proves.
///
/// It decides which page to ask next, what a page proves, and when the end is reached. It does not
/// ask, verify or store; it does not know the local copy, because possession proves nothing.
///
/// * A page proves the span from just after its oldest second up to the `until` that was asked; its
///   oldest second only once a later request has exhausted it.
/// * `until` is inclusive and comes from verified events. When a page brings nothing older than its
///   cursor, that second is asked for alone; it is exhausted if it then delivers fewer than the
///   largest delivery seen, because the relay has shown that it would have delivered more.
/// * Not every relay counts the second of `until`, or all of it, so one second more is asked than is
///   needed; only where that second fills a page by itself, it is left out.
/// * Not every relay counts the second of `since` either: where a second asked for alone lacks what
///   was shown of it, one second more is asked there too.
/// * A filter without any condition is asked again with both bounds where it brings nothing: some
///   relays take it for one that matches nothing.
/// * An event that arrives while a page is read comes amid the stored ones, or after the last of
///   them, with any date: it must not pass for the page's end. What the relay had served before a
///   page was asked for is no such arrival. The most of that in one answer is what the relay is
///   known to give in a page, and a page of no more than that ends with a stored event, or with
///   everything. A larger page is asked for again, and proves down to the oldest event known before.
/// * An event that is not what it says leaves the seconds in doubt in which the genuine one would
///   stand; the rest of its page is proved.
/// * Only an empty page ends a leg, or NIP-67's `finish`. No count is ever compared with the limit
///   that was asked for: relays cap below it.
/// * A second as large as the largest delivery may be one that the relay has cut. Where nothing else
///   reads it, the relay is asked for a few events of any kind: if it gives more of those, twice, it
///   would have given more of the second.
/// * A second that cannot be exhausted is a gap, and the walk goes on below it.
/// * Where connections end amid answers, smaller ones are asked for; where none comes to its end, the
///   walk is given up.
///
/// Invariant: each request either ends the leg, moves the cursor down, or is one of a bounded
/// number of attempts at the same place; so the walk ends.
public struct HistoryWalk: Sendable {
  /// A closed span to walk; without `to`, from the newest event on.
  public struct Leg: Sendable, Hashable {
    public let from: Timestamp
    public let to: Timestamp?

    public init(from: Timestamp = 0, to: Timestamp? = nil) {
      self.from = max(from, 0)
      self.to = to
    }
  }

  public struct Options: Sendable, Hashable {
    public var pageLimit: Int
    /// The limit asked where a second is asked for alone.
    public var secondLimit: Int
    /// Whether the relay pages inside a second by `before_id`.
    public var hasKeysetCursor: Bool
    /// Whether the caller can reconcile one second by NIP-77 (`Step.reconcile`).
    public var hasNegentropy: Bool
    /// The most that this relay was seen to give in one page, to any walk of this round.
    public var pageShown: Int
    public var limits: Limits

    public init(
      limits: Limits, information: RelayInformation? = nil, hasNegentropy: Bool = false,
      pageShown: Int = 0
    ) {
      pageLimit = max(1, min(limits.pageLimit, information?.limitMax ?? limits.pageLimit))
      secondLimit = max(pageLimit, min(information?.limitMax ?? pageLimit * 10, pageLimit * 20))
      hasKeysetCursor = information?.hasKeysetCursor ?? false
      self.hasNegentropy = hasNegentropy
      self.pageShown = pageShown
      self.limits = limits
    }
  }

  public struct Request: Sendable, Hashable {
    public let filter: Filter
    /// Buzz's keyset cursor, sent beside `until`.
    public let beforeID: EventID?
    /// What the relay has served at this place before.
    let known: Set<EventID>
    /// Whether it only shows how much the relay gives; its events are nobody's wish.
    public let isGauge: Bool

    public init(filter: Filter, beforeID: EventID? = nil) {
      self.init(filter: filter, beforeID: beforeID, known: [])
    }

    init(filter: Filter, beforeID: EventID?, known: Set<EventID>, isGauge: Bool = false) {
      self.filter = filter
      self.beforeID = beforeID
      self.known = known
      self.isGauge = isGauge
    }

    /// An empty tally for the page of this request.
    ///
    /// - Parameter now: The wall time of asking.
    public func tally(now: Timestamp) -> PageTally {
      let isHead = filter.until.map { $0 > now } ?? true
      return PageTally(known: known, liveFrom: isHead ? now - 60 : nil)
    }
  }

  public enum Step: Sendable, Hashable {
    case ask(Request)
    /// Reconcile this one second by NIP-77 and report with `reconciled`.
    case reconcile(Timestamp)
    case ended(End)
  }

  /// Why the walk is over; only `drained` means that all of it was read.
  public enum End: Sendable, Hashable {
    case drained
    case unpageable(Text)
    case refused(Text)
    case timedOut
    case disconnected
    case unreadable
    case cancelled

    /// For people.
    public var words: Text {
      switch self {
      case .drained: "read to the end"
      case .unpageable(let why), .refused(let why): why
      case .timedOut: "the relay did not answer in time"
      case .disconnected: "the connection was lost"
      case .unreadable: "the relay sent what cannot be read"
      case .cancelled: "stopped before the end"
      }
    }
  }

  public struct Span: Sendable, Hashable {
    public let from: Timestamp
    public let to: Timestamp

    public init(from: Timestamp, to: Timestamp) {
      self.from = from
      self.to = to
    }
  }

  public struct Gap: Sendable, Hashable {
    public let span: Span
    public let why: Text

    public init(span: Span, why: Text) {
      self.span = span
      self.why = why
    }
  }

  /// What one answer taught: to be written with the events of that answer.
  public struct Findings: Sendable, Hashable {
    public var proofs: [Span] = []
    public var gaps: [Gap] = []

    public init() {}
  }

  enum Phase: Hashable {
    case page
    /// Before the newest page is asked for again: whether the relay counts `until` at all.
    case probe(Timestamp)
    case second
    case negentropy
    case keyset(after: EventID, pages: Int)
    /// Whether the relay gives more than so many events in a page.
    case gauge(Int)
  }

  let scope: Filter
  var options: Options
  /// Newest first; the first is being walked.
  var legs: [Leg]
  /// The `until` to ask next; nil at the head of a leg that has no upper end.
  var cursor: Timestamp?
  /// Whether the relay has served an event of the cursor's second in this walk.
  var isCursorServed = false
  /// What the relay has shown of the cursor's second.
  var shownAtCursor: Set<EventID> = []
  /// Whether the relay has left out at `since` what it had shown.
  var isSinceShort = false
  /// Whether the second above the cursor fills a page by itself.
  var isNeighbourDense = false
  /// Whether both bounds are spelled out, also where they exclude nothing.
  var hasBothBounds = false
  var phase = Phase.page
  /// The wall time of the last request: as of then its findings are proved.
  public internal(set) var askedAt: Timestamp = 0
  /// The ids received in the second that is being paged by keyset.
  var seenInSecond: Set<EventID> = []
  /// Whether a page of that second brought an event that is not what it says.
  var isSecondInDoubt = false
  /// The last of them in the relay's own order.
  var keysetStart: EventID?
  /// How many events the relay gave of a second that is asked for alone.
  var secondDelivered = 0
  /// Whether the relay did not give more of other events either.
  var isGaugeFutile = false
  var attempts = 0
  var interruptions = Interruptions(answerLeast: 2)
  /// Whether the cursor's second was asked for whole although larger answers were cut off.
  var isSecondAskedWhole = false
  /// What the relay has served at the cursor before the next request, and how often it was asked.
  var known: Set<EventID> = []
  var looks = 0
  var limitAsked = 0
  /// Whether the relay gives more than the limit that is asked.
  var isLimitIgnored = false
  /// The most events of one answer that the relay had served before: so many it does give in a page.
  public internal(set) var pageShown: Int
  public internal(set) var end: End?

  /// - Parameters:
  ///   - scope: The filter without time bounds.
  ///   - legs: Newest first and apart from one another.
  public init(_ scope: Filter, legs: [Leg] = [Leg()], options: Options) {
    var bare = scope
    bare.since = nil
    bare.until = nil
    bare.limit = nil
    self.scope = bare
    self.legs = legs
    self.options = options
    pageShown = options.pageShown
    cursor = legs.first?.to
    if legs.isEmpty { end = .drained }
  }

  /// The newest second that the walk is to bring, where it has an upper end. A page may go one second
  /// beyond it.
  public var ceiling: Timestamp? { legs.first?.to }

  /// The oldest second that the walk is to bring. A page may go one second below it.
  public var floor: Timestamp { legs.last?.from ?? 0 }

  /// What to do next; the same again where the last answer taught nothing.
  public mutating func next(now: Timestamp) -> Step {
    if let end { return .ended(end) }
    guard let leg = legs.first else {
      end = .drained
      return .ended(.drained)
    }
    askedAt = now
    var filter = scope
    var beforeID: EventID?
    filter.limit = min(options.pageLimit, interruptions.answerMax)
    switch phase {
    case .page:
      filter.since = leg.from > 0 || hasBothBounds ? sinceAsked(leg.from) : nil
      filter.until = cursor.map(untilAsked) ?? (hasBothBounds ? Self.untilLast : nil)
    case .probe(let second):
      filter.since = leg.from > 0 || hasBothBounds ? sinceAsked(leg.from) : nil
      filter.until = untilAsked(second)
      filter.limit = 1
    case .second:
      filter.since = cursor.map(sinceAsked)
      filter.until = cursor.map(untilAsked)
      filter.limit = secondLimit
    case .keyset(let after, _):
      filter.since = cursor.map(sinceAsked)
      filter.until = cursor
      filter.limit = secondLimit
      beforeID = after
    case .gauge(let count):
      limitAsked = count + 1
      let filter = Filter(kinds: Self.gaugeKinds, limit: count + 1)
      return .ask(Request(filter: filter, beforeID: nil, known: known, isGauge: true))
    case .negentropy: return .reconcile(cursor ?? 0)
    }
    limitAsked = filter.limit ?? 0
    return .ask(Request(filter: filter, beforeID: beforeID, known: known))
  }

  private var secondLimit: Int { min(options.secondLimit, interruptions.answerMax) }

  func untilAsked(_ second: Timestamp) -> Timestamp {
    isNeighbourDense ? second : second + 1
  }

  /// A `since` of 0 would be no bound to some relays.
  private func sinceAsked(_ second: Timestamp) -> Timestamp {
    isSinceShort && second > 1 ? second - 1 : second
  }

  /// Of these a relay that has anything has most.
  private static let gaugeKinds: [EventKind] = [
    .groupMetadata, .groupAdmins, .groupMembers, .profile, .message, .note, .reaction,
  ]

  /// The end of 2037: as late as the relays that need an `until` still read one.
  private static let untilLast: Timestamp = 2_145_916_799

  /// Takes the answer to the request of the last `next`.
  public mutating func received(_ page: PageTally, _ pageEnd: PageEnd) -> Findings {
    guard end == nil else { return Findings() }
    // Also a page that did not come to its end shows what the relay gives.
    pageShown = max(pageShown, page.knownCount)
    if page.knownCount > limitAsked { isLimitIgnored = true }
    if case .complete = pageEnd { interruptions.answered() }
    if case .gauge(let count) = phase, pageEnd != .disconnected {
      return gauged(page, pageEnd, count)
    }
    switch pageEnd {
    case .complete(let hint): return complete(page, hint)
    case .refused(let text), .noticed(let text):
      if asksLess(after: text) { return Findings() }
      return stop(.refused(text))
    case .timedOut:
      attempts += 1
      guard attempts >= options.limits.walkRetriesMax else { return Findings() }
      return stop(.timedOut)
    case .disconnected: return interrupted(page)
    case .cancelled: return stop(.cancelled)
    }
  }

  /// An answer was cut off: it is asked for again, or in smaller parts, a bounded number of times.
  private mutating func interrupted(_ page: PageTally) -> Findings {
    interruptions.cutOff(after: page.delivered, of: limitAsked)
    guard interruptions.inRow < options.limits.walkDisconnectsMax else {
      return stop(.disconnected)
    }
    if case .gauge(let count) = phase, interruptions.answerMax <= count {
      // So much is not asked for any more.
      return gaugeEnded()
    }
    return Findings()
  }

  /// Takes the outcome of `Step.reconcile`.
  public mutating func reconciled(_ isProved: Bool) -> Findings {
    guard case .negentropy = phase, let second = cursor else { return Findings() }
    if isProved { return exhausted(second) }
    return pageByKeyset(second)
  }

  /// Ends the walk; what it had not reached becomes a gap.
  ///
  /// - Parameter why: What is said of that, where the reason does not say it.
  public mutating func stop(_ reason: End, why: Text? = nil) -> Findings {
    guard end == nil else { return Findings() }
    end = reason
    let why = why ?? reason.words
    var findings = Findings()
    for (index, leg) in legs.enumerated() {
      let upper = index == 0 ? cursor ?? leg.to ?? askedAt : leg.to ?? askedAt
      guard leg.from <= upper else { continue }
      findings.gaps.append(Gap(span: Span(from: leg.from, to: upper), why: why))
    }
    return findings
  }

  /// A relay that refuses a large `limit` instead of capping it is asked for less, once.
  private mutating func asksLess(after text: Text) -> Bool {
    if case .rateLimited = RefusalClass(text) { return false }
    guard text.string.lowercased().contains("limit") else { return false }
    if phase != .page, options.secondLimit > options.pageLimit {
      options.secondLimit = options.pageLimit
      return true
    }
    guard options.pageLimit > 100 else { return false }
    options.pageLimit = 100
    options.secondLimit = 100
    return true
  }
}
