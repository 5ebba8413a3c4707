import Foundation
import Nostr
import NostrCrypto
import Platform
import SyncCore
import Testing

@testable import EventLog

/// Nothing is written to a log before it is known to be as its last writer left it, or was checked.
@Suite(.timeLimit(.minutes(1))) struct SoundnessTests {
  private static let key = SecretKey.generate()

  private static func events(_ numbers: Range<Int>) async throws -> [VerifiedEvent] {
    var events: [VerifiedEvent] = []
    for number in numbers {
      events.append(
        try await LocalSigner(key).sign(
          EventDraft(
            createdAt: 1_600_000_000, kind: .message, tags: Tags([["h", "garden"]]),
            content: Text("said \(number)"))))
    }
    return events
  }

  private static var checked: LogOptions {
    var options = LogOptions()
    options.isChecked = true
    return options
  }

  /// As a file too large to be checked while somebody waits for it to open.
  private static var checkedBehind: LogOptions {
    var options = checked
    options.checkedAtOnceBytesMax = 0
    return options
  }

  /// A log that was left in order.
  private static func filled() async throws -> Bench {
    let bench = try Bench()
    let log = try await bench.open(checked)
    _ = try await log.ingest(bench.batch(try await events(0..<50)))
    await log.close()
    return bench
  }

  /// Changes a letter of what somebody said, of which SQLite cannot know.
  private static func harm(_ bench: Bench) throws -> Data {
    let file = URL(filePath: bench.path)
    var bytes = try Data(contentsOf: file)
    let text = Data("said 7".utf8)
    // A page may hold the row's bytes more than once.
    var places = 0
    while let place = bytes.range(of: text)?.lowerBound {
      bytes[place] ^= 1
      places += 1
    }
    #expect(places > 0)
    try bytes.write(to: file)
    return bytes
  }

  @Test func `a log that was left in order need not be checked`() async throws {
    let bench = try await Self.filled()
    let (mark, fits) = try #require(LogMark.read(for: bench.path))
    #expect(fits && mark.head == LogSequence(50) && mark.uncheckedThrough == .start)
    let log = try await bench.open(Self.checkedBehind)
    #expect(log.isSound)
    _ = try await log.ingest(bench.batch(try await Self.events(50..<51)))
    await log.close()
    #expect(LogMark.read(for: bench.path)?.mark.head == LogSequence(51))
  }

  @Test func `a check does not hold for ever`() async throws {
    let bench = try await Self.filled()
    bench.clock.move(by: LogOptions().checkHoldsSeconds + 1)
    let log = try await bench.open(Self.checkedBehind)
    #expect(!log.isSound)
    try await log.confirmSound()
    #expect(log.isSound)
    await log.close()
    let checkedAt = bench.clock.now().seconds
    #expect(LogMark.read(for: bench.path)?.mark.checkedAt ?? 0 < checkedAt + 1)
  }

  @Test(arguments: [true, false])
  func `a file that was touched is checked, and its twin without harm is written to`(
    isHarmed: Bool
  ) async throws {
    let bench = try await Self.filled()
    let file = URL(filePath: bench.path)
    let bytes = isHarmed ? try Self.harm(bench) : try Data(contentsOf: file)
    try bytes.write(to: file)
    #expect(LogMark.read(for: bench.path)?.fits == false)
    guard isHarmed else {
      let log = try await bench.open(Self.checked)
      _ = try await log.ingest(bench.batch(try await Self.events(50..<51)))
      return await log.close()
    }
    await #expect(throws: LogError.damaged("entry 8 is not the event that its id names")) {
      _ = try await bench.open(Self.checked)
    }
    #expect(try Data(contentsOf: file) == bytes)
  }

  @Test func `a large file opens at once, and is not written to before its check has passed`()
    async throws
  {
    let bench = try await Self.filled()
    let bytes = try Self.harm(bench)
    let log = try await bench.open(Self.checkedBehind)
    #expect(log.damage == nil && !log.isSound)
    #expect(try log.reader.head() == LogSequence(50))
    let more = bench.batch(try await Self.events(50..<51))
    await #expect(throws: LogError.self) { _ = try await log.ingest(more) }
    await #expect(throws: LogError.self) { try await log.setSetting("key", [1]) }
    await #expect(throws: LogError.self) { try await log.confirmSound() }
    #expect(log.damage != nil && !log.isSound)
    await log.close()
    #expect(try Data(contentsOf: URL(filePath: bench.path)) == bytes)
    #expect(LogMark.read(for: bench.path)?.fits == false)
  }

  @Test func `the older events are checked behind the first write, and before anything is claimed`()
    async throws
  {
    let bench = try Bench()
    let log = try await bench.open(Self.checked)
    _ = try await log.ingest(bench.batch(try await Self.events(0..<50)))
    await log.close()
    _ = try Self.harm(bench)
    // As after a check of the newest alone, which a later opening did not come to go on with.
    let checkedAt = bench.clock.now().seconds
    LogMark(head: LogSequence(50), uncheckedThrough: LogSequence(40), checkedAt: checkedAt)
      .write(for: bench.path)
    let again = try await bench.open(Self.checkedBehind)
    #expect(!again.isSound)
    try await again.setSetting("key", [1])
    await #expect(throws: LogError.self) { try await again.confirmSound() }
    #expect(again.damage != nil)
    await #expect(throws: LogError.self) { try await again.setSetting("key", [2]) }
    await again.close()
  }

  @Test func `a log that was distrusted is checked by its next opening, and its twin is not`()
    async throws
  {
    for isDistrusted in [true, false] {
      let bench = try await Self.filled()
      let log = try await bench.open(Self.checkedBehind)
      #expect(log.isSound)
      if isDistrusted { await log.distrust(.damaged("a row of it")) }
      await log.close()
      #expect(LogMark.read(for: bench.path)?.fits == !isDistrusted)
      #expect(LogMark.read(for: bench.path)?.mark.head == LogSequence(50))
      let again = try await bench.open(Self.checkedBehind)
      #expect(again.isSound == !isDistrusted)
      try await again.confirmSound()
      await again.close()
      #expect(LogMark.read(for: bench.path)?.fits == true)
    }
  }

  @Test func `a check that ends well does not take back what was found meanwhile`() async throws {
    let bench = try await Self.filled()
    let checkedAt = bench.clock.now().seconds
    LogMark(head: LogSequence(50), uncheckedThrough: LogSequence(40), checkedAt: checkedAt)
      .write(for: bench.path)
    let log = try await bench.open(Self.checkedBehind)
    #expect(!log.isSound)
    let damage = LogError.damaged("a row of it")
    let check = await Turns(executor: bench.executor).check(log, thenDistrust: damage)
    #expect(throws: damage) { try check.get() }
    #expect(!log.isSound && log.damage == damage)
    await log.close()
  }

  /// Begins calls on the thread of a log, so that they take turns there in the order of their
  /// beginning.
  private actor Turns {
    private let executor: ThreadExecutor

    nonisolated var unownedExecutor: UnownedSerialExecutor {
      executor.asUnownedSerialExecutor()
    }

    init(executor: ThreadExecutor) { self.executor = executor }

    func check(
      _ log: EventLog, thenDistrust damage: LogError
    ) async -> Result<Void, any Error> {
      // What a task begins with is where its context is, if it names that.
      let checking = Task {
        _ = executor
        try await log.confirmSound()
      }
      let distrusting = Task {
        _ = executor
        await log.distrust(damage)
      }
      await distrusting.value
      return await checking.result
    }
  }

  @Test func `a check that was stopped is begun again by the next opening`() async throws {
    let bench = try await Self.filled()
    let file = URL(filePath: bench.path)
    try Data(contentsOf: file).write(to: file)
    let log = try await bench.open(Self.checkedBehind)
    log.stopChecking()
    await #expect(throws: LogError.closed) { try await log.confirmSound() }
    await #expect(throws: LogError.closed) { try await log.setSetting("key", [1]) }
    #expect(log.damage == nil)
    await log.close()
    #expect(LogMark.read(for: bench.path)?.fits == false)
    let again = try await bench.open(Self.checkedBehind)
    try await again.confirmSound()
    await again.close()
    #expect(LogMark.read(for: bench.path)?.fits == true)
  }

  @Test func `a note that is not whole, or of a log with pending pages, does not count`()
    async throws
  {
    let bench = try await Self.filled()
    let path = LogMark.path(of: bench.path)
    let note = try Data(contentsOf: URL(filePath: path))
    try (note.dropLast(3)).write(to: URL(filePath: path))
    #expect(LogMark.read(for: bench.path) == nil)
    try note.write(to: URL(filePath: path))
    #expect(LogMark.read(for: bench.path)?.fits == true)
    try Data([1]).write(to: URL(filePath: bench.path + "-wal"))
    #expect(LogMark.read(for: bench.path)?.fits == false)
  }
}
