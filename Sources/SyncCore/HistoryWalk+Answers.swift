import Nostr

extension HistoryWalk {
  /// What a request that the relay ended with its own EOSE proves, and where to go on.
  mutating func complete(_ page: PageTally, _ hint: PageEnd.EndHint) -> Findings {
    switch phase {
    case .page: completePage(page, hint)
    case .second: completeSecond(page, hint)
    case .keyset(_, let pages): completeKeyset(page, hint, pages: pages)
    case .negentropy: Findings()
    }
  }

  private mutating func completePage(_ page: PageTally, _ hint: PageEnd.EndHint) -> Findings {
    guard let leg = legs.first else { return Findings() }
    let upper = min(cursor ?? askedAt, askedAt)
    if page.aboveUntil > 0, page.oldestVerified.map({ $0 >= cursor ?? .init(.max) }) ?? true {
      // A page wholly at or above its cursor: asking on would bring it again for ever.
      return stop(.unpageable("ignores until"), why: "the relay ignores until: unpageable")
    }
    if !page.isNewestFirst {
      // An event that arrives while a page is read can stand out of order; asked again, the page
      // has it in its place.
      if !hasSeenDisorder {
        hasSeenDisorder = true
        return Findings()
      }
      return stop(
        .unpageable("not newest first"), why: "the relay does not answer newest first: unpageable")
    }
    hasSeenDisorder = false
    if isHiddenByNeighbour(page) { return Findings() }
    if page.verified + page.invalid + page.unreadable == 0 {
      if asksWithBothBounds(leg) { return Findings() }
      if hint == .more { return emptyThoughMore(leg, upper) }
      return finishLeg(leg, proving: upper)
    }
    guard let oldest = page.oldestVerified else {
      return stepOverUnbelieved(page, hint, leg, upper)
    }
    attempts = 0
    if hint == .finish || oldest < leg.from { return finishLeg(leg, proving: upper) }
    guard let asked = cursor else { return leaveHead(page, oldest, leg, upper) }
    if oldest >= asked {
      phase = .second
      if oldest == asked {
        isCursorServed = true
        shownAtCursor.formUnion(page.ids(at: asked))
      }
      return Findings()
    }
    moveCursor(to: oldest, page)
    return proof(from: oldest + 1, to: upper)
  }

  /// Whether a page never came down to its cursor, because the second above fills it. Without that
  /// second it is asked for again.
  private mutating func isHiddenByNeighbour(_ page: PageTally) -> Bool {
    guard let cursor, let oldest = page.oldestVerified, oldest > cursor, !isNeighbourDense else {
      return false
    }
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
    shownAtCursor = []
  }

  /// After the head page: its oldest date becomes the cursor, but never one from the future.
  private mutating func leaveHead(
    _ page: PageTally, _ oldest: Timestamp, _ leg: Leg, _ upper: Timestamp
  ) -> Findings {
    let bound = askedAt + options.limits.skewMax
    guard oldest > bound else {
      moveCursor(to: oldest, page)
      return proof(from: oldest + 1, to: upper)
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
    if isCursorServed, !shownAtCursor.isSubset(of: page.ids) {
      if isSinceShort, isNeighbourDense { return tooDense(second) }
      if !isSinceShort {
        isSinceShort = true
        return Findings()
      }
    }
    if isHiddenByNeighbour(page) { return Findings() }
    if isCursorServed, page.ids.isEmpty, page.invalid + page.unreadable == 0 {
      // The page before showed events here: this answer cannot be taken for proof.
      return leaveUnproven(second, "the relay shows this second in a page and not by itself")
    }
    if page.verified == 0, page.invalid + page.unreadable > 0 {
      return leaveUnproven(second, "the relay sent a page of invalid events")
    }
    // What is older than the second came after all of it.
    let isPast = page.belowSince > 0 || page.oldestVerified.map { $0 < second } ?? false
    let hasRoom = hint != .more && page.delivered < max(largestDelivery, 2)
    if hint == .finish || isPast || hasRoom { return exhausted(second) }
    if !isNeighbourDense {
      // The second may fit by itself. If it does, it shows again what it has shown here.
      isNeighbourDense = true
      shownAtCursor.formUnion(page.ids(at: second))
      isCursorServed = !shownAtCursor.isEmpty
      return Findings()
    }
    seenInSecond = Set(page.ids)
    if options.hasNegentropy {
      phase = .negentropy
      return Findings()
    }
    guard options.hasKeysetCursor, let last = page.last else { return tooDense(second) }
    phase = .keyset(after: last.id, pages: 1)
    return Findings()
  }

  mutating func pageByKeyset(_ second: Timestamp) -> Findings {
    // The page that led here is no longer known in order; the cursor starts from its largest id,
    // which is the last in the relay's own order.
    guard options.hasKeysetCursor, let last = seenInSecond.max() else { return tooDense(second) }
    phase = .keyset(after: last, pages: 1)
    return Findings()
  }

  private mutating func completeKeyset(
    _ page: PageTally, _ hint: PageEnd.EndHint, pages: Int
  ) -> Findings {
    guard let second = cursor else { return Findings() }
    let isPast = page.oldestVerified.map { $0 < second } ?? false
    if isPast || page.delivered == page.belowSince
      || hint == .finish && page.invalid + page.unreadable == 0
    {
      return exhausted(second)
    }
    // A page that ignores the cursor shows itself by bringing what was there before.
    guard let last = page.last, page.ids.allSatisfy({ !seenInSecond.contains($0) }),
      pages < options.limits.keysetPagesMax
    else { return tooDense(second) }
    seenInSecond.formUnion(page.ids)
    phase = .keyset(after: last.id, pages: pages + 1)
    return Findings()
  }

  mutating func exhausted(_ second: Timestamp) -> Findings {
    goBelow(second)
    return proof(from: second, to: min(second, askedAt))
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
    guard let leg = legs.first, second > leg.from else { return nextLeg() }
    moveCursor(unserved: second - 1)
  }

  private mutating func finishLeg(_ leg: Leg, proving upper: Timestamp) -> Findings {
    attempts = 0
    nextLeg()
    return proof(from: leg.from, to: upper)
  }

  private mutating func nextLeg() {
    legs.removeFirst()
    phase = .page
    seenInSecond = []
    moveCursor(unserved: legs.first?.to)
    if legs.isEmpty { end = .drained }
  }

  private func proof(from: Timestamp, to: Timestamp) -> Findings {
    var findings = Findings()
    if from <= to { findings.proofs.append(Span(from: from, to: to)) }
    return findings
  }
}
