import Foundation
import Migrations
import Nostr
import NostrCrypto
import SyncCore
import Testing

@testable import EventLog

@Suite struct OpeningTests {
  private static let known = Migrations.all.count

  @Test func `a log is there again after closing, under the same id`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    _ = try await log.ingest(bench.batch(Sample.events(0..<10)))
    let id = try log.reader.logID()
    #expect(id.count == 16)
    await log.close()
    let again = try await bench.open()
    #expect(try again.reader.logID() == id)
    #expect(try await again.ingest(bench.batch([Sample.event(10)])).head == LogSequence(11))
    let other = try Bench()
    #expect(try await other.open().reader.logID() != id)
  }

  @Test func `a new log takes the id it is given`() async throws {
    let bench = try Bench()
    var options = LogOptions()
    options.logID = Array(0..<16)
    #expect(try await bench.open(options).reader.logID() == Array(0..<16))
  }

  @Test func `what is closed stays closed`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    await log.close()
    await log.close()
    await #expect(throws: LogError.closed) { _ = try await log.ingest(bench.batch()) }
    #expect(throws: LogError.closed) { _ = try log.reader.event(id: Sample.event(1).event.id) }
    #expect(throws: LogError.closed) { _ = try log.reader.integrity() }
  }

  @Test func `a log from a later version is refused and left as it is`() async throws {
    let bench = try Bench()
    try await bench.open(.later).close()
    let before = try bench.snapshot()
    await #expect(throws: LogError.newer(found: Self.known + 1, known: Self.known)) {
      _ = try await bench.open()
    }
    #expect(throws: LogError.newer(found: Self.known + 1, known: Self.known)) {
      _ = try LogReader.open(path: bench.path)
    }
    #expect(try bench.snapshot() == before)
  }

  @Test func `a later version that stands only in the write-ahead log is seen too`() async throws {
    let bench = try Bench()
    try await bench.open().close()
    let other = try RawDatabase(bench.path)
    try other.execute("PRAGMA wal_autocheckpoint = 0; PRAGMA user_version = 9")
    await #expect(throws: LogError.newer(found: 9, known: Self.known)) {
      _ = try await bench.open()
    }
  }

  @Test(arguments: ["a file of text, longer than the hundred bytes of a header", "short", "\0"])
  func `what does not begin as a database is called damaged and left as it is`(content: String)
    async throws
  {
    let bench = try Bench()
    let text = String(repeating: content, count: 20)
    try text.write(toFile: bench.path, atomically: false, encoding: .utf8)
    let before = try bench.snapshot()
    await #expect { _ = try await bench.open() } throws: { isDamaged($0) }
    #expect { _ = try LogReader.open(path: bench.path) } throws: { isDamaged($0) }
    #expect(try bench.snapshot() == before)
  }

  @Test(arguments: ["", "PRAGMA application_id = 7;", "PRAGMA journal_mode = WAL;"])
  func `somebody else's database is refused and left as it is`(first: String) async throws {
    let bench = try Bench()
    try RawDatabase(bench.path).execute(first + "CREATE TABLE event (seq); PRAGMA user_version = 1")
    let before = try bench.snapshot()
    await #expect(throws: LogError.notALog(bench.path)) { _ = try await bench.open() }
    #expect(throws: LogError.notALog(bench.path)) { _ = try LogReader.open(path: bench.path) }
    #expect(try bench.snapshot() == before)
  }

  @Test func `a folder in the place of the log is refused`() async throws {
    let bench = try Bench()
    try FileManager.default.createDirectory(atPath: bench.path, withIntermediateDirectories: false)
    await #expect(throws: LogError.notALog(bench.path)) { _ = try await bench.open() }
  }

  @Test func `an empty file is read as an empty log, and becomes one`() async throws {
    let bench = try Bench()
    try Data().write(to: URL(filePath: bench.path))
    #expect(try LogReader.open(path: bench.path).integrity() == [])
    #expect(try bench.snapshot() == ["log.sqlite": Data()])
    #expect(try await bench.open().reader.head() == .start)
  }

  @Test func `a reader makes no log where there is none`() throws {
    let bench = try Bench()
    #expect(throws: LogError.missing(bench.path)) { _ = try LogReader.open(path: bench.path) }
    #expect(try bench.snapshot().isEmpty)
  }

  @Test func `a log cut short is called damaged and left as it is`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    _ = try await log.ingest(bench.batch(Sample.events(0..<100)))
    await log.close()
    let whole = try Data(contentsOf: URL(filePath: bench.path))
    try whole.prefix(whole.count / 2).write(to: URL(filePath: bench.path))
    let before = try bench.snapshot()
    await #expect { _ = try await bench.open() } throws: { isDamaged($0) }
    #expect { _ = try LogReader.open(path: bench.path) } throws: { isDamaged($0) }
    #expect(try bench.snapshot() == before)
  }

  @Test func `a log full of noise is called damaged when it is opened or read`() async throws {
    let bench = try Bench()
    let log = try await bench.open()
    _ = try await log.ingest(bench.batch(Sample.events(0..<500)))
    await log.close()
    var bytes = try Data(contentsOf: URL(filePath: bench.path))
    for offset in 4096..<bytes.count { bytes[offset] = UInt8(truncatingIfNeeded: offset &* 31) }
    try bytes.write(to: URL(filePath: bench.path))
    #expect {
      let reader = try LogReader.open(path: bench.path)
      _ = try reader.entries(after: .start, limit: 1000)
    } throws: {
      isDamaged($0)
    }
  }

  @Test(arguments: [
    "DROP TABLE coverage", "DELETE FROM meta", "DELETE FROM migration", "PRAGMA user_version = 0",
    "PRAGMA application_id = 0",
  ])
  func `a log that lacks a part is called damaged`(change: String) async throws {
    let bench = try Bench()
    try await bench.open().close()
    try RawDatabase(bench.path).execute(change)
    await #expect { _ = try await bench.open() } throws: { isDamaged($0) }
    #expect { _ = try LogReader.open(path: bench.path) } throws: { isDamaged($0) }
  }

  private func isDamaged(_ error: any Error) -> Bool {
    if case .damaged? = error as? LogError { true } else { false }
  }
}

