import EventLog
import Nostr
import SyncCore

/// The rows that more than one command prints.
enum Rows {
  static func gap(_ gap: CoverageGap) -> JSON { Rows.gap(OpenSpan(gap)) }

  static func gap(_ gap: OpenSpan) -> JSON {
    [
      "relay": JSON(gap.relay?.description), "scope": .raw(gap.scope.filter.json()),
      "group": JSON(gap.scope.group), "from": JSON(gap.from), "to": JSON(gap.to),
      "why": .text(gap.why),
    ]
  }

  static func coverage(_ row: LoggedCoverage) -> JSON {
    [
      "relay": JSON(row.relay.description), "scope": .raw(Array(row.scope.utf8)),
      "intervals": .array(
        row.intervals.map { interval in
          [
            "from": JSON(interval.from), "to": JSON(interval.to),
            "proved_at": JSON(interval.provedAt), "method": JSON(interval.method.rawValue),
          ]
        }),
    ]
  }

  /// - Parameter isAtWork: Whether a process runs that sends.
  static func delivery(_ delivery: Delivery, isAtWork: Bool) -> JSON {
    [
      "id": JSON(delivery.message.description), "event_id": JSON(delivery.eventID.hex),
      "relay": JSON(delivery.relay.description), "state": JSON(delivery.state.rawValue),
      "attempts": JSON(delivery.attempts), "reason": JSON(delivery.reason),
      "next_attempt_at": JSON(delivery.nextAttemptAt), "group": JSON(delivery.group),
      "handed_at": JSON(delivery.handedAt), "next": JSON(next(for: delivery, isAtWork: isAtWork)),
    ]
  }

  /// What happens next to a message, or what the user can do; nil where it has arrived.
  static func next(for delivery: Delivery, isAtWork: Bool) -> String? {
    switch delivery.state {
    case .queued, .held:
      if let time = delivery.nextAttemptAt { return "next at \(TimeWords.rfc3339(time))" }
      return isAtWork
        ? "goes when the relay can take it" : "goes with the next sync or chat"
    case .sending: return "waits for the relay's answer"
    case .unknown:
      return
        (isAtWork ? "the relay is asked" : "no answer came: the next sync or chat asks the relay")
        + " whether it has it, and it is sent again if not"
    case .refused, .expired: return "retry or discard it"
    case .sent: return nil
    }
  }

  static func deliveryLine(_ delivery: Delivery, isAtWork: Bool) -> String {
    var line =
      "\(delivery.message)  \(delivery.eventID.hex.prefix(8))  \(delivery.state.rawValue)"
      + "  \(SafeText.line(delivery.relay.description, cells: 60))"
    if delivery.attempts > 0 { line += "  tried \(delivery.attempts)×" }
    if let reason = delivery.reason { line += "  " + SafeText.line(reason, cells: 120) }
    if let next = next(for: delivery, isAtWork: isAtWork) { line += "  (" + next + ")" }
    return line
  }

  /// The outbox by state, each state with its count.
  static func outboxCounts(_ deliveries: [Delivery]) -> JSON {
    .object(
      DeliveryState.allCases.map { state in
        (state.rawValue, JSON(deliveries.count { $0.state == state }))
      })
  }

  static func gapLine(_ gap: CoverageGap) -> String { gapLine(OpenSpan(gap)) }

  static func gapLine(_ gap: OpenSpan) -> String {
    let place = gap.relay.map { " at " + SafeText.line($0.description, cells: 60) } ?? ""
    return
      "\(ScopeWords.text(gap.scope.filter))\(place): \(span(gap.from, gap.to)),"
      + " \(SafeText.line(gap.why, cells: 120))"
  }

  /// One proved span, how and when it was proved. What was proved piece by piece in one sitting is
  /// one interval, told with the earliest time.
  static func proof(_ interval: CoverageInterval) -> String {
    "\(span(interval.from, interval.to)), by \(interval.method.rawValue) at "
      + TimeWords.rfc3339(interval.provedAt)
      + (interval.to > interval.provedAt ? " and later" : "")
  }

  static func span(_ from: Timestamp, _ to: Timestamp) -> String {
    let start = from.seconds <= 0 ? "the beginning" : TimeWords.rfc3339(from)
    return from == to ? start : "\(start) to \(TimeWords.rfc3339(to))"
  }
}
