import EventLog
import Foundation
import Glibc
import HotCache
import Nostr
import Platform
import RelaySocket
import SyncCore
import SyncEngine

/// What the cache and the log do once they are filled: rebuilding, a page of a timeline, an export,
/// and the room that they take. Each fills a community of its own from the same events.
struct CacheBench {
  private let context: Context
  private let work = WorkPool()
  private let clock = ContinuousClock()

  init(_ context: Context) { self.context = context }

  /// - Parameter file: The events that fill it.
  func run(_ name: String, _ file: String) async throws -> BenchCommand.Figure {
    let scratch = try BenchScratch(context, name)
    let store = try await CommunityStore.open(
      folder: scratch.path + "/community", clock: context.clock, tasks: SystemTasks())
    do {
      let source = try ByteSource(path: file, stop: context.stop)
      let pipeline = IngestPipeline(store: store, work: work, clock: context.clock)
      let tally = try await pipeline.run(source)
      let figure =
        switch name {
        case "rebuild": try await rebuild(store, events: tally.stored, scratch)
        case "page": try await page(store, events: tally.stored, scratch)
        case "export": try export(store, scratch)
        default: try size(store, events: tally.stored, file)
        }
      await store.close()
      return figure
    } catch {
      await store.close()
      throw error
    }
  }

  private func seconds(_ body: () async throws -> Void) async rethrows -> Double {
    let start = clock.now
    try await body()
    return max(Progress.seconds(start.duration(to: clock.now)), 1e-9)
  }

  // MARK: Rebuilding

  private func rebuild(
    _ store: CommunityStore, events: Int, _ scratch: BenchScratch
  ) async throws -> BenchCommand.Figure {
    let taken = try await seconds { try await store.cache.rebuild() }
    let rows = try store.views.read { view throws(CacheError) in try view.rowCount() }
    let bytes = Self.bytes(of: store.folder + "/cache") / max(rows, 1)
    let raw = try await seconds {
      try RawLMDB.put(count: rows, bytes: bytes, in: scratch.path + "/raw")
    }
    return BenchCommand.Figure(
      name: "rebuild", value: Double(events) / taken, unit: "events/s",
      limit: Double(events) / raw,
      extra: [
        ("events", JSON(events)), ("rows", JSON(rows)), ("bytes_a_row", JSON(bytes)),
        ("seconds", .double(taken)), ("raw_puts_per_second", .double(Double(rows) / raw)),
      ])
  }

  // MARK: A page

  private static let rounds = 400
  private static let pageRows = 50

