import Nostr

extension HistoryWalk {
  /// What a request that the relay ended with its own EOSE proves, and where to go on.
  mutating func complete(_ page: PageTally, _ hint: PageEnd.EndHint) -> Findings {
    if scope.search != nil {
      // By relevance, not by date: a search is one page, which proves nothing and leads to no other.
      end = .unpageable("a search is one page")
      return Findings()
    }
    return switch phase {
    case .page: completePage(page, hint)
    case .probe: completeProbe(page)
    case .second: completeSecond(page, hint)
    case .keyset(let after, let pages): completeKeyset(page, hint, after: after, pages: pages)
    case .negentropy, .gauge: Findings()
    }
  }

  private mutating func completePage(_ page: PageTally, _ hint: PageEnd.EndHint) -> Findings {
    guard let leg = legs.first else { return Findings() }
    let upper = min(cursor ?? askedAt, askedAt)
    if page.aboveUntil > 0, page.oldestVerified.map({ $0 >= cursor ?? .init(.max) }) ?? true {
      // A page wholly at or above its cursor: asking on would bring it again for ever.
      return stop(.unpageable("ignores until"), why: "the relay ignores until: unpageable")
    }
    if !page.isKnownNewestFirst {
      // These were stored when the page was asked for: no arrival has disturbed their order.
      return stop(
        .unpageable("not newest first"), why: "the relay does not answer newest first: unpageable")
    }
    if page.verified + page.invalid + page.unreadable == 0 {
      if asksWithBothBounds(leg) { return Findings() }
      if hint == .more { return emptyThoughMore(leg, upper) }
      return finishLeg(leg, proving: upper)
    }
    guard let oldest = page.oldestVerified else {
      return stepOverUnbelieved(page, hint, leg, upper)
    }
    if hint == .finish, page.isNewestFirst { return finishLeg(leg, proving: upper, page) }
    guard let oldest = oldestStored(page) else {
      return lookAgain(page, oldest, leg, upper)
    }
    if isHiddenByNeighbour(oldest) { return Findings() }
    attempts = 0
    if hint == .finish || oldest < leg.from { return finishLeg(leg, proving: upper, page) }
    guard let asked = cursor else { return leaveHead(page, oldest, leg, upper) }
    if oldest >= asked {
      phase = .second
      looks = 0
      if oldest == asked {
        isCursorServed = true
        shownAtCursor.formUnion(page.ids(at: asked))
      }
      return Findings()
    }
    moveCursor(to: oldest, page)
    return proof(from: oldest + 1, to: upper, page)
  }

  // MARK: Arrivals amid a page

  /// Whether a page of so many events cannot end with one that only happened to arrive: the relay
  /// gives at least as many of what it has stored, so these are stored, or all there is.
  private func isSettled(_ page: PageTally) -> Bool {
    // A relay that gives single events cannot be told from one that has no more.
    let shown = max(pageShown, 2)
    return page.delivered <= (isLimitIgnored ? shown : min(shown, max(limitAsked, 2)))
  }

  /// The oldest second down to which the page holds what was stored when it was asked for; nil
  /// where nothing tells stored events from arrivals yet.
  private func oldestStored(_ page: PageTally) -> Timestamp? {
    isSettled(page) && page.isNewestFirst ? page.oldestVerified : page.oldestKnown
  }

  /// Keeps what was served in mind and asks for the same page again, a bounded number of times.
  private mutating func lookAgain(
    _ page: PageTally, _ oldest: Timestamp, _ leg: Leg, _ upper: Timestamp
  ) -> Findings {
    looks += 1
    if looks >= options.limits.walkLooksMax {
      let bottom = min(max(oldest, leg.from), max(upper, leg.from))
      var findings = Findings()
      if bottom <= upper {
        let why: Text = "events arrived faster than they could be told from stored ones"
        findings.gaps.append(Gap(span: Span(from: bottom, to: upper), why: why))
      }
      goBelow(bottom)
      return findings
    }
    known.formUnion(page.served)
    // A relay that ignores `until` is better seen before its newest page is asked for again.
    if looks == 1, cursor == nil, pageShown == 0 {
      phase = .probe(min(oldest, askedAt + options.limits.skewMax))
    }
    return Findings()
  }

  private mutating func completeProbe(_ page: PageTally) -> Findings {
    if page.aboveUntil > 0, page.verified == 0 {
      return stop(.unpageable("ignores until"), why: "the relay ignores until: unpageable")
    }
    known.formUnion(page.served)
    phase = .page
    return Findings()
  }

