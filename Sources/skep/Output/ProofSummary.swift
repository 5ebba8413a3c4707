import EventLog
import Nostr
import SyncCore

/// What is proved and what is not, in few lines however many groups there are: scopes of one kind
/// at one relay share a line.
struct ProofSummary {
  let lines: [String]
  /// Whether a line stands for more than it says.
  let isShortened: Bool

  private static let intervalsShownMax = 3

  init(coverage: [LoggedCoverage], open: [OpenSpan]) {
    var lines: [String] = []
    var isShortened = false
    for family in Self.families(coverage, by: { Family(relay: $0.relay, scope: $0.scope) }) {
      if let row = family.only {
        isShortened = isShortened || row.intervals.count > Self.intervalsShownMax
        lines += Self.lines(of: row)
      } else {
        isShortened = true
        lines.append(Self.line(of: family))
      }
    }
    let spans = Self.families(open) {
      Family(relay: $0.relay, scope: $0.scope.key, why: $0.why)
    }
    for family in spans {
      if let gap = family.only {
        lines.append("not proved " + Rows.gapLine(gap))
      } else {
        isShortened = true
        let why = family.key.why.map { ": " + SafeText.line($0, cells: 120) } ?? ""
        lines.append("not proved " + family.subject + why)
      }
    }
    self.lines = lines
    self.isShortened = isShortened
  }

  // MARK: Families

  /// What scopes of one kind have in common.
  private struct Family: Hashable {
    let relay: RelayURL?
    /// In a person's words; the scope's own where it is about no group.
    let what: String
    let isOfGroups: Bool
    let why: Text?

    init(relay: RelayURL?, scope: Text, why: Text? = nil) {
      let filter = try? Filter(json: scope.utf8)
      // A scope that is no filter stands for itself.
      let part = filter.flatMap { ScopeWords.ofGroup($0) }
      self.relay = relay
      self.why = why
      isOfGroups = part != nil
      what = part?.what ?? filter.map { ScopeWords.text($0) } ?? SafeText.line(scope, cells: 60)
    }
  }

  private struct Members<Row> {
    let key: Family
    var rows: [Row]
    var groups: Set<Text> = []

    var only: Row? { rows.count == 1 ? rows[0] : nil }

    var subject: String {
      let count = key.isOfGroups ? " of \(groups.count) groups" : ", \(rows.count) spans"
      return key.what + count
        + (key.relay.map { " at " + SafeText.line($0.description, cells: 60) } ?? "")
    }
  }

  /// The rows by family, in the order in which each family comes first.
  private static func families<Row: ScopedRow>(
    _ rows: [Row], by family: (Row) -> Family
  ) -> [Members<Row>] {
    var places: [Family: Int] = [:]
    var result: [Members<Row>] = []
    for row in rows {
      let key = family(row)
      let place = places[key] ?? result.count
      if place == result.count {
        places[key] = place
        result.append(Members(key: key, rows: []))
      }
      result[place].rows.append(row)
      if let group = row.groupNamed { result[place].groups.insert(group) }
    }
    return result
  }

  // MARK: What is proved

  private static func lines(of row: LoggedCoverage) -> [String] {
    let subject = "proved     \(StatusSnapshot.subject(of: row)): "
    guard row.intervals.count > intervalsShownMax, let first = row.intervals.first,
      let last = row.intervals.last
    else { return row.intervals.map { subject + Rows.proof($0) } }
    return [
      subject + "\(row.intervals.count) spans between the first,"
        + " \(Rows.span(first.from, first.to)), and the last, \(Rows.span(last.from, last.to))"
    ]
  }

  private static func line(of family: Members<LoggedCoverage>) -> String {
    let whole = family.rows.count { $0.intervals.count == 1 && $0.intervals[0].from.seconds <= 0 }
    let ends = family.rows.compactMap { $0.intervals.map(\.to).max() }
    let proofs = family.rows.flatMap(\.intervals).map(\.provedAt)
    let parts = family.rows.count - whole
    let extent =
      parts == 0
      ? "from the beginning"
      : whole == 0 ? "in parts" : "\(whole) from the beginning, \(parts) in parts"
    var line = "proved     \(family.subject): \(extent)"
    if let first = ends.min(), let last = ends.max() {
      line += ", to \(TimeWords.rfc3339(first))"
      if last > first { line += " at least, \(TimeWords.rfc3339(last)) at most" }
    }
    if let first = proofs.min() { line += ", proved at \(TimeWords.rfc3339(first)) or later" }
    return line
  }
}

/// A row about a scope, which may be about a group.
private protocol ScopedRow {
  var groupNamed: Text? { get }
}

extension LoggedCoverage: ScopedRow {
  fileprivate var groupNamed: Text? {
    // A scope that is no filter is about no group.
    (try? Filter(json: scope.utf8)).flatMap { ScopeWords.ofGroup($0)?.group }
  }
}

extension OpenSpan: ScopedRow {
  fileprivate var groupNamed: Text? { ScopeWords.ofGroup(scope.filter)?.group }
}
