public import Nostr

/// Brings over by NIP-77 what one relay holds for one filter, and says what that proves.
///
/// It decides which window of time is compared next, what a session's outcome means, which missing
/// events are asked for together, and when a window is proved. It does not compare, ask, verify or
/// store, and it does not know the local copy.
///
/// * A window is proved by a session that ran to its end once every event that it found missing was
///   delivered. An event that is listed and not delivered keeps the window unproven: it is compared
///   once more, because the event may be gone by now, and then it is a gap. Where an event came that
///   is not what was listed, only its second is a gap, as in a page.
/// * Windows are split only where one is refused for its size or holds more than is compared at
///   once, and never below one second. Windows that were split share a second at each cut, because
///   not every relay counts the second of a bound.
/// * Where connections end amid sessions or requests, less is compared and asked for at once; where
///   none comes to its end, all is left.
/// * What cannot be compared is left over for a walk by pages, whatever the reason.
///
/// Invariant: each outcome ends a window, splits one, or is one of a bounded number of attempts at
/// it; a run of refused openings is bounded; so it ends.
public struct ReconciliationMachine: Sendable {
  public struct Options: Sendable, Hashable {
    /// Nothing that the relay shows must be older or newer than this.
    public var floor: Timestamp
    public var ceiling: Timestamp?
    /// Whether a session in which the relay shows no event at all proves nothing: it may not be
    /// served to us.
    public var needsSight: Bool
    public var limits: Limits

    public init(
      limits: Limits, floor: Timestamp = 0, ceiling: Timestamp? = nil, needsSight: Bool = false
    ) {
      self.floor = max(floor, 0)
      self.ceiling = ceiling
      self.needsSight = needsSight
      self.limits = limits
    }
  }

  public enum Step: Sendable, Hashable {
    /// Compare everything that matches, and report with `compared`.
    case compare(Filter)
    /// Ask for these events, and report with `fetched`.
    case fetch([EventID])
    /// What is left to be walked by pages, newest first.
    case ended([HistoryWalk.Leg])
  }

  /// What came of a session.
  public enum Comparison: Sendable, Hashable {
    /// - Parameters:
    ///   - missing: What the relay has and the log lacks.
    ///   - isSeen: Whether the relay showed that it holds any event.
    ///   - isWhole: Whether the session ran to its end.
    case done(missing: [EventID], isSeen: Bool, isWhole: Bool)
    /// The local copy has more than is compared at once; there, half of it lies on either side.
    case tooManyHere(middle: Timestamp)
    /// The relay refused for the size of what it has. Where the local copy has a good part of it,
    /// its middle is a better place to cut than the middle of the time.
    case tooManyThere(middle: Timestamp?)
    /// The connection ended amid the session; the middle as above.
    case cutOff(middle: Timestamp?)
    case ended(NegotiationEnd)
  }

  private struct Window: Hashable {
    let from: Timestamp
    let to: Timestamp?
    /// Whether the seconds beside it are left out.
    var isExact = false
  }

  private enum Phase: Hashable {
    case comparing
    case fetching(isWhole: Bool)
  }

  private let scope: Filter
  private let options: Options
  /// Newest first; the first is being worked on.
  private var windows: [Window]
  private var left: [HistoryWalk.Leg] = []
  private var phase = Phase.comparing
  /// The wall time of the last comparison: as of then its findings are proved.
  public private(set) var askedAt: Timestamp = 0
  private var pending: [EventID] = []
  private var lost = 0
  /// Where events came that are not what was listed.
  private var doubts: [PageTally.Doubt] = []
  /// Whether the window was compared again for what was not delivered.
  private var isSecondLook = false
  private var hasProgress = false
  private var attempts = 0
  private var refusals = 0
  private var idsMax: Int
  private var interruptions = Interruptions(answerLeast: 1)
  /// Why something was left over, the last time.
  public private(set) var refusal: NegotiationRefusal?
  /// Whether it was given up because no connection lasted.
  public private(set) var isLost = false

