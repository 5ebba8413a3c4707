import Nostr

/// Where an event stands in the order in which a relay sends stored events: newest first, a tie by
/// the lowest id.
struct Place: Hashable, Comparable, Sendable {
  let createdAt: Timestamp
  let id: EventID

  init(createdAt: Timestamp, id: EventID) {
    self.createdAt = createdAt
    self.id = id
  }

  init(_ event: Event) { self.init(createdAt: event.createdAt, id: event.id) }

  /// Before every event of that second and after every newer one.
  static func start(of time: Timestamp) -> Place {
    Place(createdAt: time, id: EventID(.zero))
  }

  static func < (left: Place, right: Place) -> Bool {
    left.createdAt != right.createdAt ? left.createdAt > right.createdAt : left.id < right.id
  }
}

/// A sorted list of places, cut into chunks so that an insertion in the middle moves little.
struct PlaceIndex: Sendable {
  private static let chunkCountMax = 512

  private(set) var count = 0
  /// No chunk is empty, and every place of a chunk comes before those of the next.
  private var chunks: [[Place]] = []

  /// A spot between places, from which a walk goes towards older events.
  struct Cursor: Sendable {
    fileprivate var chunk: Int
    fileprivate var offset: Int
  }

  /// - Returns: False where the place was there already.
  @discardableResult
  mutating func insert(_ place: Place) -> Bool {
    guard !chunks.isEmpty else {
      chunks = [[place]]
      count = 1
      return true
    }
    let chunk = chunkIndex(for: place)
    let offset = PlaceIndex.lowerBound(of: place, in: chunks[chunk])
    if offset < chunks[chunk].count && chunks[chunk][offset] == place { return false }
    chunks[chunk].insert(place, at: offset)
    count += 1
    if chunks[chunk].count > PlaceIndex.chunkCountMax { split(chunk) }
    return true
  }

  /// - Returns: False where the place was not there.
  @discardableResult
  mutating func remove(_ place: Place) -> Bool {
    guard !chunks.isEmpty else { return false }
    let chunk = chunkIndex(for: place)
    let offset = PlaceIndex.lowerBound(of: place, in: chunks[chunk])
    guard offset < chunks[chunk].count, chunks[chunk][offset] == place else { return false }
    chunks[chunk].remove(at: offset)
    if chunks[chunk].isEmpty { chunks.remove(at: chunk) }
    count -= 1
    return true
  }

  /// The spot before the first place that is not before `place`; nil stands for the very start.
  func cursor(from place: Place?) -> Cursor {
    guard let place, !chunks.isEmpty else { return Cursor(chunk: 0, offset: 0) }
    let chunk = chunkIndex(for: place)
    return Cursor(chunk: chunk, offset: PlaceIndex.lowerBound(of: place, in: chunks[chunk]))
  }

  /// The place after `cursor`, which moves behind it.
  func next(_ cursor: inout Cursor) -> Place? {
    while cursor.chunk < chunks.count {
      if cursor.offset < chunks[cursor.chunk].count {
        defer { cursor.offset += 1 }
        return chunks[cursor.chunk][cursor.offset]
      }
      cursor = Cursor(chunk: cursor.chunk + 1, offset: 0)
    }
    return nil
  }

  /// The last chunk whose first place is not after `place`, else the first chunk.
  private func chunkIndex(for place: Place) -> Int {
    var low = 0
    var high = chunks.count
    while low < high {
      let middle = (low + high) / 2
      if chunks[middle][0] <= place { low = middle + 1 } else { high = middle }
    }
    return max(0, low - 1)
  }

  private static func lowerBound(of place: Place, in chunk: [Place]) -> Int {
    var low = 0
    var high = chunk.count
    while low < high {
      let middle = (low + high) / 2
      if chunk[middle] < place { low = middle + 1 } else { high = middle }
    }
    return low
  }

  private mutating func split(_ chunk: Int) {
    let half = chunks[chunk].count / 2
    chunks.insert(Array(chunks[chunk][half...]), at: chunk + 1)
    chunks[chunk].removeSubrange(half...)
  }
}

/// Walks several indexes as one, each place once.
struct PlaceMerge {
  private var heads: [(place: Place, index: PlaceIndex, cursor: PlaceIndex.Cursor)] = []
  private var last: Place?

  init(_ indexes: [PlaceIndex], from start: Place?) {
    for index in indexes {
      var cursor = index.cursor(from: start)
      if let place = index.next(&cursor) { heads.append((place, index, cursor)) }
    }
    for root in stride(from: heads.count / 2 - 1, through: 0, by: -1) { sink(root) }
  }

  mutating func next() -> Place? {
    while let top = heads.first {
      advance()
      if top.place != last {
        last = top.place
        return top.place
      }
    }
    return nil
  }

  private mutating func advance() {
    let index = heads[0].index
    if let following = index.next(&heads[0].cursor) {
      heads[0].place = following
    } else {
      heads[0] = heads[heads.count - 1]
      heads.removeLast()
    }
    sink(0)
  }

  /// Restores the heap below `root`.
  private mutating func sink(_ root: Int) {
    var parent = root
    while true {
      var smallest = parent
      for child in [2 * parent + 1, 2 * parent + 2]
      where child < heads.count && heads[child].place < heads[smallest].place {
        smallest = child
      }
      if smallest == parent { return }
      heads.swapAt(parent, smallest)
      parent = smallest
    }
  }
}
