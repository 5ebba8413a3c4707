import Nostr
import NostrCrypto

/// REQ, COUNT and CLOSE.
extension RelayMachine {
  /// - Parameter cursors: The `before_id` of each filter; may be shorter than the filters.
  mutating func request(
    _ subscription: SubscriptionID, _ filters: [Filter], after cursors: [EventID?],
    from id: ConnectionID
  ) {
    if let refusal = malformation(subscription, filters) {
      return refuseRequest(subscription, refusal, to: id)
    }
    if let answer = spend(from: id, on: .request(subscription)) { return send(answer, to: id) }
    guard let index = position(of: id) else { return }
    if rules.reading.closedIDsAreDead && connections[index].closedIDs.contains(subscription) {
      return
    }
    if let refusal = refusalOfReading(filters, by: connections[index]) {
      return send(.closed(subscription, refusal), to: id)
    }
    connections[index].subscriptions.removeAll { $0.id == subscription }
    if connections[index].subscriptions.count >= rules.limits.subscriptionsMax {
      return send(.closed(subscription, "error: too many subscriptions"), to: id)
    }
    serve(subscription, filters, after: cursors, to: id)
  }

  /// What `before_id` says in each filter of a REQ; no part of NIP-01, so the parsed filters do not
  /// have it.
  func keysetCursors(in frame: [UInt8]) -> [EventID?] {
    filters(in: frame).map { filter in
      filter["before_id"]?.string.flatMap { EventID(hex: $0.string) }
    }
  }

  /// Why a question cannot be answered as it is meant: a key of a filter says something that is
  /// not understood here.
  func refusalOfKeys(in frame: [UInt8]) -> Text? {
    guard rules.reading.refusesUnknownKeys else { return nil }
    for filter in filters(in: frame) {
      for (key, _) in filter.members ?? [] where !isKnown(key) {
        let name = key.string.prefix(Self.keyShownMax)
        return Text("unsupported: filter contains unknown elements: \(name)")
      }
    }
    return nil
  }

  private static let keyShownMax = 40

  private func isKnown(_ key: Text) -> Bool {
    Filter.knows(key) || (key == "before_id" && rules.reading.servesKeysetCursor)
  }

  /// The filters of a question as they came.
  private func filters(in frame: [UInt8]) -> ArraySlice<JSONValue> {
    // The frame was parsed once already; one that cannot be parsed again has none.
    (try? JSONValue.parse(frame).array)?.dropFirst(2) ?? []
  }

  mutating func count(
    _ subscription: SubscriptionID, _ filters: [Filter], from id: ConnectionID
  ) {
    guard rules.reading.counting != .unsupported else {
      return send(.closed(subscription, "unsupported: this relay does not count"), to: id)
    }
    if let refusal = malformation(subscription, filters) {
      return refuseRequest(subscription, refusal, to: id)
    }
    if let answer = spend(from: id, on: .request(subscription)) { return send(answer, to: id) }
    guard let connection = connection(id) else { return }
    if let refusal = refusalOfReading(filters, by: connection) {
      return send(.closed(subscription, refusal), to: id)
    }
    do throws(RelayStoreError) {
      let number = try store.count(filters) { isVisible($0, to: connection.keys) }
      let isRough = rules.reading.counting == .approximate
      send(.count(subscription, number, approximate: isRough), to: id)
    } catch {
      send(.closed(subscription, "error: database error"), to: id)
    }
  }

  mutating func end(_ subscription: SubscriptionID, of id: ConnectionID) {
    guard let index = position(of: id),
      let place = connections[index].subscriptions.firstIndex(where: { $0.id == subscription })
    else { return }
    if rules.reading.closedIDsAreDead { connections[index].closedIDs.insert(subscription.owned()) }
    if rules.reading.sendsAfterClose {
      connections[index].subscriptions[place].isGhost = true
    } else {
      connections[index].subscriptions.remove(at: place)
    }
  }

  /// Answers a REQ or COUNT that cannot be understood.
  mutating func refuseRequest(_ subscription: SubscriptionID, _ why: Text, to id: ConnectionID) {
    switch rules.answers.toBadRequest {
    case .closed: send(.closed(subscription, why), to: id)
    case .notice:
      let rest = why.string.split(separator: ":", maxSplits: 1).last ?? ""
      send(.notice(Text("invalid message:\(rest)")), to: id)
    case .silence: break
    }
  }

  private func malformation(_ subscription: SubscriptionID, _ filters: [Filter]) -> Text? {
    if subscription.count > rules.limits.subscriptionIDBytesMax {
      return "invalid: subscription id too long"
    }
    if filters.count > rules.limits.filtersMax { return "invalid: too many filters" }
    let searches = filters.count { $0.search != nil }
    if searches > 0 && searches < filters.count {
      return "error: mixed search and non-search filters not supported"
    }
    return searches > 0 ? "unsupported: this relay does not search" : nil
  }

  // MARK: Stored events