  /// - Parameter windows: Newest first and apart from one another.
  public init(_ scope: Filter, windows: [HistoryWalk.Leg], options: Options) {
    var bare = scope
    bare.since = nil
    bare.until = nil
    bare.limit = nil
    self.scope = bare
    self.windows = windows.map { Window(from: $0.from, to: $0.to) }
    self.options = options
    idsMax = options.limits.idsPerRequest * options.limits.idRequestsAtOnce
  }

  /// What to do next; the same again where the last report taught nothing.
  public mutating func next(now: Timestamp) -> Step {
    guard let window = windows.first else { return .ended(left) }
    switch phase {
    case .comparing:
      askedAt = now
      return .compare(filter(of: window))
    case .fetching: return .fetch(Array(pending.prefix(idsAsked)))
    }
  }

  /// How many events are asked for together.
  private var idsAsked: Int { min(idsMax, interruptions.answerMax) }

  private func filter(of window: Window) -> Filter {
    var filter = scope
    let margin: Int64 = window.isExact ? 0 : 1
    let from = max(window.from - margin, options.floor)
    filter.since = from > 0 ? from : nil
    filter.until = window.to.map { min($0 + margin, options.ceiling ?? Timestamp(.max)) }
    return filter
  }

  // MARK: Comparing

  public mutating func compared(_ comparison: Comparison) -> HistoryWalk.Findings {
    guard phase == .comparing, let window = windows.first else { return .init() }
    switch comparison {
    case .done(let missing, let isSeen, let isWhole):
      refusals = 0
      attempts = 0
      interruptions.answered()
      if options.needsSight, !isSeen { return leave() }
      if missing.isEmpty {
        // A part that brings nothing says nothing about the rest.
        return isWhole ? settle(window) : split(window, at: nil)
      }
      pending = missing
      lost = 0
      hasProgress = false
      phase = .fetching(isWhole: isWhole)
      return .init()
    case .tooManyHere(let middle): return split(window, at: middle)
    case .tooManyThere(let middle): return tooMany(window, middle)
    case .ended(.refused(let refusal)): return refused(window, refusal)
    case .cutOff(let middle):
      if interrupted(after: 0) { return leaveAll() }
      return interruptions.inRow > 1 ? split(window, at: middle) : .init()
    case .ended(.disconnected): return compared(.cutOff(middle: nil))
    case .ended(.cancelled): return leaveAll()
    }
  }

  private mutating func refused(
    _ window: Window, _ refusal: NegotiationRefusal
  ) -> HistoryWalk.Findings {
    self.refusal = refusal
    switch refusal {
    case .tooMany: return tooMany(window, nil)
    case .unsupported, .silent: return leaveAll()
    case .failed: return tryAgain(atMost: options.limits.reconcileAttemptsMax)
    }
  }

  private mutating func tooMany(
    _ window: Window, _ middle: Timestamp?
  ) -> HistoryWalk.Findings {
    refusals += 1
    // A relay that refuses everything for its size would be asked second by second.
    if refusals >= options.limits.reconcileRefusalsMax { return leaveAll() }
    return split(window, at: middle)
  }

  /// Cuts a window in two; one second alone is compared without its neighbours, and then left.
  private mutating func split(_ window: Window, at middle: Timestamp?) -> HistoryWalk.Findings {
    let upper = window.to ?? askedAt
    guard window.from < upper else {
      guard window.to != nil, !window.isExact else { return leave() }
      windows[0].isExact = true
      return .init()
    }
    let half = window.from + (upper.seconds - window.from.seconds) / 2
    let cut = min(max(middle ?? half, window.from), upper - 1)
    windows[0] = Window(from: cut + 1, to: window.to)
    windows.insert(Window(from: window.from, to: cut), at: 1)
    begin()
    return .init()
  }

  // MARK: Fetching