  /// Whether a page never came down to its cursor, because the second above fills it. Without that
  /// second it is asked for again.
  private mutating func isHiddenByNeighbour(_ oldest: Timestamp) -> Bool {
    guard let cursor, oldest > cursor, !isNeighbourDense else { return false }
    isNeighbourDense = true
    return true
  }

  /// A filter without any condition that brought nothing is asked once more with both bounds. The
  /// second 0 then stands apart, because a bound of 0 is no bound to the same relays.
  private mutating func asksWithBothBounds(_ leg: Leg) -> Bool {
    guard scope == Filter(), !hasBothBounds, cursor == leg.to, cursor == nil || leg.from == 0
    else { return false }
    hasBothBounds = true
    if leg.from == 0, cursor.map({ $0 > 0 }) ?? true {
      legs[0] = Leg(from: 1, to: leg.to)
      legs.insert(Leg(from: 0, to: 0), at: 1)
    }
    return true
  }

  private mutating func moveCursor(to served: Timestamp, _ page: PageTally) {
    moveCursor(unserved: served)
    isCursorServed = true
    shownAtCursor = Set(page.ids(at: served))
  }

  private mutating func moveCursor(unserved second: Timestamp?) {
    cursor = second
    isCursorServed = false
    isNeighbourDense = false
    isSecondAskedWhole = false
    shownAtCursor = []
    known = []
    looks = 0
  }

  /// After the head page: its oldest date becomes the cursor, but never one from the future.
  private mutating func leaveHead(
    _ page: PageTally, _ oldest: Timestamp, _ leg: Leg, _ upper: Timestamp
  ) -> Findings {
    let bound = askedAt + options.limits.skewMax
    guard oldest > bound else {
      moveCursor(to: oldest, page)
      return proof(from: oldest + 1, to: upper, page)
    }
    // A whole page of events from the future: the present is read first, as if they were not there,
    // and what may stand between them and it afterwards.
    legs.insert(Leg(from: bound + 1, to: oldest), at: 1)
    moveCursor(unserved: max(bound, leg.from))
    return Findings()
  }

  /// A page of nothing believable: step over it by the dates it claims, and prove nothing.
  private mutating func stepOverUnbelieved(
    _ page: PageTally, _ hint: PageEnd.EndHint, _ leg: Leg, _ upper: Timestamp
  ) -> Findings {
    let top = cursor ?? askedAt
    guard let claimed = page.oldestInvalid else {
      return stop(.unreadable, why: "the relay sent a page of unreadable events")
    }
    let why: Text = "the relay sent a page of invalid events"
    var findings = Findings()
    if hint == .finish {
      findings.gaps.append(Gap(span: Span(from: leg.from, to: max(top, leg.from)), why: why))
      nextLeg()
      return findings
    }
    let bottom = min(max(claimed, leg.from), top)
    findings.gaps.append(Gap(span: Span(from: bottom, to: top), why: why))
    if cursor != nil, bottom == top {
      goBelow(top)
    } else {
      moveCursor(unserved: bottom)
    }
    return findings
  }

  /// `more` after nothing contradicts itself: asked again, then left as a gap.
  private mutating func emptyThoughMore(_ leg: Leg, _ upper: Timestamp) -> Findings {
    attempts += 1
    guard attempts >= options.limits.walkRetriesMax else { return Findings() }
    attempts = 0
    var findings = Findings()
    if leg.from <= upper {
      findings.gaps.append(
        Gap(span: Span(from: leg.from, to: upper), why: "the relay says more but sends nothing"))
    }
    nextLeg()
    return findings
  }

