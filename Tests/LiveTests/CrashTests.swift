import Foundation
import Testing

/// `kill -9` at moments drawn from the course of an undisturbed run, from its first commit on.
@Suite(.live, .serialized) struct CrashTests {
  private static let hint: Comment = "SKEP_LIVE_SEED=\(Live.seed) draws the same moments"

  /// When an undisturbed run first committed an event, and when it ended.
  private struct Course {
    let firstCommit: Double
    let end: Double
  }

  /// Moments spread over a span of seconds, one drawn from each of as many parts.
  private func moments(_ start: Double, _ end: Double) -> [Double] {
    var state = Live.seed
    return (0..<Live.killCount).map { part in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      let fraction = Double(state >> 11) * 0x1p-53
      return start + (end - start) * (Double(part) + fraction) / Double(Live.killCount)
    }
  }

  /// Runs undisturbed, watched from beside.
  private func course(of arguments: [String], in skep: Skep) async throws -> Course {
    let start = ContinuousClock.now
    async let running = skep.run(arguments)
    var firstCommit = 0.0
    while ContinuousClock.now - start < .seconds(60) {
      firstCommit = (ContinuousClock.now - start) / .seconds(1)
      let status = try await skep.run(["status", "--json"])
      let log = status.rows.first?["log"] as? [String: Any]
      if log?["events"] as? Int ?? 0 > 0 { break }
    }
    let run = try await running
    #expect(run.status == 0, "\(run.story)")
    return Course(firstCommit: firstCommit, end: (ContinuousClock.now - start) / .seconds(1))
  }

  /// Kills a run at each moment in a fresh home, then expects a sound store, and the same set as
  /// undisturbed from the next run.
  private func expectSurvival(
    of arguments: [String], wanting wanted: Set<String>, course: Course
  ) async throws {
    var killed = 0
    var afterFirstCommit = 0
    for moment in moments(course.firstCommit, course.end * 0.9) {
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
        + "\(afterFirstCommit) after the first commit; undisturbed \(course.end) s; seed \(Live.seed)"
    )
    #expect(killed > 0, "no run was long enough to be killed")
  }

  @Test func `a mirror killed at any moment is finished by the next run`() async throws {
    let data = try Scratch()
    try await Relay.with(.localRelay, in: data.path("data")) { relay in
      try await relay.publish(try await Corpus.file(max(Live.eventCount, 5000)))
      let served = try await relay.ids()
      let whole = try Skep()
      let arguments = ["mirror", relay.url, "--all", "--json", "--quiet"]
      let course = try await course(of: arguments, in: whole)
      try await expectSurvival(of: arguments, wanting: served, course: course)
    }
  }

  @Test func `an import killed at any moment is finished by the next run`() async throws {
    let file = try await Corpus.file(max(Live.eventCount, 5000))
    let whole = try Skep()
    let arguments = ["import", file, "--json", "--quiet"]
    let course = try await course(of: arguments, in: whole)
    let wanted = try await whole.ids()
    try await expectSurvival(of: arguments, wanting: wanted, course: course)
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
    for moment in moments(0, 0.1) {
      let skep = try Skep()
      _ = try await skep.run(arguments, seconds: moment, kill: true)
      if skep.hasLog { try await skep.expectSound("killed after \(moment) s") }
      #expect(try await skep.run(arguments).status == 0)
      #expect(try await skep.ids() == wanted, Self.hint)
    }
  }
}
