@testable import EventLog
import Nostr
import SyncCore
import Testing

@testable import skep_cli

@Suite struct CompletenessTests {
  private static let relay = RelayURL("ws://relay.example:1")

  private func scope(_ filter: Filter) -> Scope { Scope(filter) }

  private func coverage(
    _ filter: Filter, _ spans: [(Int64, Int64)]
  ) throws -> LoggedCoverage {
    LoggedCoverage(
      relay: try #require(Self.relay), scope: Scope(filter).key,
      intervals: spans.map {
        CoverageInterval(
          from: Timestamp($0.0), to: Timestamp($0.1), provedAt: Timestamp($0.1), method: .paging)
      })
  }

  private func verdict(
    _ coverage: [LoggedCoverage], gaps: [CoverageGap] = [], on filter: Filter
  ) -> ProvedScopes.Verdict {
    Completeness(
      coverage: coverage, gaps: gaps, relays: [Self.relay].compactMap { $0 }, now: 1000
    ).verdict(on: filter)
  }

  private let general = Filter.group("general")

  @Test func `nothing proved is never complete`() {
    #expect(!verdict([], on: general).isComplete)
  }

  @Test func `a scope proved from the beginning is complete`() throws {
    let result = verdict([try coverage(general, [(0, 900)])], on: general)
    #expect(result == ProvedScopes.Verdict(isComplete: true, gaps: [], asOf: 900))
  }

  @Test func `a hole between two proofs is a gap with its exact bounds`() throws {
    let result = verdict([try coverage(general, [(0, 100), (201, 900)])], on: general)
    #expect(!result.isComplete)
    #expect(result.gaps.map(\.from) == [101])
    #expect(result.gaps.map(\.to) == [200])
  }

  @Test func `a hole outside the time asked for does not matter`() throws {
    var asked = general
    asked.since = 201
    #expect(verdict([try coverage(general, [(0, 100), (201, 900)])], on: asked).isComplete)
    asked.since = 200
    #expect(!verdict([try coverage(general, [(0, 100), (201, 900)])], on: asked).isComplete)
  }

  @Test func `a gap of one group is none where the same relay was read for all`() throws {
    let relay = try #require(Self.relay)
    let other = try #require(RelayURL("ws://other.example:1"))
    func gap(_ relay: RelayURL) -> CoverageGap {
      CoverageGap(relay: relay, scope: Scope(general), from: 0, to: 950, why: "stopped")
    }
    func told(_ proof: LoggedCoverage, _ gap: CoverageGap) -> [OpenSpan] {
      Completeness(
        coverage: [proof, list(gap.relay)], gaps: [gap], relays: [gap.relay], now: 1000
      ).open(groups: [])
    }
    let wide = try coverage(Filter(), [(0, 900)])
    #expect(told(wide, gap(relay)).map(\.from) == [901])
    #expect(told(wide, gap(relay)).map(\.to) == [950])
    #expect(told(wide, gap(other)) == [OpenSpan(gap(other))])
    // A narrower proof, or one of the same scope that the gap came after, closes nothing.
    let narrow = Filter.group("general", kinds: [.reaction])
    #expect(told(try coverage(narrow, [(0, 960)]), gap(relay)) == [OpenSpan(gap(relay))])
    #expect(told(try coverage(general, [(0, 960)]), gap(relay)) == [OpenSpan(gap(relay))])
  }

  @Test func `a time after the newest proof is not proved`() throws {
    var asked = general
    asked.until = 950
    #expect(!verdict([try coverage(general, [(0, 900)])], on: asked).isComplete)
    asked.until = 900
    #expect(verdict([try coverage(general, [(0, 900)])], on: asked).isComplete)
  }

  @Test func `a wider scope that is proved is enough`() throws {
    let proofs = [try coverage(Filter(), [(0, 900)]), try coverage(general, [(500, 900)])]
    #expect(verdict(proofs, on: general).isComplete)
  }

  @Test func `another group's scope says nothing`() throws {
    let proofs = [try coverage(.group("kitchen"), [(0, 900)])]
    #expect(!verdict(proofs, on: general).isComplete)
  }

  @Test func `a recorded gap is told with its reason`() throws {
    let gap = CoverageGap(
      relay: try #require(Self.relay), scope: Scope(general), from: 50, to: 50,
      why: "too many events in one second")
    let result = verdict([try coverage(general, [(0, 49), (51, 900)])], gaps: [gap], on: general)
    #expect(!result.isComplete)
    #expect(result.gaps == [OpenSpan(gap)])
  }

  @Test func `proofs of two relays for one scope join`() throws {
    let other = try #require(RelayURL("ws://other.example:1"))
    let first = try coverage(general, [(0, 400)])
    let second = LoggedCoverage(
      relay: other, scope: first.scope,
      intervals: [CoverageInterval(from: 401, to: 900, provedAt: 900, method: .negentropy)])
    #expect(verdict([first, second], on: general).isComplete)
  }