  /// Takes what came of asking for the ids of the last `next`.
  ///
  /// - Parameters:
  ///   - delivered: The ids that came, believed or not.
  ///   - doubts: What the pages left in doubt of that.
  ///   - end: How the requests ended: the worst of them.
  public mutating func fetched(
    _ delivered: Set<EventID>, doubts: [PageTally.Doubt] = [], _ end: PageEnd
  ) -> HistoryWalk.Findings {
    guard case .fetching(let isWhole) = phase, let window = windows.first else { return .init() }
    let asked = pending.prefix(idsAsked)
    let rest = pending.dropFirst(idsAsked)
    let absent = asked.filter { !delivered.contains($0) }
    let hasDelivered = absent.count < asked.count
    hasProgress = hasProgress || hasDelivered
    self.doubts += doubts
    if case .complete = end { interruptions.answered() }
    switch end {
    case .complete where hasDelivered: pending = Array(rest) + absent
    case .complete:
      lost += absent.count
      pending = Array(rest)
    case .refused where !hasDelivered, .noticed where !hasDelivered:
      // Perhaps it takes fewer ids at once.
      if idsMax == 1 { return leave() }
      idsMax = max(1, idsMax / 4)
      return .init()
    case .refused, .noticed: pending = Array(rest) + absent
    case .timedOut, .disconnected:
      // What came is here; that a request was cut off is no progress all the same.
      pending = Array(rest) + absent
      if interrupted(after: asked.count - absent.count) { return leaveAll() }
    case .cancelled: return leaveAll()
    }
    return pending.isEmpty ? drained(window, isWhole) : .init()
  }

  private mutating func drained(_ window: Window, _ isWhole: Bool) -> HistoryWalk.Findings {
    phase = .comparing
    if lost == 0, isWhole { return settle(window) }
    if isWhole || !hasProgress {
      guard isSecondLook else {
        isSecondLook = true
        return .init()
      }
      return keepUnproven(window)
    }
    return .init()
  }

  private mutating func keepUnproven(_ window: Window) -> HistoryWalk.Findings {
    let what = lost == 1 ? "an event" : "\(lost) events"
    var findings = HistoryWalk.Findings()
    if let span = span(of: window) {
      findings.gaps.append(
        .init(span: span, why: Text("the relay lists \(what) and does not deliver")))
    }
    advance()
    return findings
  }

  // MARK: The end of a window

  private mutating func settle(_ window: Window) -> HistoryWalk.Findings {
    let findings = span(of: window).map {
      HistoryWalk.proof(from: $0.from, to: $0.to, doubts: doubts)
    }
    advance()
    return findings ?? .init()
  }

  /// A comparison without an upper end speaks of what was there up to the moment of asking.
  private func span(of window: Window) -> HistoryWalk.Span? {
    let to = min(window.to ?? askedAt, askedAt)
    return window.from <= to ? HistoryWalk.Span(from: window.from, to: to) : nil
  }

  /// - Returns: Whether it is given up.
  private mutating func interrupted(after delivered: Int) -> Bool {
    interruptions.cutOff(after: delivered, of: idsAsked)
    isLost = interruptions.inRow >= options.limits.walkDisconnectsMax
    return isLost
  }

  private mutating func tryAgain(atMost limit: Int) -> HistoryWalk.Findings {
    attempts += 1
    return attempts < limit ? .init() : leave()
  }

  private mutating func leave() -> HistoryWalk.Findings {
    if let window = windows.first {
      left.append(HistoryWalk.Leg(from: window.from, to: window.to))
    }
    advance()
    return .init()
  }

  private mutating func leaveAll() -> HistoryWalk.Findings {
    left += windows.map { HistoryWalk.Leg(from: $0.from, to: $0.to) }
    windows = []
    begin()
    return .init()
  }

  private mutating func advance() {
    windows.removeFirst()
    begin()
  }

  private mutating func begin() {
    phase = .comparing
    pending = []
    lost = 0
    doubts = []
    isSecondLook = false
    attempts = 0
  }
}
