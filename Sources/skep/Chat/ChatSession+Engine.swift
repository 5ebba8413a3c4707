import EventLog
import Nostr
import SyncCore
import SyncEngine

extension ChatSession {
  /// How long `/wait outbox` and `/wait live` wait at most.
  private static let patience: Duration = .seconds(120)

  func status() async throws {
    await engine.settleFaults()
    let snapshot = try StatusSnapshot(
      name: folder.name, log: store.reader, views: store.views, relays: engine.relays,
      deliveries: store.reader.deliveries(includingSent: true), now: now)
    let status = await engine.status()
    let states = status.relays.map { relay in
      (
        relay.url,
        [
          ("state", JSON(relay.state.name)), ("since", JSON(relay.since)),
          ("last_error", JSON(relay.lastError)), ("authenticated", JSON(relay.isAuthenticated)),
          ("caught_up", JSON(relay.isCaughtUp)), ("unsettled", JSON(relay.unsettled)),
          ("notice", JSON(relay.notice)),
          ("last_heard", JSON(relay.heardAt)),
          ("clock_skew", relay.clockSkew.map { JSON.int($0) } ?? .null),
          ("feeds", Self.feedFigures(of: relay)),
          ("refused_feeds", Self.refusedFeeds(of: relay)),
          ("next", JSON(next(for: relay, isOnline: status.isOnline))),
        ] as [(String, JSON)]
      )
    }
    try output.write(
      snapshot.json(relayStates: Dictionary(states, uniquingKeysWith: { first, _ in first })),
      snapshot.lines(
        isWhole: false,
        advice: "/gaps lists what is not proved, “skep status --all” tells all of it")
        + status.relays.flatMap { lines($0, isOnline: status.isOnline) })
  }

  /// The live feeds by how far each has come.
  private static func feeds(of relay: RelayStatus) -> [String: Int] {
    Dictionary(relay.subscriptions.map { (Self.name(of: $0.state), 1) }, uniquingKeysWith: +)
  }

  /// Every state with its count, those that no feed is in too.
  private static func feedFigures(of relay: RelayStatus) -> JSON {
    let counts = feeds(of: relay)
    return .object(
      ["wanted", "asked", "live", "refused", "parked"].map { ($0, JSON(counts[$0] ?? 0)) })
  }

  private static func refusedFeeds(of relay: RelayStatus) -> JSON {
    .array(
      relay.subscriptions.compactMap { feed in
        guard case .refused(let why) = feed.state else { return nil }
        return ["name": .text(feed.name), "why": .text(why)]
      })
  }

  private static func name(of state: SubscriptionState) -> String {
    switch state {
    case .wanted: "wanted"
    case .asked: "asked"
    case .live: "live"
    case .refused: "refused"
    case .parked: "parked"
    }
  }

  private func lines(_ relay: RelayStatus, isOnline: Bool) -> [String] {
    var words = [
      "connection " + SafeText.line(relay.url.description, cells: 60),
      isOnline ? relay.state.name : "offline", "since \(TimeWords.rfc3339(relay.since))",
    ]
    if relay.isCaughtUp { words.append("caught up") }
    if let why = relay.unsettled { words.append("not caught up: " + SafeText.line(why, cells: 80)) }
    if let heard = relay.heardAt { words.append("heard at \(TimeWords.rfc3339(heard))") }
    if let skew = relay.skewWords { words.append(skew) }
    for (state, count) in Self.feeds(of: relay).sorted(by: { $0.key < $1.key }) {
      words.append("\(count) feeds \(state)")
    }
    var lines = [words.joined(separator: ", ")]
    if let error = relay.lastError {
      lines.append("  failed   " + SafeText.line(error, cells: 100))
    }
    if let notice = relay.notice { lines.append("  it said  " + SafeText.line(notice, cells: 100)) }
    for feed in relay.subscriptions {
      guard case .refused(let why) = feed.state else { continue }
      lines.append(
        "  refused  \(SafeText.line(feed.name, cells: 40)): \(SafeText.line(why, cells: 100))")
    }
    lines.append("  next     " + next(for: relay, isOnline: isOnline))
    return lines
  }

