public import EventLog
public import Nostr
import NostrCrypto
public import SyncCore

extension Engine {
  /// Signs a message and stores it with its place in the outbox, on the disk, before anything is
  /// sent. It is sent now or when the relay can be reached.
  ///
  /// - Parameter token: Names this one act of writing: a second call with it changes nothing and
  ///   returns the message of the first.
  public func publish(
    _ draft: EventDraft, token: Text? = nil
  ) async throws(EngineError) -> Message {
    guard await prepare() else { throw .stopped }
    guard let signer, !options.isReadOnly else { throw .noKey }
    guard let home = relays.first else { throw .noRelay }
    if let token,
      let earlier = try await stored({ () async throws(LogError) in
        try await desk.message(token: token)
      })
    {
      return earlier
    }
    let open = outboxCounts.values.reduce(0, +)
    guard open < limits.outboxMax else { throw .outboxFull(open) }
    var (linked, parent) = try await link(draft)
    if let me {
      linked.createdAt = try await versionDate(linked, author: me)
      let tags = linked.tags
      let references = TimelineReferences(desk: desk, clock: ports.clock, limits: limits)
      linked.tags = try await stored { () async throws(LogError) in
        try await references.tags(tags, for: home, author: me)
      }
    }
    let event: VerifiedEvent
    do throws(SignerError) {
      event = try await signer.sign(linked)
    } catch {
      throw .signing(error.description)
    }
    let message = try await stored { () async throws(LogError) in
      try await store.enqueue(event, to: [home], waitsFor: parent, token: token)
    }
    await links[home]?.pump?.added(message, event.event)
    changed(.log(.start))
    return message
  }

  /// The draft's date, or the second after the version that it replaces: in one second the lower
  /// id would win, which half of the time is the older version.
  private func versionDate(
    _ draft: EventDraft, author: PublicKey
  ) async throws(EngineError) -> Timestamp {
    guard let slot = EventAddress(of: draft, author: author) else { return draft.createdAt }
    await store.caughtUp()
    let holder = await desk.holderDate(slot)
    // Nothing is awaited from here on, so that two versions written at once get two dates.
    let last = [holder, versionDates[slot]].compactMap { $0 }.max()
    guard let last, last >= draft.createdAt else {
      versionDates.note(draft.createdAt, for: slot)
      return draft.createdAt
    }
    guard last < ports.clock.now() + limits.datingLeadMax else { throw .versionAhead(last) }
    versionDates.note(last + 1, for: slot)
    return last + 1
  }

  /// Points a draft's references at what their targets are called now, and finds the message of
  /// ours that has to be accepted first.
  private func link(
    _ draft: EventDraft
  ) async throws(EngineError) -> (EventDraft, MessageID?) {
    var renamed: [EventID: EventID] = [:]
    var parent: MessageID?
    for id in Redater.named(in: draft.tags) {
      let message = try await stored { () async throws(LogError) in
        try await desk.message(of: id)
      }
      guard let message else { continue }
      if message.eventID != id { renamed[id] = message.eventID }
      if message.deliveries.contains(where: { $0.state != .sent }) {
        parent = max(parent ?? message.id, message.id)
      }
    }
    var linked = draft
    linked.tags = Redater.tags(draft.tags, renaming: renamed)
    return (linked, parent)
  }

  /// Tries a message again, whatever the relay said of it. One that has expired gets a new date.
  public func retry(_ id: MessageID) async throws(EngineError) {
    guard await prepare() else { throw .stopped }
    guard
      let message = try await stored({ () async throws(LogError) in try await desk.message(id) })
    else {
      throw .unknownMessage(id)
    }
    for delivery in message.deliveries { await links[delivery.relay]?.pump?.retry(id) }
  }

  /// Ends a message by hand: it is not sent any more, and views hide it. What a relay has is refused.
  public func discard(_ id: MessageID) async throws(EngineError) {
    guard await prepare() else { throw .stopped }
    guard
      let message = try await stored({ () async throws(LogError) in try await desk.message(id) })
    else {
      throw .unknownMessage(id)
    }
    do throws(LogError) {
      try await store.discard(id)
    } catch .alreadySent {
      throw .alreadySent(id)
    } catch {
      throw .store(error)
    }
    for delivery in message.deliveries { await links[delivery.relay]?.pump?.take(.discarded(id)) }
    changed(.log(.start))
  }

  /// Ends a message of one's own that no relay was ever handed, as if it had not been written; with
  /// it what was written about it alone: edits, reactions and deletions.
  ///
  /// - Returns: False: a relay may have it, and nothing was changed.
  public func takeBack(_ id: MessageID) async throws(EngineError) -> Bool {
    guard await prepare() else { throw .stopped }
    let found = try await stored { () async throws(LogError) in try await desk.message(id) }
    guard let message = found, !message.isDiscarded, !message.deliveries.isEmpty,
      message.deliveries.allSatisfy({ $0.handedAt == nil && $0.state != .sent })
    else { return false }
    for delivery in message.deliveries {
      guard await links[delivery.relay]?.pump?.takeBack(id) != false else { return false }
    }
    for follower in try await stored({ () async throws(LogError) in
      try await desk.remarks(on: id)
    }) {
      try await discard(follower)
    }
    try await discard(id)
    return true
  }

  private func stored<Value: Sendable>(
    _ body: () async throws(LogError) -> Value
  ) async throws(EngineError) -> Value {
    do throws(LogError) {
      return try await body()
    } catch {
      throw .store(error)
    }
  }
}