  private mutating func completeSecond(_ page: PageTally, _ hint: PageEnd.EndHint) -> Findings {
    guard let second = cursor else { return Findings() }
    if page.aboveUntil > 0 {
      return stop(.unpageable("ignores until"), why: "the relay ignores until: unpageable")
    }
    attempts = 0
    if isCursorServed, !mayEndAbove(page, second), !shownAtCursor.isSubset(of: page.ids) {
      if isSinceShort, isNeighbourDense { return tooDense(second) }
      if !isSinceShort {
        isSinceShort = true
        return Findings()
      }
    }
    if page.verified > 0, isHiddenByNeighbour(oldestStored(page) ?? second) { return Findings() }
    if isCursorServed, page.ids.isEmpty, page.invalid + page.unreadable == 0 {
      // The page before showed events here: this answer cannot be taken for proof.
      return leaveUnproven(second, "the relay shows this second in a page and not by itself")
    }
    if page.verified == 0, page.invalid + page.unreadable > 0 {
      return leaveUnproven(second, "the relay sent a page of invalid events")
    }
    if hint == .finish || isPast(second, page) || hasRoom(page, hint) {
      return exhausted(second, page)
    }
    if !isSettled(page), looks + 1 < options.limits.walkLooksMax {
      // It may end with what was stored, or with what has just arrived.
      looks += 1
      known.formUnion(page.served)
      return Findings()
    }
    if !isNeighbourDense {
      // The second may fit by itself. If it does, it shows again what it has shown here.
      isNeighbourDense = true
      looks = 0
      shownAtCursor.formUnion(page.ids(at: second))
      isCursorServed = !shownAtCursor.isEmpty
      return Findings()
    }
    if asksForAll(page) { return Findings() }
    return leaveForAnotherWay(second, page)
  }

  /// Whether what is older than the second came, after all of it.
  private func isPast(_ second: Timestamp, _ page: PageTally) -> Bool {
    let older = oldestStored(page).map { $0 < second } ?? false
    return older || page.isKnownBelowSince || page.belowSince > 0 && isSettled(page)
  }

  private func hasRoom(_ page: PageTally, _ hint: PageEnd.EndHint) -> Bool {
    // Where less is asked for than the relay gives, the limit ends a page too.
    let room = isLimitIgnored ? pageShown : min(pageShown, limitAsked)
    return hint != .more && page.delivered < max(room, 2) && isSettled(page)
  }

  /// Whether the page may have been ended by a limit below what is usual, after answers were cut off.
  private func isCutByUs(_ page: PageTally) -> Bool {
    limitAsked < options.secondLimit && page.delivered >= limitAsked
  }

  /// Whether the page may only have ended before what was shown of the second.
  private func mayEndAbove(_ page: PageTally, _ second: Timestamp) -> Bool {
    isCutByUs(page) && page.belowSince == 0 && page.oldestVerified.map { $0 >= second } ?? true
  }

  /// A second that does not go into what is asked for since answers were cut off is asked for whole
  /// once more: what cut them off may have passed.
  private mutating func asksForAll(_ page: PageTally) -> Bool {
    guard isCutByUs(page), !isSecondAskedWhole else { return false }
    isSecondAskedWhole = true
    interruptions.askForAll()
    looks = 0
    return true
  }

  /// A second that no page holds: by NIP-77, else by keyset, else it stays unproven.
  private mutating func leaveForAnotherWay(
    _ second: Timestamp, _ page: PageTally
  ) -> Findings {
    seenInSecond = Set(page.ids)
    secondDelivered = page.delivered
    isSecondInDoubt = !page.doubts.isEmpty
    keysetStart = (isSettled(page) ? page.last : page.lastKnown)?.id
    guard options.hasNegentropy else { return pageByKeyset(second) }
    phase = .negentropy
    return Findings()
  }

  mutating func pageByKeyset(_ second: Timestamp) -> Findings {
    guard options.hasKeysetCursor, let keysetStart else { return gauge(second) }
    phase = .keyset(after: keysetStart, pages: 1)
    known = seenInSecond
    looks = 0
    return Findings()
  }

  // MARK: What the relay gives

  private mutating func gauge(_ second: Timestamp) -> Findings {
    guard secondDelivered < min(options.pageLimit, interruptions.answerMax) else {
      return tooDense(second)
    }
    if isGaugeFutile { return leaveUnproven(second, Self.neverMore) }
    known = []
    looks = 0
    phase = .gauge(secondDelivered)
    return Findings()
  }

  mutating func gauged(_ page: PageTally, _ pageEnd: PageEnd, _ count: Int) -> Findings {
    switch pageEnd {
    case .disconnected: return Findings()
    case .cancelled: return stop(.cancelled)
    case .complete where pageShown > count:
      // So it would have given more of the second than it did; asked again, that shows.
      phase = .second
      known = []
      looks = 0
      return Findings()
    case .complete where looks == 0 && page.delivered > count:
      // One of them may have arrived just now: what comes again was stored.
      looks = 1
      known = Set(page.served)
      return Findings()
    case .complete, .refused, .noticed, .timedOut: return gaugeEnded()
    }
  }

  /// The relay was not seen to give more of anything than of the second.
  mutating func gaugeEnded() -> Findings {
    guard let second = cursor else { return Findings() }
    isGaugeFutile = true
    return leaveUnproven(second, Self.neverMore)
  }

