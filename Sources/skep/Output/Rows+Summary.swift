import Nostr
import SyncEngine

extension Rows {
  /// - Parameter unknownGroups: Groups that were asked for and of which no relay has anything: complete,
  ///   and perhaps a slip of the finger.
  static func summary(_ summary: SyncSummary, unknownGroups: [Text] = []) -> JSON {
    [
      "type": "summary", "stored": JSON(summary.stored), "duplicates": JSON(summary.duplicates),
      "rejected": JSON(counts: summary.rejected), "sent": JSON(summary.sent),
      "queued": JSON(summary.queued), "failed": JSON(summary.failed),
      "complete": JSON(summary.isComplete), "gaps": .array(summary.gaps.map(Rows.gap)),
      "via": ["negentropy": JSON(summary.viaNegentropy), "paging": JSON(summary.viaPaging)],
      "relays": .array(
        summary.relays.sorted { $0.key < $1.key }.map { relay, why in
          ["url": JSON(relay.description), "reached": .bool(why == nil), "error": JSON(why)]
        }),
      "unknown_groups": .array(unknownGroups.map { JSON($0) }),
    ]
  }

  /// What a run of reconciliation came to, for people.
  static func summaryLines(_ summary: SyncSummary) -> [String] {
    var words = [
      "\(Progress.grouped(summary.stored)) new", "\(Progress.grouped(summary.duplicates)) known",
    ]
    if summary.sent > 0 { words.append("\(summary.sent) sent") }
    if summary.queued > 0 { words.append("\(summary.queued) still waiting") }
    if summary.failed > 0 { words.append("\(summary.failed) not accepted") }
    for (reason, count) in summary.rejected.sorted(by: { $0.key < $1.key }) {
      words.append("\(count) rejected (\(reason))")
    }
    let verdict = summary.isComplete ? "complete" : "not proved complete"
    return ["\(verdict): " + words.joined(separator: ", ")]
      + summary.gaps.prefix(20).map { "gap: " + gapLine($0) }
      + (summary.gaps.count > 20 ? ["… and \(summary.gaps.count - 20) more gaps"] : [])
  }
}