  @Test func `a gap of one replica is none where another was proved, and else it stays`() throws {
    let other = try #require(RelayURL("ws://other.example:1"))
    let gap = CoverageGap(
      relay: other, scope: Scope(general), from: 100, to: 200, why: "restricted: not a member")
    #expect(
      verdict([try coverage(general, [(0, 900)])], gaps: [gap], on: general)
        == ProvedScopes.Verdict(isComplete: true, gaps: [], asOf: 900))
    let partly = verdict([try coverage(general, [(0, 150), (201, 900)])], gaps: [gap], on: general)
    #expect(partly == ProvedScopes.Verdict(isComplete: false, gaps: [OpenSpan(gap)]))
  }

  // MARK: What is not proved

  /// A proof of which groups there are.
  private func list(_ relay: RelayURL) -> LoggedCoverage {
    LoggedCoverage(
      relay: relay, scope: SyncScopes.groupList.key,
      intervals: [CoverageInterval(from: 0, to: 900, provedAt: 900, method: .paging)])
  }

  @Test func `where only one group was read, the list of groups is open`() throws {
    let relay = try #require(Self.relay)
    func told(_ coverage: [LoggedCoverage]) -> [OpenSpan] {
      Completeness(coverage: coverage, gaps: [], relays: [relay], now: 1000).open(groups: [])
    }
    let kitchen = try coverage(.group("kitchen"), [(0, 900)])
    #expect(told([kitchen]).map(\.scope) == [SyncScopes.groupList])
    #expect(told([kitchen, list(relay)]) == [])
  }

  @Test func `what was read to a chosen end only is open from there on`() throws {
    let relay = try #require(Self.relay)
    let bounded = LoggedCoverage(
      relay: relay, scope: Scope(Filter()).key,
      intervals: [CoverageInterval(from: 300, to: 600, provedAt: 900, method: .paging)])
    let spans = try open([bounded])
    #expect(spans.map { [$0.from, $0.to] } == [[0, 299], [601, 1000]])
    #expect(try open([bounded, coverage(Filter(), [(0, 700)])]) == [])
  }

  private func open(
    _ coverage: [LoggedCoverage], gaps: [CoverageGap] = [], groups: [Text] = []
  ) throws -> [OpenSpan] {
    let relay = try #require(Self.relay)
    return Completeness(
      coverage: coverage + [list(relay)], gaps: gaps, relays: [relay], now: 1000
    ).open(groups: groups)
  }

  @Test func `a relay of which nothing is proved is one open span`() throws {
    let spans = Completeness(
      coverage: [], gaps: [], relays: [try #require(Self.relay)], now: 1000
    ).open(groups: ["general", "kitchen"])
    #expect(spans.map(\.scope) == [Scope(Filter())])
    #expect(spans.map(\.from) == [0] && spans.map(\.to) == [1000])
  }

  @Test func `without a relay everything is open, and no relay is named`() {
    let spans = Completeness(coverage: [], gaps: [], relays: [], now: 1000).open(groups: ["a"])
    #expect(spans.count == 1 && spans[0].relay == nil)
  }

  @Test func `what is proved from the beginning leaves nothing open`() throws {
    #expect(try open([try coverage(Filter(), [(0, 900)])], groups: ["general"]) == [])
  }

  @Test func `a hole between proofs and a group that was never asked for are open`() throws {
    let classes = [SyncScopes.contentKinds, SyncScopes.controlKinds, SyncScopes.moderationKinds]
    var proofs = try classes.map { try coverage(.group("general", kinds: $0), [(0, 900)]) }
    #expect(try open(proofs, groups: ["general"]) == [])
    let spans = try open(proofs, groups: ["general", "kitchen"])
    #expect(spans.map(\.scope) == [Scope(Filter.group("kitchen"))])
    proofs[0] = try coverage(.group("general", kinds: classes[0]), [(0, 100), (201, 900)])
    #expect(try open(proofs, groups: ["general"]).map { [$0.from, $0.to] } == [[101, 200]])
    proofs.remove(at: 0)
    let missing = Scope(Filter.group("general", kinds: classes[0]))
    #expect(try open(proofs, groups: ["general"]).map(\.scope) == [missing])
  }

  @Test func `a recorded gap is open once, with its own reason`() throws {
    let gap = CoverageGap(
      relay: try #require(Self.relay), scope: Scope(Filter()), from: 50, to: 50, why: "too dense")
    let spans = try open([try coverage(Filter(), [(0, 49), (51, 900)])], gaps: [gap])
    #expect(spans == [OpenSpan(gap)])
  }

  @Test func `a doubt about a second that was proved before is told by status and query alike`()
    throws
  {
    let gap = CoverageGap(
      relay: try #require(Self.relay), scope: Scope(Filter()), from: 800, to: 800,
      why: "an event that is not what it says")
    let proof = try coverage(Filter(), [(0, 900)])
    #expect(try open([proof], gaps: [gap]) == [OpenSpan(gap)])
    #expect(
      verdict([proof], gaps: [gap], on: Filter()) == .init(isComplete: false, gaps: [OpenSpan(gap)])
    )
  }

  @Test func `a scope is told in words`() throws {
    let group = Filter.group("general", kinds: SyncScopes.contentKinds)
    #expect(ScopeWords.text(group) == "messages of general")
    #expect(ScopeWords.text(Filter()) == "everything")
    #expect(ScopeWords.text(Scope(group).filter) == "messages of general")
    #expect(!ScopeWords.text(.group("a\u{1b}[2Jb")).contains("\u{1b}"))
  }
}
