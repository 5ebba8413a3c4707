import Foundation
import Nostr
import RelayServer
import SyncCore

/// `skep bench negentropy`: two sets, one in a hundred of whose items are on one side alone, and
/// the fingerprint of a large range against a scan of it.
struct NegentropyBench {
  private let itemsCount: Int

  init(_ context: Context) throws {
    itemsCount = try context.number("events", in: 1000...10_000_000) ?? 100_000
  }

  /// The longest message before hex for a relay that takes 128 KiB.
  private static let frameBytesMax = 131_072 / 2 - 512

  func run() throws -> BenchCommand.Figure {
    var random = SplitMix64(seed: 77)
    var ours: [EventPosition] = []
    var theirs: [EventPosition] = []
    for number in 0..<itemsCount {
      let item = item(number, &random)
      // Half of those that are apart are here and half are there.
      let isApart = number % 100 == 0
      if !isApart || number % 200 == 0 { ours.append(item) }
      if !isApart || number % 200 != 0 { theirs.append(item) }
    }
    let clock = ContinuousClock()
    let building = clock.now
    let sets = (ours: NegentropySet(ours), theirs: NegentropySet(theirs))
    let built = Progress.seconds(building.duration(to: clock.now))
    let start = clock.now
    let session = try session(sets.ours, sets.theirs, .lean)
    let seconds = Progress.seconds(start.duration(to: clock.now))
    let reference = try self.session(sets.ours, sets.theirs, .reference)
    let sums = rate { sets.ours.fingerprint(1..<sets.ours.count) }
    let scans = rate { sets.ours.scannedFingerprint(1..<sets.ours.count) }
    return BenchCommand.Figure(
      name: "negentropy", value: sums, unit: "fingerprints/s", limit: scans,
      extra: [
        ("items", JSON(itemsCount)), ("found", JSON(session.found)),
        ("rounds", JSON(session.rounds)), ("bytes", JSON(session.bytes)),
        ("seconds", .double(seconds)),
        ("reference_bytes", JSON(reference.bytes)), ("reference_rounds", JSON(reference.rounds)),
        ("build_seconds", .double(built)),
      ])
  }

  private func item(_ number: Int, _ random: inout SplitMix64) -> EventPosition {
    let words = (0..<4).flatMap { _ in withUnsafeBytes(of: random.next()) { Array($0) } }
    return EventPosition(
      createdAt: Timestamp(1_700_000_000 + Int64(number / 3)), id: EventID(Bytes32(words) ?? .zero))
  }

  private struct Session {
    var found = 0
    var rounds = 0
    /// As on the wire, in hex.
    var bytes = 0
  }

  private func session(
    _ ours: NegentropySet, _ theirs: NegentropySet, _ cut: NegentropyMachine.Cut
  ) throws -> Session {
    let client = NegentropyMachine(
      set: ours, isClient: true, frameBytesMax: Self.frameBytesMax, cut: cut)
    let server = NegentropyMachine(
      set: theirs, isClient: false, frameBytesMax: Self.frameBytesMax)
    var session = Session()
    var question: [UInt8]? = client.opening()
    while let message = question {
      session.rounds += 1
      guard let answer = try server.receive(message).answer else { break }
      session.bytes += 2 * (message.count + answer.count)
      let step = try client.receive(answer)
      session.found += step.need.count + step.have.count
      question = step.answer
    }
    return session
  }

  /// How often a second something can be done, from at least a fifth of a second of doing it.
  private func rate(_ body: () -> NegentropyFingerprint) -> Double {
    let clock = ContinuousClock()
    let start = clock.now
    var times = 0
    var seconds = 0.0
    var last = body()
    while seconds < 0.2 {
      for _ in 0..<8 { last = body() }
      times += 8
      seconds = Progress.seconds(start.duration(to: clock.now))
    }
    // What was computed is looked at, so that it cannot be left out.
    return last.bytes.isEmpty ? 0 : Double(times) / seconds
  }
}
