import Nostr

/// The orders in which entries are asked for.
enum EntryOrder {
  /// Newest first, and within a second the lowest id first: what a relay answers (NIP-01).
  case newestFirst
  /// From the highest (time, id) down.
  case falling
  /// From the lowest (time, id) up.
  case rising

  var isNewestFirst: Bool { self != .rising }
  var hasLowIDsFirst: Bool { self != .falling }
}

/// An entry with what is needed to order it exactly against others.
struct Candidate {
  let entry: IndexEntry
  /// The event's own time.
  let time: Int64
  /// Read only where time and prefix did not tell.
  var id: EventID?
}

/// The entries of one key, read in pieces, in exact order.
///
/// Entries are kept by a time stamp that ends in 2106 and by eight bytes of the id. Where two
/// entries agree in these, or in the last stamp, their events are read and compared whole.
struct EntryStream {
  private let key: IndexKey
  private let order: EntryOrder
  private var lower: IndexEntry
  private var upper: IndexEntry
  private var ready: [Candidate] = []
  private var place = 0
  private var isDone = false
  private var pieceCount = 16

  private static let pieceCountMax = 1024

  init(
    _ key: IndexKey, order: EntryOrder, since: Timestamp? = nil, until: Timestamp? = nil
  ) {
    self.key = key
    self.order = order
    lower = IndexEntry(time: since.map(IndexEntry.stamp) ?? 0, prefix: 0, sequence: 0)
    upper = IndexEntry(
      time: until.map(IndexEntry.stamp) ?? .max, prefix: .max, sequence: IndexEntry.sequenceMax)
  }

  mutating func next(_ reading: Reading) throws(StoreError) -> Candidate? {
    while place >= ready.count {
      if isDone { return nil }
      try fill(reading)
    }
    defer { place += 1 }
    return ready[place]
  }

  private mutating func fill(_ reading: Reading) throws(StoreError) {
    ready.removeAll(keepingCapacity: true)
    place = 0
    var piece: [IndexEntry] = []
    try reading.store.entries(
      key, from: lower, through: upper, descending: order.isNewestFirst, limit: pieceCount,
      into: &piece)
    if piece.count < pieceCount {
      isDone = true
    } else {
      // The last run may go on in the next piece, and only a whole run can be put in order.
      let whole = piece.firstIndex { isSameRun($0, piece[piece.count - 1]) } ?? 0
      let last = piece[piece.count - 1]
      piece.removeSubrange(whole...)
      pieceCount = piece.isEmpty ? pieceCount * 4 : min(pieceCount * 2, Self.pieceCountMax)
      resume(at: last)
    }
    var start = 0
    while start < piece.count {
      var end = start + 1
      while end < piece.count, isSameRun(piece[end], piece[start]) { end += 1 }
      try appendRun(piece[start..<end], reading)
      start = end
    }
  }

  /// Whether two neighbours can be put in order only together.
  private func isSameRun(_ left: IndexEntry, _ right: IndexEntry) -> Bool {
    guard left.time == right.time else { return false }
    return order == .newestFirst || left.time == .max || left.prefix == right.prefix
  }

  /// Moves the bound so that the next piece begins with the run of `entry`.
  private mutating func resume(at entry: IndexEntry) {
    let isByTime = order == .newestFirst || entry.time == .max
    if order.isNewestFirst {
      upper = IndexEntry(
        time: entry.time, prefix: isByTime ? .max : entry.prefix, sequence: IndexEntry.sequenceMax)
    } else {
      lower = IndexEntry(time: entry.time, prefix: isByTime ? 0 : entry.prefix, sequence: 0)
    }
  }

  private mutating func appendRun(_ run: ArraySlice<IndexEntry>, _ reading: Reading)
    throws(StoreError)
  {
    guard let first = run.first else { return }
    guard run.count > 1 || first.time == .max else {
      ready.append(Candidate(entry: first, time: Int64(first.time)))
      return
    }
    let neighbours = zip(run, run.dropFirst())
    guard first.time == .max || neighbours.contains(where: { $0.prefix == $1.prefix }) else {
      for entry in run.reversed() {
        ready.append(Candidate(entry: entry, time: Int64(entry.time)))
      }
      return
    }
    var exact: [(position: EventPosition, candidate: Candidate)] = []
    for entry in run {
      let row = try reading.row(entry)
      exact.append(
        (row.position, Candidate(entry: entry, time: row.createdAt.seconds, id: row.id)))
    }
    let order = order
    exact.sort { left, right in
      if left.position.createdAt != right.position.createdAt {
        return (left.position.createdAt > right.position.createdAt) == order.isNewestFirst
      }
      if left.position.id != right.position.id {
        return (left.position.id < right.position.id) == order.hasLowIDsFirst
      }
      return left.candidate.entry.sequence < right.candidate.entry.sequence
    }
    ready.append(contentsOf: exact.map(\.candidate))
  }
}

/// Several streams as one, in order and without repeats.
struct EntryMerge {
  private let order: EntryOrder
  private var streams: [EntryStream]
  /// A binary heap of the streams' heads.
  private var heads: [(candidate: Candidate, stream: Int)] = []
  private var isStarted = false
  private var last: UInt64?

  init(
    _ keys: [IndexKey], order: EntryOrder, since: Timestamp? = nil, until: Timestamp? = nil
  ) {
    self.order = order
    streams = keys.map { EntryStream($0, order: order, since: since, until: until) }
  }

  mutating func next(_ reading: Reading) throws(StoreError) -> Candidate? {
    if !isStarted {
      isStarted = true
      for index in streams.indices { try push(index, reading) }
    }
    while let head = heads.first {
      let end = heads.removeLast()
      if !heads.isEmpty {
        heads[0] = end
        try sink(reading)
      }
      try push(head.stream, reading)
      if head.candidate.entry.sequence == last { continue }
      last = head.candidate.entry.sequence
      return head.candidate
    }
    return nil
  }

  private mutating func push(_ stream: Int, _ reading: Reading) throws(StoreError) {
    guard let candidate = try streams[stream].next(reading) else { return }
    heads.append((candidate, stream))
    var child = heads.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard try precedes(child, parent, reading) else { return }
      heads.swapAt(child, parent)
      child = parent
    }
  }

  private mutating func sink(_ reading: Reading) throws(StoreError) {
    var parent = 0
    while true {
      var best = parent
      for child in [parent * 2 + 1, parent * 2 + 2] where child < heads.count {
        if try precedes(child, best, reading) { best = child }
      }
      if best == parent { return }
      heads.swapAt(best, parent)
      parent = best
    }
  }

  private mutating func precedes(_ left: Int, _ right: Int, _ reading: Reading) throws(StoreError)
    -> Bool
  {
    let (one, other) = (heads[left].candidate, heads[right].candidate)
    if one.time != other.time { return (one.time > other.time) == order.isNewestFirst }
    if one.entry.prefix != other.entry.prefix {
      return (one.entry.prefix < other.entry.prefix) == order.hasLowIDsFirst
    }
    if one.entry.sequence == other.entry.sequence { return false }
    let first = try id(left, reading)
    let second = try id(right, reading)
    return (first < second) == order.hasLowIDsFirst
  }

  private mutating func id(_ head: Int, _ reading: Reading) throws(StoreError) -> EventID {
    if let id = heads[head].candidate.id { return id }
    let id = try reading.row(heads[head].candidate.entry).id
    heads[head].candidate.id = id
    return id
  }
}