  private static let neverMore: Text =
    "as many events in one second as the relay was ever seen to give in a page: it may have more"

  private mutating func completeKeyset(
    _ page: PageTally, _ hint: PageEnd.EndHint, after: EventID, pages: Int
  ) -> Findings {
    guard let second = cursor else { return Findings() }
    // A page that ignores the cursor shows itself by bringing what stands before it.
    guard page.ids.allSatisfy({ !seenInSecond.contains($0) }) else {
      // It has no such cursor, whatever its document says, and is treated like any other relay.
      options.hasKeysetCursor = false
      return gauge(second)
    }
    guard pages < options.limits.keysetPagesMax else { return tooDense(second) }
    isSecondInDoubt = isSecondInDoubt || !page.doubts.isEmpty
    if isPast(second, page) || page.delivered == page.belowSince
      || hint == .finish && page.invalid + page.unreadable == 0
    {
      if isSecondInDoubt { return leaveUnproven(second, Self.doubtful) }
      return exhausted(second, page)
    }
    guard let last = isSettled(page) ? page.last : page.lastKnown else {
      // An arrival may stand last, and behind it ids would be skipped.
      known.formUnion(page.served)
      phase = .keyset(after: after, pages: pages + 1)
      return page.verified > 0 ? Findings() : tooDense(second)
    }
    seenInSecond.formUnion(page.ids)
    phase = .keyset(after: last.id, pages: pages + 1)
    return Findings()
  }

  mutating func exhausted(_ second: Timestamp, _ page: PageTally? = nil) -> Findings {
    goBelow(second)
    return proof(from: second, to: min(second, askedAt), page)
  }

  private mutating func tooDense(_ second: Timestamp) -> Findings {
    leaveUnproven(second, "more events in one second than the relay gives in a page")
  }

  private mutating func leaveUnproven(_ second: Timestamp, _ why: Text) -> Findings {
    goBelow(second)
    var findings = Findings()
    findings.gaps.append(Gap(span: Span(from: second, to: second), why: why))
    return findings
  }

  /// Goes on below a second that is settled, never below the leg's end and never below 0.
  private mutating func goBelow(_ second: Timestamp) {
    phase = .page
    seenInSecond = []
    keysetStart = nil
    guard let leg = legs.first, second > leg.from else { return nextLeg() }
    moveCursor(unserved: second - 1)
  }

  private mutating func finishLeg(
    _ leg: Leg, proving upper: Timestamp, _ page: PageTally? = nil
  ) -> Findings {
    attempts = 0
    nextLeg()
    return proof(from: leg.from, to: upper, page)
  }

  private mutating func nextLeg() {
    legs.removeFirst()
    phase = .page
    seenInSecond = []
    moveCursor(unserved: legs.first?.to)
    if legs.isEmpty { end = .drained }
  }

  private static let doubtful: Text = "the relay sent an event that does not verify"

  /// The span is proved but for the seconds in which the page left an event in doubt.
  private func proof(from: Timestamp, to: Timestamp, _ page: PageTally?) -> Findings {
    Self.proof(from: from, to: to, doubts: page?.doubts ?? [])
  }

  static func proof(
    from: Timestamp, to: Timestamp, doubts: [PageTally.Doubt]
  ) -> Findings {
    var findings = Findings()
    var lower = from
    for doubt in spans(of: doubts, from: from, to: to) {
      if lower < doubt.from { findings.proofs.append(Span(from: lower, to: doubt.from - 1)) }
      findings.gaps.append(Gap(span: doubt, why: doubtful))
      lower = doubt.to + 1
    }
    if lower <= to { findings.proofs.append(Span(from: lower, to: to)) }
    return findings
  }

  /// Where genuine events may be missing, ascending and apart; a few spans at most.
  private static func spans(
    of doubts: [PageTally.Doubt], from: Timestamp, to: Timestamp
  ) -> [Span] {
    let cut = doubts.map { (max($0.oldest ?? from, from), min($0.newest ?? to, to)) }
      .filter { $0.0 <= $0.1 }.sorted { $0 < $1 }
    var spans: [Span] = []
    for (lower, upper) in cut {
      if let last = spans.last, lower <= last.to + 1 {
        spans[spans.count - 1] = Span(from: last.from, to: max(last.to, upper))
      } else {
        spans.append(Span(from: lower, to: upper))
      }
    }
    guard let first = spans.first, let last = spans.last, spans.count > 8 else { return spans }
    return [Span(from: first.from, to: last.to)]
  }
}
