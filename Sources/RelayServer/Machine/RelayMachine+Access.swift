import Nostr

/// Who may read what, and how fast.
extension RelayMachine {
  /// Why a REQ is refused as a whole; nil lets it through.
  func refusalOfReading(_ filters: [Filter], by connection: Connection) -> Text? {
    let keys = connection.keys
    if rules.authentication.isNeededToRead && keys.isEmpty {
      return "auth-required: we only serve authenticated users"
    }
    for filter in filters {
      let kinds = filter.kinds ?? []
      if kinds.contains(where: rules.reading.refusedKinds.contains) {
        return "restricted: this relay does not serve those kinds"
      }
      if let refusal = refusalByRecipientGate(filter, keys) { return refusal }
      if kinds.contains(where: rules.reading.kindsGatedByAuthor.contains) {
        guard let authors = filter.authors, !authors.isEmpty, authors.allSatisfy(keys.contains)
        else { return "restricted: author-only kinds require authors=[self]" }
      }
      if let refusal = refusalByGroup(filter, keys) { return refusal }
    }
    return nil
  }

  private func refusalByRecipientGate(_ filter: Filter, _ keys: [PublicKey]) -> Text? {
    let gated = rules.reading.kindsGatedByRecipient
    guard !gated.isEmpty else { return nil }
    // A filter without kinds counts as naming them all, unless it asks for ids.
    let touches = filter.kinds?.contains(where: gated.contains) ?? (filter.ids == nil)
    guard touches else { return nil }
    // A kindless REQ for one channel cannot reach events that stand in no channel.
    if filter.kinds == nil && filter.tags[UInt8(ascii: "h")]?.isEmpty == false { return nil }
    let recipients = filter.tags[UInt8(ascii: "p")] ?? []
    let own = Set(keys.map { Text($0.hex) })
    if !recipients.isEmpty && recipients.allSatisfy(own.contains) { return nil }
    if rules.answers.wording == .buzz {
      return "restricted: p-gated events require #p matching your pubkey"
    }
    return recipients.isEmpty
      ? "restricted: these kinds need a #p scope"
      : "restricted: you may only scope those kinds to yourself"
  }

  private func refusalByGroup(_ filter: Filter, _ keys: [PublicKey]) -> Text? {
    guard rules.groups.areManaged, rules.groups.scopesReading else { return nil }
    for name in filter.tags[UInt8(ascii: "h")] ?? [] {
      guard let group = groups[name], group.isPrivate, !group.hasMember(of: keys) else { continue }
      return keys.isEmpty
        ? "auth-required: this group is for its members"
        : "restricted: not a channel member"
    }
    return nil
  }

  /// Whether an event may be shown to whoever holds one of `keys`.
  func isVisible(_ event: Event, to keys: [PublicKey]) -> Bool {
    if let expiry = event.tags.expiration, expiry <= now { return false }
    guard rules.groups.areManaged, rules.groups.scopesReading else { return true }
    return mayRead(event, with: keys)
  }

  /// The channel that an event is filed under: its own `h`, or that of what it reacts to or deletes.
  func scope(of event: Event) -> Text? {
    if let group = event.group { return group }
    return event.kind == 7 || event.kind == 5 ? scopeOfTarget(of: event) : nil
  }

  private func scopeOfTarget(of event: Event) -> Text? {
    var target: EventID?
    for tag in event.tags where tag.name == "e" { target = tag.bytes32(1).map(EventID.init) }
    // A store that fails to answer hides nothing that it would have shown: the target's own
    // visibility is judged where it is served.
    guard let target, let held = try? store.event(target) else { return nil }
    return held.group?.owned()
  }

  // MARK: The budget

  enum Spending {
    case request(SubscriptionID)
    case event(EventID)
  }

  /// Counts one frame against the sender's budget; the answer where there is none left.
  mutating func spend(from id: ConnectionID, on what: Spending) -> RelayMessage? {
    guard let budget = rules.limits.budget, let key = connection(id)?.keys.first else { return nil }
    var recent = spending[key, default: []].filter { $0 > uptime - budget.window }
    defer { spending[key] = recent }
    guard recent.count >= budget.framesMax, let oldest = recent.first else {
      recent.append(uptime)
      return nil
    }
    let wait = max(1, Int((oldest + budget.window - uptime).components.seconds))
    let text: Text =
      switch budget.wording {
      case .quotaExceeded: Text("rate-limited: quota exceeded; retry in \(wait)s")
      case .admissionUnavailable: "rate-limited: shared admission unavailable"
      case .tooManyRequests: "rate-limited: too many concurrent requests"
      }
    switch (budget.form, what) {
    case (.notice, _), (.noticeForEvents, .event): return .notice(text)
    case (_, .request(let subscription)): return .closed(subscription, text)
    case (_, .event(let event)): return .ok(event, accepted: false, text)
    }
  }
}