  /// What Skep does next about a relay, or what the user can do.
  private func next(for relay: RelayStatus, isOnline: Bool) -> String {
    guard isOnline else { return "nothing until /online" }
    switch relay.state {
    case .stopped, .suspended: return "nothing until /online"
    case .connecting(let deadline): return "waits \(left(until: deadline)) for the connection"
    case .authenticating(let deadline):
      return "waits \(left(until: deadline)) to learn who may read here"
    case .backingOff(let until): return "tries again in \(left(until: until))"
    case .refused: return "nothing: the relay does not take this key; /online tries again"
    case .ready:
      if !relay.isCaughtUp { return "catches up with what was missed" }
      let parked = relay.count { $0 == .parked }
      return parked > 0
        ? "listens; \(parked) channels beyond the relay's limit are asked for in turn" : "listens"
    }
  }

  private func left(until deadline: Duration) -> String {
    Progress.time(max(0, Progress.seconds(deadline - context.clock.uptime())))
  }

  func synchronise() async throws {
    // It would connect and send, which somebody who is offline has ruled out.
    if !engine.relays.isEmpty, await !engine.status().isOnline {
      throw ChatFailure("offline", "offline: /online first")
    }
    let summary = try await engine.syncOnce(SyncPlan())
    await store.caughtUp()
    try output.write(Rows.summary(summary), Rows.summaryLines(summary))
  }

  /// - Returns: What the closing row says of the live feeds, where those were waited for.
  func wait(for goal: WaitGoal) async throws -> [(String, JSON)] {
    let outcome: WaitOutcome
    switch goal {
    case .outbox:
      // Offline nothing changes by itself, so waiting would only delay the reason.
      let isOnline = await engine.status().isOnline
      outcome = await engine.waitOutbox(for: isOnline ? Self.patience : .zero)
    case .live: outcome = await engine.waitLive(for: Self.patience)
    case .time(let time):
      try await context.clock.sleep(until: context.clock.uptime() + time)
      outcome = .reached
    }
    await store.caughtUp()
    switch outcome {
    case .reached: break
    case .timedOut:
      let late = goal == .live ? await laggards() : try await waiting()
      throw ChatFailure("timeout", "not within \(Self.patience.components.seconds) s\(late)")
    case .impossible(let why): throw ChatFailure("impossible", why.string)
    }
    guard goal == .live else { return [] }
    let feeds = await engine.status().relays.map { Self.feeds(of: $0) }
    let counts = feeds.reduce(into: [String: Int]()) { $0.merge($1, uniquingKeysWith: +) }
    let others = counts.filter { $0.key != "live" }.sorted { $0.key < $1.key }
    try output.say(
      "live: \(counts["live"] ?? 0) feeds"
        + others.map { ", \($0.value) \($0.key)" }.joined()
        + (others.isEmpty ? "" : "; /status says why"))
    return [("feeds", JSON(counts: counts))]
  }

  private static let laggardsMax = 5

  /// Why something still waits in the outbox.
  private func waiting() async throws -> String {
    var reasons = await engine.status().relays.filter { $0.state != .ready }.map { relay in
      "\(relay.url) is not reached: \(relay.lastError?.string ?? relay.state.name)"
    }
    let open = try store.reader.deliveries(includingSent: false).filter(\.state.isOpen)
    for case let why? in open.map(\.reason) where !reasons.contains(why.string) {
      reasons.append(why.string)
    }
    return "; \(open.count) not sent"
      + (reasons.isEmpty
        ? "" : ": " + reasons.prefix(Self.laggardsMax).joined(separator: "; "))
  }

  /// What was not live in time.
  private func laggards() async -> String {
    let late = await engine.status().relays.flatMap { relay -> [String] in
      guard relay.state == .ready else { return ["\(relay.url): \(relay.state.name)"] }
      let feeds = relay.subscriptions.filter { $0.state == .wanted || $0.state == .asked }
        .map { "\($0.name)" }
      return feeds + (relay.isCaughtUp ? [] : ["\(relay.url): still catching up"])
    }
    if late.isEmpty { return "" }
    return "; not live: " + late.prefix(Self.laggardsMax).joined(separator: ", ")
      + (late.count > Self.laggardsMax ? " and \(late.count - Self.laggardsMax) more" : "")
  }

  func help(_ name: String?) throws {
    let chosen = ChatLineParser.usages.filter { name == nil || $0.name == name }
    if chosen.isEmpty {
      throw ChatFailure("unknown-command", "there is no such command; /help lists them")
    }
    for usage in chosen {
      let words = "/" + usage.name + (usage.operands.isEmpty ? "" : " " + usage.operands)
      try output.write(
        ["type": "help", "usage": JSON(words), "about": JSON(usage.about)],
        ["  " + CellWidth.padded(words, to: 32) + usage.about])
    }
    if name == nil { try output.say("any other line is a message to the open channel") }
  }
}
