import EventLog
import Foundation
import Glibc
import Nostr
import NostrCrypto
import Platform
import SyncCore
import Testing

@Suite(.serialized) struct FaultTests {
  @Test func `a lock held by another process delays a batch and does not fail it`() async throws {
    let bench = try Bench()
    WaitingVFS.set(nil)
    var options = LogOptions()
    options.vfs = WaitingVFS.name
    let log = try await bench.open(options)
    let other = try RawDatabase(bench.path)
    try other.execute("BEGIN IMMEDIATE")
    let waits = Lock(0)
    WaitingVFS.set {
      let count = waits.withLock { value -> Int in
        value += 1
        return value
      }
      if count == 3 { try? other.execute("ROLLBACK") }
    }
    defer { WaitingVFS.set(nil) }
    #expect(try await log.ingest(bench.batch(Sample.events(0..<5))).appended == 5)
    #expect(waits.withLock { $0 } == 3)
  }

  @Test func `a lock held for too long is told, and the next batch is stored`() async throws {
    let bench = try Bench()
    var options = LogOptions()
    options.busyMilliseconds = 1
    let log = try await bench.open(options)
    let other = try RawDatabase(bench.path)
    try other.execute("BEGIN IMMEDIATE")
    await #expect(throws: LogError.busy(bench.path)) {
      _ = try await log.ingest(bench.batch(Sample.events(0..<5)))
    }
    #expect(try log.reader.entries(after: .start, limit: 1) == [])
    try other.execute("ROLLBACK")
    #expect(try await log.ingest(bench.batch(Sample.events(0..<5))).head == LogSequence(5))
  }

  @Test func `what another writer added is not written over`() async throws {
    let bench = try Bench()
    let first = try await bench.open()
    let second = try await bench.open()
    for round in 0..<5 as Range<UInt64> {
      _ = try await first.ingest(bench.batch([Sample.event(round * 2)], from: Sample.home))
      _ = try await second.ingest(bench.batch([Sample.event(round * 2 + 1)], from: Sample.replica))
    }
    let reader = try LogReader.open(path: bench.path)
    #expect(
      try reader.entries(after: .start, limit: 99).map(\.event)
        == Sample.events(0..<10).map(\.event))
    #expect(
      try second.reader.entries(after: .start, limit: 99).map(\.sequence.number)
        == Array(1...10))
    #expect(try reader.integrity() == [])
  }

  @Test func `after a full disk the next message is stored, and nothing before it is lost`()
    async throws
  {
    let bench = try Bench()
    let log = try await bench.open()
    _ = try await log.ingest(bench.batch(Sample.events(0..<10), from: Sample.home))
    try await log.setPagesMax(38)
    let large = Sample.event(50, content: Text(String(repeating: "x", count: 1 << 20)))
    await #expect(throws: LogError.full(bench.path)) {
      _ = try await log.enqueue(large, to: [Sample.home], token: "t")
    }
    #expect(try log.reader.deliveries(includingSent: true) == [])
    let message = try await log.enqueue(Sample.event(51), to: [Sample.home], token: "t")
    #expect(message.eventID == Sample.event(51).event.id)
    #expect(try log.reader.head() == LogSequence(11))
    #expect(try log.reader.integrity() == [])
  }

  @Test func `a held snapshot lets the write-ahead log grow, and letting go cuts it`() async throws
  {
    let bench = try Bench()
    let log = try await bench.open()
    _ = try await log.ingest(bench.batch([Sample.event(0)]))
    let other = try RawDatabase(bench.path)
    try other.execute("BEGIN")
    _ = try other.number("SELECT count(*) FROM event")
    let long = Text(String(repeating: "x", count: 1 << 20))
    for number in 1...8 as ClosedRange<UInt64> {
      _ = try await log.ingest(bench.batch([Sample.event(number, content: long)]))
    }
    #expect(try await log.checkpoint() == false)
    let size = try FileManager.default.attributesOfItem(atPath: bench.path + "-wal")[.size] as? Int
    #expect(try #require(size) > 8 << 20)
    try other.execute("COMMIT")
    #expect(try await log.checkpoint())
    let cut = try FileManager.default.attributesOfItem(atPath: bench.path + "-wal")[.size] as? Int
    #expect(cut == 0)
    #expect(try log.reader.counts().bytes < 12 << 20)
  }

  @Test func `a killed writer leaves what it committed`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    _ = try await log.ingest(bench.batch(Sample.events(0..<10), from: Sample.home))
    _ = try await log.enqueue(Sample.event(10), to: [Sample.home])
    // What a kill leaves behind: the files as they are now, without a last checkpoint.
    let copy = try Bench()
    for name in ["log.sqlite", "log.sqlite-wal"] {
      try FileManager.default.copyItem(
        atPath: bench.folder + "/" + name, toPath: copy.folder + "/" + name)
    }
    let again = try await copy.open()
    #expect(try again.reader.head() == LogSequence(11))
    #expect(try again.reader.deliveries(includingSent: false).count == 1)
    #expect(try again.reader.integrity() == [])
  }

  @Test func `a home that cannot be written is readable, and says so to a writer`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    _ = try await log.ingest(bench.batch(Sample.events(0..<10), from: Sample.home))
    await log.close()
    try bench.setWritable(false)
    defer { try? bench.setWritable(true) }
    let stranger = Stranger()
    #expect(try await stranger.entries(of: bench.path) == 10)
    #expect(await stranger.openingError(of: bench) == .readOnly(bench.path))
    #expect(try bench.snapshot().keys.sorted() == ["log.sqlite"])
  }

  @Test func `a log beside a writer is readable for one who cannot write`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    _ = try await log.ingest(bench.batch(Sample.events(0..<10), from: Sample.home))
    try bench.setWritable(false)
    defer { try? bench.setWritable(true) }
    #expect(try await Stranger().entries(of: bench.path) == 10)
    await log.close()
  }

  @Test
  func `what a killed writer left in a folder that cannot be written is told, and not half read`()
    async throws
  {
    let bench = try Bench()
    let log = try await bench.open()
    _ = try await log.ingest(bench.batch(Sample.events(0..<10), from: Sample.home))
    let copy = try Bench()
    for name in ["log.sqlite", "log.sqlite-wal"] {
      try FileManager.default.copyItem(
        atPath: bench.folder + "/" + name, toPath: copy.folder + "/" + name)
    }
    try copy.setWritable(false)
    defer { try? copy.setWritable(true) }
    let before = try copy.snapshot()
    await #expect {
      _ = try await Stranger().entries(of: copy.path)
    } throws: {
      if case .io(let what)? = $0 as? LogError { what.contains("copy the folder") } else { false }
    }
    #expect(try copy.snapshot() == before)
    try copy.setWritable(true)
    #expect(try LogReader.open(path: copy.path).entries(after: .start, limit: 100).count == 10)
  }

  @Test func `a new log in a folder that cannot be written says so`() async throws {
    let bench = try Bench()
    try bench.setWritable(false)
    defer { try? bench.setWritable(true) }
    #expect(await Stranger().openingError(of: bench) == .readOnly(bench.path))
  }
}

