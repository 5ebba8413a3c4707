import EventLog
import Foundation
import HotCache
import Nostr
import NostrCrypto
import Platform
import SyncCore
import SyncEngine

/// `skep verify` without a file: everything that is kept, against itself.
struct LogCheck {
  private let context: Context
  private let community: ReadingCommunity
  private static let chunk = 2000

  init(_ context: Context) throws {
    self.context = context
    community = try ReadingCommunity.chosen(context)
  }

  func run() async throws -> ExitCode {
    var problems = try community.log.integrity()
    let (ok, rejected) = try await checkEvents(&problems)
    if let code = context.stop.code { return code }
    problems += try checkCoverage()
    let digests = try await Self.digests(of: community, clock: context.clock)
    if digests.live != digests.rebuilt {
      problems.append(
        "the cache differs from a fold of the log: “skep doctor --rebuild-cache” makes it anew")
    }
    let notes = try notes()
    for line in problems + notes { context.talk.say(SafeText.line(line, cells: 300)) }
    if context.wantsJSON {
      try context.out.write(
        row: [
          "type": "summary", "ok": JSON(ok), "rejected": JSON(rejected),
          "problems": .array(problems.map { JSON($0) }), "notes": .array(notes.map { JSON($0) }),
          "cache": ["live": JSON(digests.live), "rebuilt": JSON(digests.rebuilt)],
        ])
    } else {
      context.talk.say(
        "\(Progress.grouped(ok)) events verified, \(rejected) rejected; "
          + (problems.isEmpty
            ? "nothing is wrong" : problems.count == 1 ? "1 problem" : "\(problems.count) problems")
      )
    }
    return problems.isEmpty && rejected == 0 ? .done : .invalid
  }

  /// Recomputes every id and checks every signature.
  private func checkEvents(_ problems: inout [String]) async throws -> (ok: Int, rejected: Int) {
    let verifier = Verifier()
    let work = WorkPool()
    var progress = Progress()
    progress.total = try community.log.counts().events
    var ok = 0
    var rejected = 0
    var place = LogSequence.start
    while !context.stop.isRequested {
      let entries = try community.log.entries(after: place, limit: Self.chunk)
      guard let last = entries.last else { break }
      place = last.sequence
      let logged = entries.compactMap { entry -> LoggedEvent? in
        if case .event(let event) = entry.body { event } else { nil }
      }
      let verdicts = await verifier.verify(logged.map(\.event), on: work)
      for (row, verdict) in zip(logged, verdicts) {
        switch verdict {
        case .success(let event) where event.idForm == row.idForm: ok += 1
        case .success:
          rejected += 1
          problems.append("event \(row.event.id) is marked with the wrong id form")
        case .failure(let failure):
          rejected += 1
          if rejected <= 100 {
            problems.append("event \(row.event.id) does not verify: \(failure.reason)")
          }
        }
      }
      context.talk.progress(progress.line("verified", done: ok + rejected))
    }
    return (ok, rejected)
  }

  /// Proofs made while the clock was ahead are no damage: they count for nothing, and the next run
  /// proves it all again.
  private func notes() throws -> [String] {
    let now = context.clock.now()
    let ahead = try community.log.coverage(asOf: nil).flatMap(\.intervals)
      .filter { !$0.isBelievable(at: now) }
    guard let latest = ahead.map(\.provedAt).max() else { return [] }
    return [
      "\(ahead.count == 1 ? "a proof was" : "\(ahead.count) proofs were") made while the clock was "
        + "ahead (the latest at \(TimeWords.rfc3339(latest))) and count for nothing; nothing is "
        + "damaged. See that the clock is right: “skep sync --once” proves it again"
    ]
  }

  /// Proofs must be about scopes that can be read.
  private func checkCoverage() throws -> [String] {
    var problems: [String] = []
    for row in try community.log.coverage(asOf: nil) {
      if (try? Filter(json: row.scope.utf8)) == nil {
        problems.append("the coverage of \(row.relay) has a scope that is no filter: \(row.scope)")
      }
    }
    return problems
  }

  /// The digest of the cache as it stands, and of one that is folded anew in a scratch folder.
  static func digests(
    of community: ReadingCommunity, clock: any SyncClock
  ) async throws -> (live: String, rebuilt: String) {
    let live = try community.views().read { snapshot throws(CacheError) in try snapshot.digest() }
    let scratch =
      NSTemporaryDirectory() + "/skep-check-\(ProcessInfo.processInfo.processIdentifier)"
    // Left-overs in a temporary folder do no harm.
    defer { try? FileManager.default.removeItem(atPath: scratch) }
    try FileManager.default.createDirectory(
      atPath: scratch, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let cache = await HotCache.open(
      directory: scratch, log: community.log, executor: ThreadExecutor())
    try await cache.catchUp()
    let rebuilt = try cache.views.read { snapshot throws(CacheError) in try snapshot.digest() }
    await cache.close()
    return (live.description, rebuilt.description)
  }
}
