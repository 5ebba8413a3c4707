import EventLog
import Foundation
import Nostr
import NostrCrypto
import RelayServer
import SyncCore
import Testing

@testable import SyncEngine

/// Memory stays flat, however many subscriptions come and go and whatever is sent again.
///
/// `SKEP_MEMORY=full swift test --filter MemoryTests` takes minutes and measures the process with
/// nothing else in it; otherwise a small input keeps the way there from rotting.
@Suite(.serialized) struct MemoryTests {
  private static let isFull = ProcessInfo.processInfo.environment["SKEP_MEMORY"] == "full"

  /// The resident memory of this process.
  private static func residentBytes() throws -> Int {
    let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
    let pages = try #require(text.split(separator: " ").dropFirst().first.flatMap { Int($0) })
    return pages * 4096
  }

  /// Runs `body` so many times and compares the memory after a fifth of it with that at the end.
  private func measure(
    _ name: String, _ count: Int, _ body: (Int) async throws -> Void
  ) async throws {
    var early = 0
    for round in 0..<count {
      try await body(round)
      if round == count / 5 { early = try Self.residentBytes() }
    }
    let late = try Self.residentBytes()
    guard Self.isFull else { return }
    print("memory \(name): \(early >> 10) KiB after a fifth, \(late >> 10) KiB at the end")
    #expect(late <= early + early / 10, "\(name)")
  }

  @Test func `ten thousand subscriptions opened and closed leave nothing behind`() async throws {
    let world = try await EngineWorld()
    let connection = RelayConnection(
      world.url, ports: world.ports, signer: LocalSigner(world.member), verifier: Verifier(),
      sink: NoSink(), limits: Limits())
    await connection.start()
    try await measure("subscriptions", Self.isFull ? 10_000 : 200) { round in
      let page = await connection.fetch(
        HistoryWalk.Request(filter: Filter(kinds: [9], until: Timestamp(Int64(round)), limit: 2)))
      guard case .complete = page.end else {
        Issue.record("\(page.end)")
        return
      }
      await connection.want([("feed", [Filter(kinds: [EventKind(UInt16(round % 9000))])])])
    }
    await connection.unwant("feed")
    let machine = await connection.machine
    #expect(machine.openCount == 0 && machine.wanted.isEmpty)
    await connection.stop()
  }

  @Test func `a million events that are known already leave nothing behind`() async throws {
    let world = try await EngineWorld(events: Self.isFull ? 5000 : 600)
    let store = try await world.store()
    let engine = world.engine(store) { $0.isReadOnly = true }
    var plan = SyncPlan(.everything)
    plan.isFull = true
    let first = try await engine.syncOnce(plan)
    var duplicates = 0
    try await measure("duplicates", Self.isFull ? 1_000_000 / first.stored : 3) { _ in
      let again = try await engine.syncOnce(plan)
      #expect(again.stored == 0)
      duplicates += again.duplicates
    }
    #expect(duplicates >= first.stored * 3)
    await engine.stop()
    await store.close()
  }

  private struct NoSink: RelayReportSink {
    func take(_ report: RelayReport, from relay: RelayURL) async {}
  }
}
