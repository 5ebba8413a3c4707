public import Nostr

/// Reads a channel from its head down by windows of NIP-CW, and says what that proves.
///
/// It decides which window is asked for next, whether an answer can be used, and what of the
/// channel's history was read by it. It does not ask, verify or store. It is an accelerator: what it
/// does not prove is left to a walk by pages, and both end in the same set.
///
/// * A window counts by its bounds, signed by the key that the relay's document names: without them,
///   with two, with those of another request, or with a cursor that does not go on, it ends the run.
/// * Where replies are left out of the rows, a window proves nothing of the channel. One brings what
///   is seen first, and the walk the rest.
/// * Where replies are rows, a window proves its span only if it holds every row that it scanned: as
///   many as were asked for, in order, the last of them where the next begins. A relay may leave out
///   rows that it cannot serve, and its last window is shorter anyway: that one is left to the walk.
/// * A relay that gives fewer rows at once is asked for so many from there on.
///
/// Invariant: each answer ends the run, moves the cursor on, or lowers the limit once at its place.
public struct ChannelWindowMachine: Sendable {
  public enum Step: Sendable, Hashable {
    case ask(ChannelWindowRequest)
    case ended(End)
  }

  public enum End: Sendable, Hashable {
    /// All of the wanted span was read, or there is no more.
    case reached
    /// The relay shows its channels without replies.
    case isTopLevelOnly
    /// The answer was no window.
    case unusable(Text)
    case refused(ChannelWindowRefusal)
    case tooMany
    case cancelled
  }

  /// What came of a question.
  public enum Answer: Sendable {
    /// The events that came and verify, and the others of which anything could be read.
    ///
    /// - Parameter isSound: Whether everything in the answer was an event that verifies.
    case events([Event], invalid: [Event], isSound: Bool)
    case refused(ChannelWindowRefusal)
    case cancelled
  }

  /// Windows of fewer rows would cost more than pages.
  private static let rowsMin = 10

  private let leg: HistoryWalk.Leg
  private let relayKey: PublicKey
  private let limits: Limits
  private var request: ChannelWindowRequest
  /// The wall time of the last question: as of then its findings are proved.
  public private(set) var askedAt: Timestamp = 0
  private var firstAskedAt: Timestamp?
  private var pages = 0
  private var isSecondLook = false
  /// Whether everything above the cursor in its second was proved to have been read.
  private var isSecondWhole = false
  private var proved: [HistoryWalk.Span] = []
  private var end: End?
  /// Whether replies are rows; nil before the first window.
  public private(set) var projectsReplies: Bool?
  public private(set) var hasRows = false

  /// - Parameters:
  ///   - leg: What is to be read, up to now.
  ///   - relayKey: The key that the relay's document names as its own.
  /// - Returns: Nil where the scope is no channel, or the leg does not begin at the head.
  public init?(
    _ scope: Filter, leg: HistoryWalk.Leg, relayKey: PublicKey, limits: Limits
  ) {
    guard leg.to == nil,
      let request = ChannelWindowRequest(scope: scope, limit: limits.windowRowsMax)
    else { return nil }
    self.request = request
    self.leg = leg
    self.relayKey = relayKey
    self.limits = limits
  }

  public mutating func next(now: Timestamp) -> Step {
    if let end { return .ended(end) }
    askedAt = now
    if firstAskedAt == nil { firstAskedAt = now }
    return .ask(request)
  }

  /// What is left to be walked by pages, newest first.
  public var left: [HistoryWalk.Leg] {
    var left: [HistoryWalk.Leg] = []
    var top: Timestamp?
    for span in proved {
      if span.to < (top ?? firstAskedAt ?? 0) {
        left.append(HistoryWalk.Leg(from: span.to + 1, to: top))
      }
      top = span.from - 1
    }
    if top.map({ $0 >= leg.from }) ?? true { left.append(HistoryWalk.Leg(from: leg.from, to: top)) }
    return left
  }

  /// Takes what came of the last `next`.
  public mutating func received(_ answer: Answer) -> HistoryWalk.Findings {
    guard end == nil else { return .init() }
    switch answer {
    case .cancelled: end = .cancelled
    case .refused(let refusal): end = .refused(refusal)
    case .events(let events, let invalid, let isSound):
      return take(events, invalid: invalid, isSound: isSound)
    }
    return .init()
  }

  private mutating func take(
    _ events: [Event], invalid: [Event], isSound: Bool
  ) -> HistoryWalk.Findings {
    let overlays = events.filter { $0.kind == .windowBounds }
    guard overlays.count == 1, !invalid.contains(where: { $0.kind == .windowBounds }),
      let overlay = overlays.first, overlay.pubkey == relayKey,
      let bounds = ChannelWindowBounds(overlay, answering: request)
    else { return stop(.unusable("no window came")) }
    if let projectsReplies, projectsReplies != bounds.projectsReplies {
      // The windows before and after it do not belong together.
      return stop(.unusable("the relay changed what it shows of a channel"))
    }
    projectsReplies = bounds.projectsReplies
    if let next = bounds.next, let cursor = request.cursor, !next.comesAfter(cursor) {
      return stop(.unusable("the windows do not go on"))
    }
    let rows = events.filter(request.isRow).map(\.position)
    hasRows = hasRows || !rows.isEmpty
    guard bounds.projectsReplies else { return stop(.isTopLevelOnly) }
    let isClean =
      isSound && events.allSatisfy { request.wants($0) || ChannelWindowRequest.isOverlay($0) }
    let isShort = rows.count < request.limit
    if isShort, bounds.next != nil, !isSecondLook {
      guard rows.count >= Self.rowsMin else { return stop(.unusable("too few rows at once")) }
      // Either it gives no more at once, or something is left out; the same place tells.
      isSecondLook = true
      request.limit = rows.count
      return .init()
    }
    isSecondLook = false
    let isWhole = isClean && !isShort && isInOrder(rows, upTo: bounds.next)
    return goOn(to: bounds.next, isWhole: isWhole)
  }

  private mutating func stop(_ end: End) -> HistoryWalk.Findings {
    self.end = end
    return .init()
  }

  private func isInOrder(_ rows: [EventPosition], upTo next: EventPosition?) -> Bool {
    var before = request.cursor
    for row in rows {
      if let before, !row.comesAfter(before) { return false }
      before = row
    }
    return next == nil || rows.last == next
  }

  /// Notes what a window proved and moves the cursor.
  private mutating func goOn(to next: EventPosition?, isWhole: Bool) -> HistoryWalk.Findings {
    var findings = HistoryWalk.Findings()
    let cursor = request.cursor
    let lower = max(next.map { $0.createdAt + 1 } ?? 0, leg.from)
    let top = cursor.map { isSecondWhole ? $0.createdAt : $0.createdAt - 1 } ?? askedAt
    let upper = min(top, askedAt)
    if isWhole, lower <= upper {
      findings.proofs.append(HistoryWalk.Span(from: lower, to: upper))
      proved += findings.proofs
    }
    if let next, next.createdAt == cursor?.createdAt {
      isSecondWhole = isSecondWhole && isWhole
    } else {
      isSecondWhole = isWhole
    }
    pages += 1
    guard let next, next.createdAt >= leg.from else {
      end = .reached
      return findings
    }
    if pages >= limits.windowPagesMax { end = .tooMany }
    request.cursor = next
    return findings
  }
}

/// Why no window came.
public enum ChannelWindowRefusal: Sendable, Hashable {
  /// The server said so, by its status.
  case status(Int)
  /// What came was no list of events.
  case unreadable
  /// Nothing came in time, or too much, or the connection failed.
  case failed(Text)
}
