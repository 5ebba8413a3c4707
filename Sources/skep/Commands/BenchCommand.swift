import Foundation
import Nostr
import NostrCrypto
import Platform
import RelaySocket
import SyncCore
import SyncEngine

/// `skep bench [NAME]…`.
enum BenchCommand: Command {
  static let spec = CommandSpec(
    "bench", "[NAME]…", count: 0...16,
    options: [
      .value("file", "FILE", "JSON lines to use instead of a corpus made here"),
      .value("events", "N", "how many events to make; 100000 otherwise, 20000 for sync"),
      .flag("negentropy", "for sync: the relay serves NIP-77"),
    ],
    about: "Measures, each time beside a limit that no program could pass; without a name, lists.",
    examples: ["skep bench import", "skep bench import --events 20000 --json"])

  /// One measured figure and the limit measured in the same run.
  struct Figure {
    let name: String
    let value: Double
    let unit: String
    let limit: Double
    /// Further figures of the same run.
    var extra: [(String, JSON)] = []

    var ratio: Double { limit > 0 ? value / limit : 0 }
  }

  private static let benches: [(name: String, about: String)] = [
    ("import", "from a file to the durable log, the cache and the words, against raw verification"),
    ("rebuild", "the whole cache from the log, against as many bare LMDB puts"),
    ("page", "50 messages with reactions, edits and threads, against 50 bare LMDB gets"),
    ("export", "the whole log through a pipe, against a copy of the same bytes"),
    ("size", "the room that log and cache take, against the events' JSON"),
    ("negentropy", "NIP-77 over two sets, and a large range's fingerprint against a scan of it"),
    ("sync", "from a relay on the loopback to a folded cache, against import of the same"),
  ]

  static func run(_ context: Context) async throws -> ExitCode {
    let names = context.invocation.operands
    if names.isEmpty {
      for bench in benches {
        if context.wantsJSON {
          try context.out.write(row: ["name": JSON(bench.name), "about": JSON(bench.about)])
        } else {
          try context.out.write(line: CellWidth.padded(bench.name, to: 12) + bench.about)
        }
      }
      return .done
    }
    for name in names where !benches.contains(where: { $0.name == name }) {
      let near = Suggestion.nearest(to: name, among: benches.map(\.name))
      throw context.usage(
        "there is no benchmark “\(SafeText.line(name, cells: 40))”"
          + (near.map { "; did you mean \($0)?" } ?? ""))
    }
    var corpus: BenchEvents?
    for name in names {
      let figure: Figure
      switch name {
      case "negentropy": figure = try NegentropyBench(context).run()
      case "sync": figure = try await SyncBench(context).run()
      default:
        let events: BenchEvents
        if let corpus { events = corpus } else { events = try await BenchEvents(context) }
        corpus = events
        figure =
          name == "import"
          ? try await ImportBench(context).run(events.path)
          : try await CacheBench(context).run(name, events.path)
      }
      if let code = context.stop.code { return code }
      try report(figure, context)
    }
    return .done
  }

  private static func report(_ figure: Figure, _ context: Context) throws {
    if context.wantsJSON {
      try context.out.write(
        row: .object(
          [
            ("name", JSON(figure.name)), ("value", .double(figure.value)),
            ("unit", JSON(figure.unit)), ("limit", .double(figure.limit)),
            ("ratio", .double(figure.ratio)),
          ] + figure.extra))
      return
    }
    try context.out.write(
      line: "\(figure.name)  \(Progress.grouped(Int(figure.value))) \(figure.unit), limit"
        + " \(Progress.grouped(Int(figure.limit))), ratio \(String(format: "%.3f", figure.ratio))")
    for (name, value) in figure.extra {
      var bytes: [UInt8] = []
      value.write(into: &bytes)
      try context.out.write(line: "  \(name) \(String(decoding: bytes, as: UTF8.self))")
    }
  }
}

/// From a file of JSON lines to a durable log, a folded cache and the words, in a scratch folder.
struct ImportBench {
  private let context: Context
  private let work = WorkPool()

  init(_ context: Context) { self.context = context }

