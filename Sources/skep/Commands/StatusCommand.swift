import EventLog
import HotCache
import Nostr
import SyncCore
import SyncEngine

/// `skep status`.
enum StatusCommand: Command {
  static let spec = CommandSpec(
    "status", options: [.flag("all", "every scope and span on a line of its own")],
    about: "Says what is held, what was proved, what waits to be sent, and how the stores stand.",
    examples: ["skep status", "skep status --json --community relay.example.com"])

  static func run(_ context: Context) async throws -> ExitCode {
    let community = try ReadingCommunity.chosen(context)
    let snapshot = try StatusSnapshot(community, now: context.clock.now())
    if context.wantsJSON {
      try context.out.write(row: snapshot.json(relayStates: [:]))
    } else {
      let isWhole = context.invocation.has("all")
      for line in snapshot.lines(
        isWhole: isWhole, advice: "“skep status --all” tells it scope by scope")
      { try context.out.write(line: line) }
    }
    return .done
  }
}

/// What `status` tells about one community, read once.
struct StatusSnapshot {
  let name: String
  let relays: [RelayURL]
  let settings: CommunitySettings
  let coverage: [LoggedCoverage]
  /// What is not proved, and why.
  let open: [OpenSpan]
  let deliveries: [Delivery]
  let cacheState: CacheState
  let slowestRead: Duration?
  let applied: LogSequence
  let head: LogSequence
  let counts: LogCounts

  init(_ community: ReadingCommunity, now: Timestamp) throws {
    try self.init(
      name: community.folder.name, log: community.log, views: community.views(),
      relays: community.relays(), deliveries: community.deliveries(includingSent: true), now: now)
  }

  init(
    name: CommunityName, log: LogReader, views: CacheViews, relays: [RelayURL],
    deliveries: [Delivery], now: Timestamp
  ) throws {
    self.name = name.text
    self.relays = relays
    settings = try CommunitySettings(log)
    coverage = try log.coverage(asOf: now)
    self.deliveries = deliveries
    let groups: [Text]
    (applied, cacheState, groups) = try views.read { snapshot throws(CacheError) in
      (snapshot.applied, snapshot.state, try snapshot.groups(now: now).map(\.id))
    }
    open = Completeness(coverage: coverage, gaps: try log.gaps(), relays: relays, now: now)
      .open(groups: groups)
    slowestRead = views.slowestRead
    head = try log.head()
    counts = try log.counts()
  }

  /// - Parameter relayStates: What a running engine knows beyond the stores, by relay.
  func json(relayStates: [RelayURL: [(String, JSON)]]) -> JSON {
    let relayRows = relays.map { relay -> JSON in
      let known = relayStates[relay] ?? [("state", "offline"), ("since", nil), ("last_error", nil)]
      let rejects = counts.rejects.filter { $0.relay == relay }
      let faults = counts.faults.filter { $0.relay == relay }
      return .object(
        [
          ("url", JSON(relay.description)),
          ("offered_self", JSON(settings.offeredSelves[relay]?.hex)),
        ] + known
          + [
            (
              "rejected",
              JSON(counts: Dictionary(rejects.map { ($0.reason, $0.count) }, uniquingKeysWith: +))
            ),
            (
              "faults",
              JSON(counts: Dictionary(faults.map { ($0.reason, $0.count) }, uniquingKeysWith: +))
            ),
          ])
    }
    return [
      "type": "status", "community": JSON(name), "self": JSON(settings.relaySelf?.hex),
      "relays": .array(relayRows),
      "coverage": .array(coverage.map(Rows.coverage)), "gaps": .array(open.map(Rows.gap)),
      "outbox": Rows.outboxCounts(deliveries),
      "cache": [
        "state": JSON(cacheState.name), "applied": .int(applied.number),
        "head": .int(head.number),
        "slowest_read_seconds": JSON(slowestRead.map { Int($0.components.seconds) }),
      ],
      "log": [
        "events": JSON(counts.events), "bytes": JSON(counts.bytes),
        "facts": JSON(counts.facts), "rejected": JSON(counts: rejectedByReason),
      ],
    ]
  }

  private var rejectedByReason: [String: Int] {
    Dictionary(counts.rejects.map { ($0.reason, $0.count) }, uniquingKeysWith: +)
  }

  /// - Parameters:
  ///   - isWhole: Tells every scope; else scopes of one kind share a line.
  ///   - advice: Says how to see every scope.
  func lines(isWhole: Bool, advice: String) -> [String] {
    var lines = ["community  \(SafeText.line(name, cells: 60))"]
    for (index, relay) in relays.enumerated() {
      lines.append(
        "relay      \(SafeText.line(relay.description, cells: 60))\(index == 0 ? " (home)" : "")")
    }
    lines.append(
      "log        \(Progress.grouped(counts.events)) events, \(Progress.grouped(counts.bytes / 1024)) KiB"
    )
    lines.append("cache      \(cacheState.name), \(applied) of \(head) entries folded")
    if let slowestRead {
      lines.append("cache      a read took \(slowestRead.components.seconds) s, which lets it grow")
    }
    let waiting = deliveries.filter { $0.state != .sent }
    lines.append(
      waiting.isEmpty
        ? "outbox     empty"
        : "outbox     "
          + DeliveryState.allCases.filter { $0 != .sent }.compactMap { state in
            let count = waiting.count { $0.state == state }
            return count > 0 ? "\(count) \(state.rawValue)" : nil
          }.joined(separator: ", "))
    lines += settings.offerLines.map { "self       " + $0 }
    if isWhole {
      for row in coverage { lines += coverageLines(row) }
      for gap in open { lines.append("not proved " + Rows.gapLine(gap)) }
    } else {
      let summary = ProofSummary(coverage: coverage, open: open)
      lines += summary.lines
      if summary.isShortened { lines.append("           " + advice) }
    }
    if coverage.isEmpty { lines.append("proved     nothing") }
    for (reason, count) in rejectedByReason.sorted(by: { $0.key < $1.key }) {
      lines.append("rejected   \(count) for \(SafeText.line(reason, cells: 40))")
    }
    for fault in counts.faults {
      lines.append(
        "fault      \(fault.count) \(SafeText.line(fault.reason, cells: 40)) by "
          + "\(SafeText.line(fault.relay.description, cells: 60)), "
          + "last at \(TimeWords.rfc3339(fault.lastAt))")
    }
    return lines
  }

  private func coverageLines(_ row: LoggedCoverage) -> [String] {
    row.intervals.map { "proved     \(Self.subject(of: row)): " + Rows.proof($0) }
  }

  /// How far each proof reaches, for somebody who wants to know what there may be since.
  var reachLines: [String] {
    coverage.compactMap { row in
      row.intervals.map(\.to).max().map { "\(TimeWords.rfc3339($0)) for \(Self.subject(of: row))" }
    }
  }

  static func subject(of row: LoggedCoverage) -> String {
    // A scope that is no filter is shown as it is written.
    let words = (try? Filter(json: row.scope.utf8)).map { ScopeWords.text($0) }
    return (words ?? SafeText.line(row.scope, cells: 60)) + " at "
      + SafeText.line(row.relay.description, cells: 60)
  }
}
