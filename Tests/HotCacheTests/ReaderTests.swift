import EventLog
import Foundation
import Nostr
import NostrCrypto
import Platform
import SyncCore
import Testing

@testable import HotCache

/// Readers in processes of their own, and what becomes of their slots when they are killed.
@Suite(.serialized) struct ReaderTests {
  private let scratch = Scratch()
  private var cachePath: String { scratch.path + "/cache" }
  private var logPath: String { scratch.path + "/log.sqlite" }

  private struct Holder {
    let process = Process()
    let input = Pipe()
    let output = Pipe()

    init(cache: String, log: String) throws {
      // Beside the test bundle's own executable.
      let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
      process.executableURL = URL(filePath: own).deletingLastPathComponent()
        .appending(path: "CacheHolder")
      process.arguments = [cache, log]
      process.standardInput = input
      process.standardOutput = output
      try process.run()
    }

    /// Returns once it is inside its read.
    func begun() -> String {
      String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    }

    func kill() {
      Glibc.kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
    }

    func finish() throws {
      try input.fileHandleForWriting.close()
      process.waitUntilExit()
    }
  }

  private func holders(_ count: Int) throws -> [Holder] {
    let all = try (0..<count).map { _ in try Holder(cache: cachePath, log: logPath) }
    for holder in all { #expect(holder.begun().hasPrefix("reading")) }
    return all
  }

  /// A log with some events, and a closed cache of it.
  private func build() async throws {
    let log = try await EventLog.open(
      path: logPath, executor: ThreadExecutor(), clock: StoppedClock())
    let signer = LocalSigner(SecretKey.generate())
    let events = try (0..<50).map { number in
      try signer.signed(
        EventDraft(createdAt: Timestamp(Int64(number)), kind: 9, tags: .none, content: "text"))
    }
    _ = try await log.ingest(IngestBatch(events: events, receivedAt: 0))
    let cache = await HotCache.open(
      directory: cachePath, log: log.reader, executor: ThreadExecutor())
    try await cache.catchUp()
    await cache.close()
    await log.close()
  }

  private func environment(readersMax: UInt32 = 512) throws -> LMDBEnvironment {
    try LMDBEnvironment(
      path: cachePath, access: .writing, mapBytes: 1 << 24, mapBytesMax: 1 << 24,
      readersMax: readersMax)
  }

  @Test func `the next opening clears a hundred readers that were killed`() async throws {
    try await build()
    // Without anybody in the environment the next one would begin a new table of readers.
    let living = try holders(1)
    let killed = try holders(100)
    for holder in killed { holder.kill() }
    let environment = try environment()
    #expect(environment.deadReaders == 100)
    environment.close()
    let again = try self.environment()
    #expect(again.deadReaders == 0)
    again.close()
    try living.first?.finish()
  }

  @Test func `readers that live keep their slots`() async throws {
    try await build()
    let living = try holders(3)
    let environment = try environment()
    #expect(environment.deadReaders == 0)
    environment.close()
    for holder in living { try holder.finish() }
  }

  @Test func `where all slots are taken by the dead, the next read clears them`() async throws {
    try await build()
    // The table of readers is as large as it was made, whatever a later opening asks for.
    try FileManager.default.removeItem(atPath: cachePath + "/lock.mdb")
    let environment = try environment(readersMax: 4)
    for holder in try holders(4) { holder.kill() }
    let entries = try environment.read { transaction throws(StoreError) in
      try LMDBSnapshot(transaction: transaction, tables: environment.tables).meta()?.applied
    }
    #expect(entries == 50)
    environment.close()
  }
}

private struct StoppedClock: SyncClock {
  func now() -> Timestamp { 0 }

  func uptime() -> Duration { .zero }

  func sleep(until uptime: Duration) async throws { throw CancellationError() }
}
