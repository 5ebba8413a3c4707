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
      now: now)
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
          ("feeds", JSON(counts: Self.feeds(of: relay))),
        ] as [(String, JSON)]
      )
    }
    try output.write(
      snapshot.json(relayStates: Dictionary(states, uniquingKeysWith: { first, _ in first })),
      snapshot.lines + status.relays.map { Self.line($0, isOnline: status.isOnline) })
  }

  /// The live feeds by how far each has come.
  private static func feeds(of relay: RelayStatus) -> [String: Int] {
    Dictionary(relay.subscriptions.map { (Self.name(of: $0.state), 1) }, uniquingKeysWith: +)
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

  private static func line(_ relay: RelayStatus, isOnline: Bool) -> String {
    var words = [
      "connection " + SafeText.line(relay.url.description, cells: 60),
      isOnline ? relay.state.name : "offline", "since \(TimeWords.rfc3339(relay.since))",
    ]
    if relay.isCaughtUp { words.append("caught up") }
    if let why = relay.unsettled { words.append("not caught up: " + SafeText.line(why, cells: 80)) }
    if let heard = relay.heardAt { words.append("heard at \(TimeWords.rfc3339(heard))") }
    if let skew = relay.skewWords { words.append(skew) }
    for (state, count) in feeds(of: relay).sorted(by: { $0.key < $1.key }) {
      words.append("\(count) feeds \(state)")
    }
    if let error = relay.lastError { words.append(SafeText.line(error, cells: 100)) }
    return words.joined(separator: ", ")
  }

  func synchronise() async throws {
    let summary = try await engine.syncOnce(SyncPlan())
    await store.caughtUp()
    try output.write(Rows.summary(summary), Rows.summaryLines(summary))
  }

  func wait(for goal: WaitGoal) async throws {
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
    case .timedOut: throw ChatFailure("timeout", "not within \(Self.patience.components.seconds) s")
    case .impossible(let why): throw ChatFailure("impossible", why.string)
    }
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
