import EventLog
import Foundation
import Nostr
import Platform
import SyncCore

@testable import NostrCrypto

/// A clock that stands still until it is moved.
final class StillClock: SyncClock {
  private let time: Lock<Timestamp>

  init(_ start: Timestamp = 1_700_000_000) { time = Lock(start) }

  func now() -> Timestamp { time.withLock { $0 } }

  func move(by seconds: Int64) { time.withLock { $0 = $0 + seconds } }

  func uptime() -> Duration { .zero }

  func sleep(until uptime: Duration) async throws { throw CancellationError() }
}

/// A scratch folder with a log in it, removed with the value.
final class Bench: Sendable {
  let folder: String
  let clock = StillClock()
  let executor = ThreadExecutor()

  var path: String { folder + "/log.sqlite" }

  init() throws {
    let url = FileManager.default.temporaryDirectory.appending(path: "log-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    folder = url.path
  }

  deinit {
    // A scratch folder left behind harms nobody.
    try? FileManager.default.removeItem(atPath: folder)
  }

  func open(_ options: LogOptions = LogOptions()) async throws -> EventLog {
    try await EventLog.open(path: path, executor: executor, clock: clock, options: options)
  }

  func batch(_ events: [VerifiedEvent] = [], from relay: RelayURL? = nil) -> IngestBatch {
    IngestBatch(events: events, source: relay, receivedAt: clock.now())
  }

  /// Every byte of every file in the folder, to see that nothing was touched.
  func snapshot() throws -> [String: Data] {
    var result: [String: Data] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
      result[name] = try Data(contentsOf: URL(filePath: folder + "/" + name))
    }
    return result
  }
}

/// Events whose ids and signatures are made up: the log is told that somebody vouched for them.
enum Sample {
  static let home = RelayURL("wss://home.example")!
  static let replica = RelayURL("wss://replica.example")!

  static func bytes(_ number: UInt64, _ salt: UInt8 = 0) -> Bytes32 {
    var bytes = [UInt8](repeating: salt, count: 32)
    // Spread over the first bytes, so that ids are in another order than numbers.
    var mixed = number &* 0x9e37_79b9_7f4a_7c15
    for index in 0..<8 {
      bytes[index] = UInt8(truncatingIfNeeded: mixed)
      mixed >>= 8
    }
    return Bytes32(bytes)!
  }

  static func event(
    _ number: UInt64, kind: EventKind = 9, at time: Timestamp = 1_600_000_000,
    tags: [[String]] = [["h", "garden"]], content: Text = "hello", form: IdForm = .standard
  ) -> VerifiedEvent {
    VerifiedEvent(
      vouchedFor: Event(
        id: EventID(bytes(number)), pubkey: PublicKey(bytes(number % 7, 1)), createdAt: time,
        kind: kind, tags: Tags(tags), content: content,
        sig: Signature(first: bytes(number, 2), second: bytes(number, 3))),
      idForm: form)
  }

  static func events(_ numbers: Range<UInt64>) -> [VerifiedEvent] { numbers.map { event($0) } }

  static let scope = Scope(Filter.group("garden"))

  static func proof(
    _ from: Timestamp, _ to: Timestamp, at time: Timestamp = 1_700_000_000,
    relay: RelayURL = home, method: ProofMethod = .paging
  ) -> CoverageProof {
    CoverageProof(
      relay: relay, scope: scope,
      interval: CoverageInterval(from: from, to: to, provedAt: time, method: method))
  }
}

extension LogEntry {
  var event: Event? { if case .event(let logged) = body { logged.event } else { nil } }

  var fact: Fact? { if case .fact(let fact) = body { fact } else { nil } }
}