  func run(_ file: String) async throws -> BenchCommand.Figure {
    let scratch = try BenchScratch(context, "import")
    // The limit is taken before and after, because machines change their speed meanwhile.
    let sample = try await sample(of: file)
    let before = await rawRate(sample)
    let memory = MemoryPeak()
    let clock = ContinuousClock()
    let start = clock.now
    let tally = try await importFile(file, into: scratch.path + "/community", memory)
    let seconds = Progress.seconds(start.duration(to: clock.now))
    let after = await rawRate(sample)
    return BenchCommand.Figure(
      name: "import", value: Double(tally.stored) / max(seconds, 1e-9), unit: "events/s",
      limit: (before + after) / 2,
      extra: [
        ("events", JSON(tally.stored)), ("seconds", .double(seconds)),
        ("peak_anonymous_bytes", JSON(memory.peak)),
      ])
  }

  /// How many events a second of a file are imported into a new folder.
  func rate(of file: String, in folder: String) async throws -> Double {
    let clock = ContinuousClock()
    let start = clock.now
    let tally = try await importFile(file, into: folder, MemoryPeak())
    return Double(tally.stored) / max(Progress.seconds(start.duration(to: clock.now)), 1e-9)
  }

  private func importFile(
    _ file: String, into folder: String, _ memory: MemoryPeak
  ) async throws -> IngestProgress {
    let store = try await CommunityStore.open(
      folder: folder, clock: context.clock, tasks: SystemTasks())
    let source = try ByteSource(path: file, stop: context.stop)
    let pipeline = IngestPipeline(store: store, work: work, clock: context.clock)
    let tally = try await pipeline.run(
      source, observer: IngestObserver(progress: { _ in memory.sample() }))
    memory.sample()
    await store.close()
    return tally
  }

  private static let sampleMax = 20_000

  private func sample(of file: String) async throws -> RawVerification {
    let source = try ByteSource(path: file, stop: context.stop)
    var lines = LineCutter()
    var events: [Event] = []
    while events.count < Self.sampleMax, let piece = try await source.next() {
      lines.append(piece[...])
      let block = lines.take()
      for line in block.lines.prefix(Self.sampleMax - events.count) {
        // A line that is no event is no part of the limit.
        if let range = line.range, let event = try? EventScanner.event(block.bytes[range]) {
          events.append(event)
        }
      }
    }
    return RawVerification(events)
  }

  private func rawRate(_ sample: RawVerification) async -> Double {
    let clock = ContinuousClock()
    let start = clock.now
    _ = await sample.run(on: work)
    return Double(sample.count) / max(Progress.seconds(start.duration(to: clock.now)), 1e-9)
  }
}

/// The most anonymous memory that this process was seen to hold: what the kernel cannot drop, so
/// without the pages of mapped files.
final class MemoryPeak: Sendable {
  private let seen = Lock(0)

  var peak: Int { seen.withLock { $0 } }

  func sample() {
    let now = Self.now()
    seen.withLock { $0 = max($0, now) }
  }

  private static func now() -> Int {
    // Without /proc there is nothing to measure, and the figure stays 0.
    guard let text = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
      let line = text.split(separator: "\n").first(where: { $0.hasPrefix("RssAnon:") }),
      let kibibytes = line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({
        Int($0)
      })
    else { return 0 }
    return kibibytes * 1024
  }
}

/// The events that every measure of a run works on: the file that was given, or one made here that
/// goes with this.
final class BenchEvents {
  let path: String
  private let scratch: BenchScratch?

  init(_ context: Context) async throws {
    if let given = context.invocation.value("file") {
      path = given
      scratch = nil
      return
    }
    let count = try context.number("events", in: 1...10_000_000) ?? 100_000
    let made = try BenchScratch(context, "events")
    scratch = made
    path = made.path + "/corpus.jsonl"
    context.talk.say("making \(Progress.grouped(count)) events")
    try await BenchCorpus(seed: 1).write(count, to: path, on: WorkPool())
  }
}

/// A folder that is gone when the benchmark ends.
final class BenchScratch {
  let path: String

  init(_ context: Context, _ name: String) throws {
    let parent =
      context.invocation.has("home") ? try context.home().path : NSTemporaryDirectory()
    path = parent + "/skep-bench-\(ProcessInfo.processInfo.processIdentifier)-\(name)"
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  // Left-overs in a temporary folder do no harm.
  deinit { try? FileManager.default.removeItem(atPath: path) }
}
