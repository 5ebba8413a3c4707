@testable import EventLog
import Nostr
import SyncCore
import Testing

@testable import skep_cli

@Suite struct ProofSummaryTests {
  private static func relay() throws -> RelayURL {
    try #require(RelayURL("ws://relay.example:1"))
  }

  private func row(_ filter: Filter, _ spans: [(Int64, Int64)]) throws -> LoggedCoverage {
    LoggedCoverage(
      relay: try Self.relay(), scope: Scope(filter).key,
      intervals: spans.map {
        CoverageInterval(
          from: Timestamp($0.0), to: Timestamp($0.1), provedAt: 1000, method: .paging)
      })
  }

  private func gap(_ filter: Filter, _ why: Text) throws -> OpenSpan {
    OpenSpan(relay: try Self.relay(), scope: Scope(filter), from: 0, to: 900, why: why)
  }

  private func groups(_ count: Int) -> [Text] { (0..<count).map { Text("den\($0)") } }

  @Test func `three hundred groups are a few lines, and none of them is left out`() throws {
    var coverage = try groups(300).flatMap { group in
      [
        try row(.group(group, kinds: SyncScopes.contentKinds), [(0, 900)]),
        try row(.group(group, kinds: SyncScopes.controlKinds), [(0, 900)]),
      ]
    }
    coverage[0] = try row(.group("den0", kinds: SyncScopes.contentKinds), [(0, 100), (200, 950)])
    let open =
      try groups(20).map { try gap(.group($0), "restricted: not a member") }
      + [try gap(Filter.group("den21"), "no answer")]
    let summary = ProofSummary(coverage: coverage, open: open)
    #expect(summary.isShortened)
    #expect(summary.lines.count == 4, "\(summary.lines)")
    #expect(summary.lines[0].contains("messages of 300 groups"))
    #expect(summary.lines[0].contains("299 from the beginning, 1 in parts"))
    #expect(summary.lines[0].contains("1970-01-01T00:15:00Z at least"))
    #expect(summary.lines[1].contains("reactions, edits and deletions of 300 groups"))
    #expect(summary.lines[2].contains("all of 20 groups"))
    #expect(summary.lines[2].contains("restricted: not a member"))
    #expect(summary.lines[3].contains("all of den21") && summary.lines[3].contains("no answer"))
  }

  @Test func `what stands alone is told whole`() throws {
    let coverage = [
      try row(Filter(), [(0, 100), (200, 900)]), try row(.group("den"), [(5, 900)]),
    ]
    let summary = ProofSummary(coverage: coverage, open: [try gap(.group("den"), "no answer")])
    #expect(!summary.isShortened)
    #expect(summary.lines.count == 4, "\(summary.lines)")
    #expect(summary.lines[0].contains("everything") && summary.lines[0].contains("by paging at"))
  }

  @Test func `a scope in many pieces is one line`() throws {
    let pieces = (0..<40).map { (number: Int64) in (number * 10, number * 10 + 5) }
    let summary = ProofSummary(coverage: [try row(Filter(), pieces)], open: [])
    #expect(summary.isShortened && summary.lines.count == 1)
    #expect(summary.lines[0].contains("40 spans"))
  }
}