@Suite struct MigrationTests {
  @Test func `the released migrations are unchanged and in a row`() {
    #expect(Migrations.all.map(\.number) == Array(1...Migrations.all.count))
    for migration in Migrations.all {
      #expect(SHA256.hash(migration.sql).hex == migration.sha256)
    }
  }

  @Test func `a migration of the program that was changed is refused`() async throws {
    let bench = try Bench()
    var options = LogOptions()
    options.migrations[0] = Migration(
      number: 1, name: "log", sql: Migrations.all[0].sql + Array(" ".utf8),
      sha256: Migrations.all[0].sha256)
    await #expect(throws: LogError.migrationChanged(1)) { _ = try await bench.open(options) }
    #expect(try bench.snapshot().isEmpty)
  }

  @Test func `a log that went through another migration is refused`() async throws {
    let bench = try Bench()
    try await bench.open().close()
    try RawDatabase(bench.path).execute("UPDATE migration SET sha256 = 'other'")
    await #expect(throws: LogError.migrationChanged(1)) { _ = try await bench.open() }
  }

  @Test(arguments: 1..<Migrations.all.count, [0, 1000])
  func `a log of any past version is read as it is and brought up to date, empty and full`(
    version: Int, count: Int
  ) async throws {
    let fresh = try Bench()
    try await fresh.open().close()
    let bench = try Bench()
    let old = try await bench.open(.past(version))
    let events = Sample.events(0..<UInt64(count))
    var batch = bench.batch(events, from: Sample.home)
    batch.rejected = [Reject(reason: "signature")]
    batch.proofs = [Sample.proof(1, 2)]
    _ = try await old.ingest(batch)
    _ = try await old.enqueue(Sample.event(9999), to: [Sample.home])
    await old.close()
    let before = try LogReader.open(path: bench.path)
    let counts = try before.counts()
    #expect(counts.events == count + 1 && counts.faults == [])
    #expect(try before.coverage(asOf: nil).count == 1)
    before.close()
    let new = try await bench.open()
    #expect(try new.reader.counts().rejects == counts.rejects)
    #expect(try new.reader.deliveries(includingSent: true).count == 1)
    #expect(try new.reader.entries(after: .start, limit: 2000).count == count + 1)
    #expect(try new.reader.integrity() == [])
    await new.close()
    let schema = "SELECT group_concat(sql) FROM (SELECT sql FROM sqlite_schema ORDER BY name)"
    #expect(try RawDatabase(bench.path).text(schema) == RawDatabase(fresh.path).text(schema))
  }

  @Test(arguments: [0, 1000])
  func `a log is brought to a version that rewrites what is there, empty and full`(
    count: Int
  ) async throws {
    let bench = try Bench()
    let old = try await bench.open()
    let events = Sample.events(0..<UInt64(count))
    _ = try await old.ingest(bench.batch(events, from: Sample.home))
    let id = try old.reader.logID()
    await old.close()
    let new = try await bench.open(.later)
    #expect(try new.reader.logID() == id)
    #expect(
      try new.reader.entries(after: .start, limit: 2000).map(\.event) == events.map(\.event))
    #expect(try RawDatabase(bench.path).number("SELECT count(*) FROM later") == Int64(count))
    await new.close()
    #expect(try await bench.open(.later).reader.integrity() == [])
  }

  @Test func `a migration that fails leaves the log as it was`() async throws {
    let bench = try Bench()
    let old = try await bench.open()
    _ = try await old.ingest(bench.batch(Sample.events(0..<10)))
    await old.close()
    var options = LogOptions.later
    let broken = Array("CREATE TABLE half (x); INSERT INTO nowhere VALUES (1)".utf8)
    options.migrations[Migrations.all.count] = Migration(
      number: Migrations.all.count + 1, name: "broken", sql: broken, sha256: SHA256.hash(broken).hex
    )
    await #expect(throws: LogError.self) { _ = try await bench.open(options) }
    let raw = try RawDatabase(bench.path)
    #expect(try raw.number("SELECT count(*) FROM sqlite_schema WHERE name = 'half'") == 0)
    #expect(try raw.number("PRAGMA user_version") == Int64(Migrations.all.count))
    #expect(try await bench.open().reader.head() == LogSequence(10))
  }
}

extension LogOptions {
  /// A program that knows one migration more than this one.
  static var later: LogOptions {
    var options = LogOptions()
    let sql = Array("CREATE TABLE later AS SELECT seq FROM event".utf8)
    options.migrations.append(
      Migration(
        number: Migrations.all.count + 1, name: "later", sql: sql,
        sha256: SHA256.hash(sql).hex))
    return options
  }

  /// A program as it was when the schema had this version.
  static func past(_ version: Int) -> LogOptions {
    var options = LogOptions()
    options.migrations = Array(options.migrations.prefix(version))
    return options
  }
}