  /// Times of pages all over a group, beside those of as many bare gets of the same rows.
  private func page(
    _ store: CommunityStore, events: Int, _ scratch: BenchScratch
  ) async throws -> BenchCommand.Figure {
    let now = context.clock.now()
    let groups = try store.views.read { view throws(CacheError) in
      try view.groups(now: now).map(\.id)
    }
    let quiet = try pages(store.views, groups, now)
    // The same again while other events are taken in.
    let more = scratch.path + "/more.jsonl"
    try await BenchCorpus(seed: 2).write(max(2000, events / 5), to: more, on: work)
    let other = try ByteSource(path: more, stop: context.stop)
    let pipeline = IngestPipeline(store: store, work: work, clock: context.clock)
    async let importing = pipeline.run(other)
    let busy = try pages(store.views, groups, now)
    _ = try await importing
    func at(_ times: [Double], _ part: Double) -> Double {
      let sorted = times.sorted()
      return sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))]
    }
    let limit = at(quiet.raw, 0.5)
    return BenchCommand.Figure(
      name: "page", value: at(quiet.page, 0.5), unit: "µs", limit: limit,
      extra: [
        ("p99_ratio", .double(at(quiet.page, 0.99) / limit)),
        ("p99", .double(at(quiet.page, 0.99))),
        ("importing_median_ratio", .double(at(busy.page, 0.5) / limit)),
        ("importing_p99_ratio", .double(at(busy.page, 0.99) / limit)),
        ("rows", JSON(Self.pageRows)), ("rounds", JSON(quiet.page.count)),
      ])
  }

  private func pages(
    _ views: CacheViews, _ groups: [Text], _ now: Timestamp
  ) throws -> (page: [Double], raw: [Double]) {
    var times: (page: [Double], raw: [Double]) = ([], [])
    var cursors = groups.map { _ in PageCursor.newest }
    for round in 0..<Self.rounds + groups.count {
      let place = round % groups.count
      let start = clock.now
      let rows = try views.read { [cursors] view throws(CacheError) in
        try view.timeline(groups[place], cursors[place], limit: Self.pageRows, now: now)
      }
      let taken = start.duration(to: clock.now)
      guard let first = rows.first, rows.count == Self.pageRows else {
        cursors[place] = .newest
        continue
      }
      cursors[place] = .before(first.position)
      let sequences = rows.map(\.sequence)
      let rawStart = clock.now
      _ = try views.read { view throws(CacheError) in try view.touch(sequences) }
      let raw = rawStart.duration(to: clock.now)
      // The first round of each group warms it.
      guard round >= groups.count else { continue }
      times.page.append(Progress.seconds(taken) * 1e6)
      times.raw.append(Progress.seconds(raw) * 1e6)
    }
    guard !times.page.isEmpty else {
      throw context.usage("with so few events no group fills a page; ask for more with --events")
    }
    return times
  }

  // MARK: An export

  private func export(
    _ store: CommunityStore, _ scratch: BenchScratch
  ) throws -> BenchCommand.Figure {
    let copy = scratch.path + "/export.jsonl"
    var written = 0
    let file = try AtomicFile(copy)
    try store.reader.export(ExportSelection()) { logged in
      // What cannot be written shows in the size, and the ratio then means nothing.
      try? file.write(logged.event.json() + [UInt8(ascii: "\n")])
      return true
    }
    try file.finish()
    let exported = try throughPipe { sink in
      try store.reader.export(ExportSelection()) { logged in
        sink.append(logged.event.json())
        sink.append([UInt8(ascii: "\n")])
        return true
      }
    }
    written = exported.bytes
    let lines = try throughPipe { sink in
      let handle = try FileHandle(forReadingFrom: URL(filePath: copy))
      while let piece = try handle.read(upToCount: 1 << 16), !piece.isEmpty {
        sink.append(Array(piece))
      }
    }
    return BenchCommand.Figure(
      name: "export", value: Double(written) / exported.seconds, unit: "bytes/s",
      limit: Double(lines.bytes) / lines.seconds,
      extra: [("bytes", JSON(written)), ("seconds", .double(exported.seconds))])
  }

  /// Runs `body` with one end of a pipe, whose other end a thread empties.
  private func throughPipe(
    _ body: (PipeSink) throws -> Void
  ) throws -> (bytes: Int, seconds: Double) {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw context.usage("no pipe can be made") }
    let far = ends[0]
    let drain = Thread {
      var buffer = [UInt8](repeating: 0, count: 1 << 16)
      while read(far, &buffer, buffer.count) > 0 {}
      close(far)
    }
    drain.start()
    let sink = PipeSink(ends[1])
    let start = clock.now
    try body(sink)
    sink.finish()
    return (sink.bytes, max(Progress.seconds(start.duration(to: clock.now)), 1e-9))
  }

  // MARK: Room

  private func size(
    _ store: CommunityStore, events: Int, _ file: String
  ) throws -> BenchCommand.Figure {
    let json = Self.bytes(of: file)
    let log = try store.reader.counts().bytes
    let cache = Self.bytes(of: store.folder + "/cache")
    let words = Self.bytes(of: store.folder + "/" + CommunityStore.searchName)
    return BenchCommand.Figure(
      name: "size", value: Double(log + cache) / Double(max(events, 1)), unit: "bytes/event",
      limit: Double(json) / Double(max(events, 1)),
      extra: [
        ("log_ratio", .double(Double(log) / Double(max(json, 1)))),
        ("cache_ratio", .double(Double(cache) / Double(max(json, 1)))),
        ("search_ratio", .double(Double(words) / Double(max(json, 1)))),
        ("events", JSON(events)),
      ])
  }

  /// The bytes that a file, or what is in a folder, takes on the disk.
  private static func bytes(of path: String) -> Int {
    var status = stat()
    guard stat(path, &status) == 0 else { return 0 }
    guard status.st_mode & S_IFMT == S_IFDIR else { return Int(status.st_blocks) * 512 }
    // A folder that cannot be listed takes no room that could be told.
    let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    return names.reduce(0) { $0 + bytes(of: path + "/" + $1) }
  }
}

/// Writes into a pipe in large pieces.
private final class PipeSink {
  private let descriptor: Int32
  private var buffer: [UInt8] = []
  private(set) var bytes = 0

  init(_ descriptor: Int32) {
    self.descriptor = descriptor
    buffer.reserveCapacity(1 << 17)
  }

  func append(_ piece: [UInt8]) {
    buffer.append(contentsOf: piece)
    if buffer.count >= 1 << 16 { flush() }
  }

  func finish() {
    flush()
    close(descriptor)
  }

  private func flush() {
    var rest = buffer[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      guard count > 0 else { break }
      bytes += count
      rest = rest.dropFirst(count)
    }
    buffer.removeAll(keepingCapacity: true)
  }
}
