import EventLog
import Foundation
import Nostr
import NostrCrypto
import Platform
import SyncCore
import SyncEngine

/// A scratch home, removed with the value, and what a store in it needs.
final class StoreBench: Sendable {
  let home: Home
  let clock = FixedClock()
  let tasks = PlainTasks()

  /// The folder of the one community that most tests need.
  var folder: String { home.folder(of: .archive) }

  init() throws {
    let url = FileManager.default.temporaryDirectory.appending(path: "home-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    home = Home(path: url.path)
  }

  deinit {
    // A scratch folder left behind harms nobody.
    try? FileManager.default.removeItem(atPath: home.path)
  }

  func open(_ options: LogOptions = LogOptions()) async throws -> CommunityStore {
    try await CommunityStore.open(folder: folder, clock: clock, tasks: tasks, logOptions: options)
  }

  func pipeline(
    _ store: CommunityStore, _ limits: IngestLimits = IngestLimits()
  ) -> IngestPipeline {
    IngestPipeline(store: store, work: WorkPool(width: 2), clock: clock, limits: limits)
  }
}

struct FixedClock: SyncClock {
  func now() -> Timestamp { 1_700_000_000 }

  func uptime() -> Duration { .zero }

  func sleep(until uptime: Duration) async throws { throw CancellationError() }
}

struct PlainTasks: TaskSpawner {
  func spawn(_ name: String, _ body: @escaping @Sendable () async -> Void) -> any SpawnedTask {
    PlainTask(task: Task { await body() })
  }

  private struct PlainTask: SpawnedTask {
    let task: Task<Void, Never>

    func cancel() { task.cancel() }

    func finished() async { await task.value }
  }
}

/// Pieces given beforehand, and then the end, or a failure.
actor Chunks: ByteChunkSource {
  private var rest: ArraySlice<[UInt8]>
  private let failure: ByteSourceError?

  init(_ bytes: [UInt8], size: Int = 1 << 16, failure: ByteSourceError? = nil) {
    let pieces = stride(from: 0, to: bytes.count, by: size).map {
      Array(bytes[$0..<min($0 + size, bytes.count)])
    }
    rest = pieces[...]
    self.failure = failure
  }

  func next() async throws(ByteSourceError) -> [UInt8]? {
    if let piece = rest.popFirst() { return piece }
    if let failure { throw failure }
    return nil
  }
}

/// Signed events of one author.
struct Author {
  let signer: LocalSigner

  init() { signer = LocalSigner(SecretKey.generate()) }

  func event(
    _ number: Int, kind: EventKind = 9, group: String = "garden", text: String = "hello"
  ) throws -> Event {
    try signer.signed(
      EventDraft(
        createdAt: Timestamp(1_600_000_000 + Int64(number)), kind: kind,
        tags: Tags([["h", group]]), content: Text(text + " \(number)"))
    ).event
  }

  func lines(_ numbers: Range<Int>) throws -> [UInt8] {
    try numbers.flatMap { try event($0).json() + [0x0a] }
  }
}
