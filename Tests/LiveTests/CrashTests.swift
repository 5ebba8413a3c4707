import Foundation
import Testing

/// `kill -9` at moments drawn from the length of an undisturbed run.
@Suite(.live, .serialized) struct CrashTests {
  private static let hint: Comment = "SKEP_LIVE_SEED=\(Live.seed) draws the same moments"

  /// Moments spread over a run of `seconds`, one drawn from each of as many parts.
  private func moments(_ seconds: Double) -> [Double] {
    var state = Live.seed
    return (0..<Live.killCount).map { part in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      let fraction = Double(state >> 11) * 0x1p-53
      return seconds * (0.1 + 0.75 * (Double(part) + fraction) / Double(Live.killCount))
    }
  }

  /// How long an undisturbed run takes.
  private func seconds(of arguments: [String], in skep: Skep) async throws -> Double {
    let start = ContinuousClock.now
    let run = try await skep.run(arguments)
    #expect(run.status == 0, "\(run.story)")
    return (ContinuousClock.now - start) / .seconds(1)
  }

  /// Kills a run at each moment in a fresh home, then expects a sound store, and the same set as
  /// undisturbed from the next run.
  private func expectSurvival(
    of arguments: [String], wanting wanted: Set<String>, length: Double
  ) async throws {
    var killed = 0
    var afterFirstCommit = 0
    for moment in moments(length) {
      let skep = try Skep()
      let run = try await skep.run(arguments, seconds: moment, kill: true)
      if skep.hasLog {
        try await skep.expectSound("killed after \(moment) s")
        if run.status == 137 {
          killed += 1
          if try await !skep.ids().isEmpty { afterFirstCommit += 1 }
        }
      }
      let next = try await skep.run(arguments)
      #expect(next.status == 0, "after \(moment) s: \(next.story)")
      #expect(try await skep.ids() == wanted, Self.hint)
      try await skep.expectSound("after the next run")
    }
    print(
      "\(arguments[0]) of \(wanted.count) events: \(killed) of \(Live.killCount) kills hit, "
        + "\(afterFirstCommit) after the first commit; undisturbed \(length) s; seed \(Live.seed)")
    #expect(killed > 0, "no run was long enough to be killed")
  }

  @Test func `a mirror killed at any moment is finished by the next run`() async throws {
    let data = try Scratch()
    try await Relay.with(.localRelay, in: data.path("data")) { relay in
      try await relay.publish(try await Corpus.file(max(Live.eventCount, 5000)))
      let served = try await relay.ids()
      let whole = try Skep()
      let arguments = ["mirror", relay.url, "--all", "--json", "--quiet"]
      let length = try await seconds(of: arguments, in: whole)
      try await expectSurvival(of: arguments, wanting: served, length: length)
    }
  }

  @Test func `an import killed at any moment is finished by the next run`() async throws {
    let file = try await Corpus.file(max(Live.eventCount, 5000))
    let whole = try Skep()
    let arguments = ["import", file, "--json", "--quiet"]
    let length = try await seconds(of: arguments, in: whole)
    let wanted = try await whole.ids()
    try await expectSurvival(of: arguments, wanting: wanted, length: length)
  }

  @Test func `a log whose making is cut short is empty and sound, and the next run makes it`()
    async throws
  {
    let file = try await Corpus.file(1000)
    let arguments = ["import", file, "--json", "--quiet"]
    let whole = try Skep()
    _ = try await whole.run(arguments)
    let wanted = try await whole.ids()
    // The log is made within the first moments, whatever is imported.
    for moment in moments(0.1) {
      let skep = try Skep()
      _ = try await skep.run(arguments, seconds: moment, kill: true)
      if skep.hasLog { try await skep.expectSound("killed after \(moment) s") }
      #expect(try await skep.run(arguments).status == 0)
      #expect(try await skep.ids() == wanted, Self.hint)
    }
  }
}