extension Bench {
  func setWritable(_ isWritable: Bool) throws {
    let permissions = [FileAttributeKey.posixPermissions: isWritable ? 0o755 : 0o555]
    try FileManager.default.setAttributes(permissions, ofItemAtPath: folder)
    for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
      try FileManager.default.setAttributes(
        [.posixPermissions: isWritable ? 0o644 : 0o444], ofItemAtPath: folder + "/" + name)
    }
  }
}

/// Somebody without rights. Where tests run as root no permission would stop them, so the one
/// thread that this actor works on gives its rights to the file system away.
private actor Stranger {
  private let executor = ThreadExecutor()

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private func giveUpRights() {
    if geteuid() == 0 { _ = setFileSystemUser(65534) }
  }

  func entries(of path: String) throws -> Int {
    giveUpRights()
    return try LogReader.open(path: path).entries(after: .start, limit: 100).count
  }

  func openingError(of bench: Bench) async -> LogError? {
    giveUpRights()
    do throws(LogError) {
      await (try EventLog.open(path: bench.path, executor: executor, clock: bench.clock)).close()
      return nil
    } catch {
      return error
    }
  }
}

/// Of all the calls that change rights the one that changes them for a single thread; Swift's
/// module of the C library leaves it out.
@_silgen_name("setfsuid") private func setFileSystemUser(_ user: UInt32) -> Int32
