import Nostr
import NostrCrypto
import Testing

@testable import SyncCore

@Suite struct NegentropyTests {
  @Test(arguments: [nil, 4096, 8192, 65_536] as [Int?])
  func `both differences are found exactly, whatever the frame limit`(limit: Int?) throws {
    var random = SeededNumbers(state: 77)
    for size in [0, 1, 31, 32, 33, 200, 3000] {
      let all = (0..<size).map { _ in item(&random, times: 1 + size / 3) }
      let ours = all.filter { _ in random.next() % 10 != 0 }
      let theirs = all.filter { _ in random.next() % 10 != 0 }
      let outcome = try reconcile(NegentropySet(ours), NegentropySet(theirs), limit: limit)
      #expect(outcome.have == Set(ours.map(\.id)).subtracting(theirs.map(\.id)))
      #expect(outcome.need == Set(theirs.map(\.id)).subtracting(ours.map(\.id)))
      #expect(outcome.longest <= limit ?? .max)
    }
  }

  @Test(arguments: [nil, 4096, 65_536] as [Int?])
  func `a lean client finds the same, in fewer bytes where little is apart`(limit: Int?) throws {
    var random = SeededNumbers(state: 78)
    for size in [0, 1, 6, 7, 127, 128, 1499, 1500, 20_000] {
      let all = (0..<size).map { _ in item(&random, times: 1 + size / 3) }
      for share: UInt64 in [1, 3, 100] {
        let ours = all.filter { _ in share == 1 || random.next() % share != 0 }
        let theirs = all.filter { _ in random.next() % 100 != 0 }
        let lean = try reconcile(
          NegentropySet(ours), NegentropySet(theirs), limit: limit, cut: .lean)
        #expect(lean.have == Set(ours.map(\.id)).subtracting(theirs.map(\.id)))
        #expect(lean.need == Set(theirs.map(\.id)).subtracting(ours.map(\.id)))
        #expect(lean.longest <= limit ?? .max)
        guard size == 20_000, share == 100 else { continue }
        let reference = try reconcile(NegentropySet(ours), NegentropySet(theirs), limit: limit)
        #expect(lean.bytes < reference.bytes)
      }
    }
  }

  @Test func `five thousand events of one second, half on each side, are told apart`() throws {
    var random = SeededNumbers(state: 5)
    let all = (0..<5000).map { _ in item(&random, times: 1) }
    let outcome = try reconcile(
      NegentropySet(all.prefix(2500)), NegentropySet(all.suffix(2500)), limit: 4096)
    #expect(outcome.have == Set(all.prefix(2500).map(\.id)))
    #expect(outcome.need == Set(all.suffix(2500).map(\.id)))
  }

  @Test func `equal sets need one message and one answer`() throws {
    var random = SeededNumbers(state: 9)
    let set = NegentropySet((0..<10_000).map { _ in item(&random, times: 100_000) })
    let outcome = try reconcile(set, set, limit: nil)
    #expect(outcome.rounds == 1)
    #expect(outcome.have.isEmpty && outcome.need.isEmpty)
  }

  @Test func `a fingerprint from prefix sums is the one from a scan`() {
    var random = SeededNumbers(state: 3)
    let set = NegentropySet((0..<500).map { _ in item(&random, times: 90) })
    for _ in 0..<200 {
      let ends = [Int(random.next() % 501), Int(random.next() % 501)].sorted()
      #expect(set.fingerprint(ends[0]..<ends[1]) == scannedFingerprint(set, ends[0]..<ends[1]))
    }
  }

  @Test func `the opening of an empty set is one empty list up to infinity`() {
    let machine = NegentropyMachine(set: NegentropySet([]), isClient: true, frameBytesMax: nil)
    #expect(machine.opening() == [0x61, 0x00, 0x00, 0x02, 0x00])
  }

  @Test func `a server meets an unknown version with its own, a client with an error`() throws {
    let set = NegentropySet([])
    let server = NegentropyMachine(set: set, isClient: false, frameBytesMax: nil)
    #expect(try server.receive([0x62, 0, 0, 2, 0]).answer == [0x61])
    let client = NegentropyMachine(set: set, isClient: true, frameBytesMax: nil)
    #expect(throws: NegentropyError.version(0x62)) { try client.receive([0x62]) }
  }

  @Test(
    arguments: [
      [], [0x61, 0x80], [0x61, 0x00, 0x21], [0x61, 0x00, 0x00, 0x03], [0x61, 0x00, 0x00, 0x01, 1],
      [0x61, 0x00, 0x00, 0x02, 0x05], [0x61] + [UInt8](repeating: 0xff, count: 12),
    ] as [[UInt8]])
  func `a malformed message is an error and never a trap`(message: [UInt8]) {
    let machine = NegentropyMachine(set: NegentropySet([]), isClient: false, frameBytesMax: nil)
    #expect(throws: NegentropyError.self) { try machine.receive(message) }
  }

  @Test func `noise is read without a trap`() {
    var random = SeededNumbers(state: 11)
    let set = NegentropySet((0..<100).map { _ in item(&random, times: 50) })
    let machine = NegentropyMachine(set: set, isClient: false, frameBytesMax: 4096)
    var answered = 0
    for _ in 0..<20_000 {
      let noise = (0..<Int(random.next() % 90)).map { _ in UInt8(truncatingIfNeeded: random.next())
      }
      if (try? machine.receive([0x61] + noise)) != nil { answered += 1 }
    }
    #expect(answered > 0)
  }
}

private struct Outcome {
  var have: Set<EventID> = []
  var need: Set<EventID> = []
  var rounds = 0
  var longest = 0
  var bytes = 0
}

private func reconcile(
  _ ours: NegentropySet, _ theirs: NegentropySet, limit: Int?,
  cut: NegentropyMachine.Cut = .reference
) throws -> Outcome {
  let client = NegentropyMachine(set: ours, isClient: true, frameBytesMax: limit, cut: cut)
  let server = NegentropyMachine(set: theirs, isClient: false, frameBytesMax: limit)
  var outcome = Outcome()
  var question: [UInt8]? = client.opening()
  while let message = question {
    outcome.rounds += 1
    try #require(outcome.rounds < 1000, "the session does not end")
    let answer = try #require(try server.receive(message).answer)
    outcome.bytes += message.count + answer.count
    outcome.longest = max(outcome.longest, message.count, answer.count)
    let step = try client.receive(answer)
    outcome.have.formUnion(step.have)
    outcome.need.formUnion(step.need)
    question = step.answer
  }
  return outcome
}

private func scannedFingerprint(_ set: NegentropySet, _ range: Range<Int>) -> NegentropyFingerprint
{
  var sum = [UInt8](repeating: 0, count: 32)
  for index in range {
    var carry = 0
    for (place, byte) in set[index].id.bytes.array.enumerated() {
      carry += Int(sum[place]) + Int(byte)
      sum[place] = UInt8(carry & 0xff)
      carry >>= 8
    }
  }
  NegentropyWriter.appendVarint(UInt64(range.count), to: &sum)
  return NegentropyFingerprint(Array(sum.withUnsafeBytes { SHA256.hash($0) }.array.prefix(16)))
}

private func item(_ random: inout SeededNumbers, times: Int) -> EventPosition {
  let words = (0..<4).flatMap { _ in withUnsafeBytes(of: random.next()) { Array($0) } }
  return EventPosition(
    createdAt: Timestamp(Int64(random.next() % UInt64(times))),
    id: EventID(Bytes32(words) ?? .zero))
}

private struct SeededNumbers {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }
}