  private mutating func serve(
    _ subscription: SubscriptionID, _ filters: [Filter], after cursors: [EventID?],
    to id: ConnectionID
  ) {
    guard let index = position(of: id) else { return }
    let keys = connections[index].keys
    var isWhole = true
    var isCut = false
    var found: [Event] = []
    do throws(RelayStoreError) {
      for (place, filter) in filters.enumerated() {
        let cursor = place < cursors.count ? cursors[place] : nil
        let page = try page(of: filter, after: cursor, for: keys)
        isWhole = isWhole && page.isWhole
        isCut = isCut || (!page.isWhole && filter.limit != 0)
        found = merged(found, page.events)
      }
    } catch {
      return send(.closed(subscription, "error: database error"), to: id)
    }
    connections[index].subscriptions.append(
      Subscription(id: subscription.owned(), filters: filters))
    var hints: [Text] = []
    if rules.answers.hints && isWhole { hints = ["finish"] }
    if rules.answers.hints && isCut { hints = ["more"] }
    if let max = rules.reading.truncatedTo, found.count > max {
      found.removeLast(found.count - max)
      hints = []
    }
    sendPage(found, hints, subscription, to: id)
  }

  func page(
    of filter: Filter, after cursor: EventID?, for keys: [PublicKey]
  ) throws(RelayStoreError) -> Page {
    let eventsMax = min(filter.limit ?? rules.reading.pageMax, rules.reading.pageMax)
    // A limit of 0 asks for live events only, and nothing is looked up to answer it.
    guard eventsMax > 0 else { return Page(events: [], isWhole: false) }
    if rules.reading.ignoresKindlessFilters, filter.kinds == nil, filter.ids == nil {
      return Page(events: [], isWhole: true)
    }
    var asked = rules.reading.evaluatesFilters ? filter : Filter()
    if rules.reading.ignoresUntil { asked.until = nil }
    if rules.reading.readsZeroUntilAsNone && asked.until == 0 { asked.until = nil }
    if rules.reading.ignoresSince { asked.since = nil }
    let request = PageRequest(filter: asked, eventsMax: eventsMax, order: rules.reading.order)
    return try store.page(request) { event in
      if let cursor, event.createdAt == asked.until, event.id <= cursor { return false }
      return isVisible(event, to: keys)
    }
  }

  /// Joins two answers in the relay's order, each event once.
  func merged(_ left: [Event], _ right: [Event]) -> [Event] {
    if left.isEmpty { return right }
    if right.isEmpty { return left }
    let known = Set(left.map(\.id))
    let joined = left + right.filter { !known.contains($0.id) }
    switch rules.reading.order {
    case .newestFirst: return joined.sorted { Place($0) < Place($1) }
    case .newestSentAscending, .oldestFirst: return joined.sorted { Place($1) < Place($0) }
    }
  }

  private mutating func sendPage(
    _ events: [Event], _ hints: [Text], _ subscription: SubscriptionID, to id: ConnectionID
  ) {
    let end = RelayMessage.eose(subscription, hints: hints)
    if rules.answers.endOfStored == .early { send(end, to: id) }
    tellLies(subscription, events, to: id)
    let falsified =
      rules.answers.lies.isEmpty ? nil : events.indices.dropFirst(events.count / 2).first
    for (index, event) in events.enumerated() {
      send(.event(subscription, index == falsified ? falsify(event) : event), to: id)
    }
    switch rules.answers.endOfStored {
    case .prompt: send(end, to: id)
    case .never, .early: break
    case .late(let delay): send(end, to: id, after: delay)
    case .twice:
      send(end, to: id)
      send(end, to: id)
    }
  }

  private func falsify(_ event: Event) -> Event {
    if rules.answers.lies.contains(.tampered) {
      return event.with(event.createdAt, "changed by the relay")
    }
    guard rules.answers.lies.contains(.backdated) else { return event }
    return event.with(event.createdAt - 200_000, event.content)
  }

  private mutating func tellLies(
    _ subscription: SubscriptionID, _ events: [Event], to id: ConnectionID
  ) {
    guard let event = events.first else { return }
    if rules.answers.lies.contains(.foreignSubscription) {
      send(.event("never-opened", event), to: id)
    }
    if rules.answers.lies.contains(.swappedContent) {
      send(.event(subscription, event.with(event.createdAt, "swapped by the relay")), to: id)
    }
    guard rules.answers.lies.contains(.unasked), let signer = identity.signer else { return }
    let draft = EventDraft(
      createdAt: now, kind: 30_000, tags: Tags([["d", "unasked"]]), content: "")
    // A signer that fails leaves one lie untold, and the test that counts on it fails.
    guard let stray = try? signer.sign(draft) else { return }
    send(.event(subscription, stray.event), to: id)
  }
}

extension Event {
  /// The same id and signature over something else: what a lying relay would send.
  fileprivate func with(_ date: Timestamp, _ content: Text) -> Event {
    Event(
      id: id, pubkey: pubkey, createdAt: date, kind: kind, tags: tags, content: content,
      sig: sig)
  }
}
