import EventLog
import Nostr
import Platform
import SyncCore
import SyncEngine

/// `skep import`.
enum ImportCommand: Command {
  static let spec = CommandSpec(
    "import", "FILE|-", count: 1...1,
    options: [
      .value("rejects", "FILE", "where the lines that were refused go, as they are, however long"),
      .value("self", "PUBKEY", "the relay's key, whose statements about groups then count"),
    ],
    about: "Takes events from JSON lines. Doing it again changes nothing; bad lines never stop it.",
    examples: ["skep import archive.jsonl", "skep import - --rejects bad.jsonl < archive.jsonl"])

  static func run(_ context: Context) async throws -> ExitCode {
    let relayKey = try context.invocation.value("self").map { word in
      guard let key = NameWords.publicKey(word) else {
        throw context.usage(
          "--self “\(SafeText.line(word, cells: 80))” is no key: expected npub1… or 64 hex digits")
      }
      return key
    }
    let source = try ByteSource(path: context.invocation.operands[0], stop: context.stop)
    let rejects = try OutputPath.given("rejects", context)
    if rejects == OutputPath.stdout {
      throw context.usage("--rejects needs the name of a file; ./- is one called so")
    }
    if let rejects, source.isFile(rejects) {
      throw context.usage("--rejects names the file that is read, which it would replace")
    }
    let refusals = try Refusals(path: rejects, isQuiet: context.invocation.has("quiet"))
    let (folder, relay) = try CommunityFolder.forImport(context)
    let store = try await folder.openStore(relay: relay, context)
    let outcome: Result<IngestProgress, any Error>
    let progress = Progress()
    let committed = Lock(IngestProgress())
    do {
      if let relayKey { try await declare(relayKey, of: store) }
      outcome = .success(try await copy(source, into: store, refusals, context, committed))
    } catch {
      outcome = .failure(error)
    }
    // What was committed stays, also when the rest failed.
    let head = try store.reader.head()
    await store.caughtUp()
    await store.close()
    if let code = context.stop.code {
      let tally = committed.withLock { $0 }
      if context.wantsJSON { try report(tally, rate: tally.rate(in: progress.elapsed), context) }
      context.talk.say("stopped; the log ends at entry \(head), run the same again to go on")
      return code
    }
    let tally = try outcome.get()
    try report(tally, rate: tally.rate(in: progress.elapsed), context)
    return tally.rejectedCount == 0 ? .done : .partial
  }

  /// An archive has no relay; its statements are ascribed to a name that can never be one.
  private static func declare(_ key: PublicKey, of store: CommunityStore) async throws {
    var settings = try CommunitySettings(store.reader)
    let relay = settings.home ?? RelayURL("wss://archive.invalid")
    guard let relay else { preconditionFailure("the name of an archive's relay is no address") }
    settings.relaySelf = key
    try await settings.save(to: store.log)
    try await store.note(.relaySelf(relay, key))
  }

  private static func copy(
    _ source: ByteSource, into store: CommunityStore, _ refusals: Refusals, _ context: Context,
    _ committed: Lock<IngestProgress>
  ) async throws -> IngestProgress {
    let shown = ProgressLine(total: source.size, isQuiet: context.invocation.has("quiet"))
    let pipeline = IngestPipeline(store: store, work: WorkPool(), clock: context.clock)
    var observer = IngestObserver(
      rejected: { refusals.take($0) },
      progress: { progress in
        committed.withLock { $0 = progress }
        shown.show("imported", done: progress.lines, part: progress.bytes)
      })
    if refusals.keepsAll { observer.overflow = { refusals.take($0, piece: $1) } }
    let tally = try await pipeline.run(source, observer: observer)
    shown.end()
    try refusals.finish()
    return tally
  }

  private static func report(
    _ tally: IngestProgress, rate: Double, _ context: Context
  ) throws {
    guard context.wantsJSON else {
      return context.talk.say(
        "\(Progress.grouped(tally.stored)) stored, \(Progress.grouped(tally.duplicates)) there"
          + " already, \(Progress.grouped(tally.rejectedCount)) refused"
          + (tally.ephemeral > 0 ? ", \(tally.ephemeral) of kinds that are never stored" : ""))
    }
    try context.out.write(
      row: [
        "type": "summary", "stored": JSON(tally.stored), "duplicates": JSON(tally.duplicates),
        "rejected": JSON(counts: tally.rejected), "events_per_second": .double(rate),
        "ephemeral": JSON(tally.ephemeral),
      ])
  }
}

extension IngestProgress {
  fileprivate var rejectedCount: Int { rejected.values.reduce(0, +) }
  fileprivate var count: Int { stored + duplicates + ephemeral + rejectedCount }

  fileprivate func rate(in seconds: Double) -> Double {
    seconds > 0 ? Double(count) / seconds : 0
  }
}
