public import Nostr

/// One NIP-77 reconciliation, either side: takes the other side's message, gives the answer.
///
/// It decides which ranges differ and tells the client which ids each side lacks. It does not own
/// the subscription, its timers or its refusals, and it reads a set that was fixed when it opened.
/// Invariants: no answer is longer than the frame limit where one is set; equal ranges are never
/// listed; every range the other side names is answered or skipped, in order.
public struct NegentropyMachine: Sendable {
  /// What the other side's message came to.
  public struct Step: Hashable, Sendable {
    /// The bytes to send, or nil when the client is done.
    public let answer: [UInt8]?
    /// Ids that we hold and the other side lacks; only the client learns them.
    public let have: [EventID]
    /// Ids that the other side holds and we lack; only the client learns them.
    public let need: [EventID]
  }

  private let set: NegentropySet
  private let isClient: Bool
  private let frameBytesMax: Int?
  private let cut: Cut

  /// How ranges that differ are cut up. Any way is understood by any other side.
  public enum Cut: Sendable, Hashable {
    /// As the reference implementation does: byte for byte the same messages.
    case reference
    /// For a client beside a server that cuts as the reference does. The server lists a range of
    /// fewer than 32 items whole, and cuts a larger one in 16; so ranges are made such that what
    /// it lists is short, which saves more than half of the bytes where one in a hundred differs.
    /// Our own ids are not listed: a server answers a list with its own, whatever it holds.
    case lean
  }

  /// - Parameter frameBytesMax: The longest message in bytes before hex, at least 4096; nil for
  ///   no limit. Hex doubles it on the wire, so it must be under half the relay's frame limit.
  public init(
    set: NegentropySet, isClient: Bool, frameBytesMax: Int?, cut: Cut = .reference
  ) {
    precondition(isClient || cut == .reference, "only a client may leave its ids out of a list")
    precondition(frameBytesMax ?? 4096 >= 4096, "a negentropy frame holds at least 4096 bytes")
    self.set = set
    self.isClient = isClient
    self.frameBytesMax = frameBytesMax
    self.cut = cut
  }

  /// The client's first message.
  public func opening() -> [UInt8] {
    var writer = NegentropyWriter()
    split(0..<set.count, until: .infinity, into: &writer)
    return writer.bytes
  }

  /// The answer to `message`. A server meets an unknown version with its own version byte alone,
  /// so that the client can fall back.
  public func receive(_ message: [UInt8]) throws(NegentropyError) -> Step {
    var reader: NegentropyReader
    do {
      reader = try NegentropyReader(message)
    } catch .version(_) where !isClient {
      return Step(answer: [negentropyVersion], have: [], need: [])
    }
    var round = Round()
    while !reader.isAtEnd {
      let before = round.writer
      let bound = try reader.bound()
      let lower = round.index
      var upper = set.firstIndex(from: lower, notBefore: bound)
      switch try reader.varint() {
      case NegentropyMode.skip:
        round.isSkipping = true
      case NegentropyMode.fingerprint:
        if try reader.fingerprint() == set.fingerprint(lower..<upper) {
          round.isSkipping = true
        } else {
          round.endSkip()
          split(lower..<upper, until: bound, into: &round.writer)
        }
      case NegentropyMode.idList:
        let theirs = try reader.ids()
        if isClient {
          round.isSkipping = true
          round.compare(theirs, with: set, in: lower..<upper)
        } else {
          let start = round.writer.bytes.count
          round.endSkip()
          upper = list(lower..<upper, until: bound, from: start, into: &round)
        }
      case let mode:
        throw .malformed("an unknown mode \(mode)")
      }
      if isOver(round.writer.bytes.count) {
        // A list stands, cut short or not; anything else gives way to one fingerprint of the rest,
        // so that the other side comes back for it. That it leaves out this range and reaches back
        // over the ranges skipped before it is what the reference does: the fingerprints differ,
        // and the other side splits.
        if !round.wroteList { round.writer = before }
        round.writer.append(.infinity, mode: NegentropyMode.fingerprint)
        round.writer.append(set.fingerprint(upper..<set.count))
        break
      }
      round.advance(to: upper, bound)
    }
    let isDone = isClient && round.writer.bytes.count == 1
    return Step(answer: isDone ? nil : round.writer.bytes, have: round.have, need: round.need)
  }

  /// Into how many parts a range of so many items is cut; 1 has it listed.
  private func buckets(for count: Int) -> Int {
    switch cut {
    case .reference: return count < 32 ? 1 : 16
    case .lean:
      // Up to 128 the parts are so small that the server lists a few ids; above, the server cuts
      // each part in 16, to about three items, or to about 24, which then are cut here.
      if count <= 6 { return 1 }
      if count < 128 { return (count + 3) / 4 }
      if count < 1500 { return (count + 47) / 48 }
      return min(max(count / 390, 16), 512)
    }
  }

  private func split(
    _ range: Range<Int>, until bound: NegentropyBound, into writer: inout NegentropyWriter
  ) {
    let buckets = buckets(for: range.count)
    guard buckets > 1 else {
      let listed = cut == .lean ? range.prefix(0) : range
      writer.append(bound, mode: NegentropyMode.idList)
      writer.appendCount(listed.count)
      for index in listed { writer.append(set[index].id) }
      return
    }
    var start = range.lowerBound
    for bucket in 0..<buckets {
      let size = range.count / buckets + (bucket < range.count % buckets ? 1 : 0)
      let end = start + size
      writer.append(
        end == range.upperBound ? bound : .between(set[end - 1], set[end]),
        mode: NegentropyMode.fingerprint)
      writer.append(set.fingerprint(start..<end))
      start = end
    }
  }

  /// Lists our ids of a range, as many as the frame holds, and returns where the list ends.
  private func list(
    _ range: Range<Int>, until bound: NegentropyBound, from start: Int, into round: inout Round
  ) -> Int {
    var end = range.lowerBound
    while end < range.upperBound && !isOver(start + (end - range.lowerBound) * 32) {
      end += 1
    }
    round.writer.append(
      end < range.upperBound ? .at(set[end]) : bound, mode: NegentropyMode.idList)
    round.writer.appendCount(end - range.lowerBound)
    for index in range.lowerBound..<end { round.writer.append(set[index].id) }
    round.wroteList = true
    return end
  }

  /// Room is kept for the closing fingerprint of what did not fit.
  private func isOver(_ bytes: Int) -> Bool {
    guard let frameBytesMax else { return false }
    return bytes > frameBytesMax - 200
  }
}

/// The state of answering one message.
private struct Round {
  var writer = NegentropyWriter()
  var index = 0
  var isSkipping = false
  var wroteList = false
  var have: [EventID] = []
  var need: [EventID] = []
  private var bound = NegentropyBound(time: 0, prefix: [])

  mutating func endSkip() {
    guard isSkipping else { return }
    isSkipping = false
    writer.append(bound, mode: NegentropyMode.skip)
  }

  mutating func advance(to index: Int, _ bound: NegentropyBound) {
    self.index = index
    self.bound = bound
    wroteList = false
  }

  mutating func compare(_ theirs: [EventID], with set: NegentropySet, in range: Range<Int>) {
    var missing = Set(theirs)
    for index in range {
      let id = set[index].id
      if missing.remove(id) == nil { have.append(id) }
    }
    need.append(contentsOf: theirs.filter { missing.remove($0) != nil })
  }
}
