/// An ordered set kept as a list of small sorted blocks: both inserting and finding touch one
/// block, and a walk in order is a walk over arrays.
struct SortedBlocks<Element: Comparable> {
  private var blocks: [[Element]] = []
  private(set) var count = 0

  private static var blockCountMax: Int { 512 }

  /// Inserts `element`; false where an equal one is there already.
  @discardableResult
  mutating func insert(_ element: Element) -> Bool {
    guard !blocks.isEmpty else {
      blocks.append([element])
      count = 1
      return true
    }
    // The last block whose first element is not after the new one takes it.
    let block = max(0, firstBlock { $0[0] > element } - 1)
    let place = lowerBound(element, in: blocks[block])
    if place < blocks[block].count, blocks[block][place] == element { return false }
    blocks[block].insert(element, at: place)
    count += 1
    if blocks[block].count > Self.blockCountMax { split(block, insertedAt: place) }
    return true
  }

  /// The element equal to `element`, which may carry more than what takes part in comparing.
  func first(equalTo element: Element) -> Element? {
    var found: Element?
    ascend(from: element) { candidate in
      if candidate == element { found = candidate }
      return false
    }
    return found
  }

  /// Visits the elements that are not before `lower`, in rising order, while `visit` says true.
  func ascend(from lower: Element, _ visit: (Element) -> Bool) {
    var block = max(0, firstBlock { $0[0] > lower } - 1)
    guard block < blocks.count else { return }
    var place = lowerBound(lower, in: blocks[block])
    while block < blocks.count {
      while place < blocks[block].count {
        guard visit(blocks[block][place]) else { return }
        place += 1
      }
      block += 1
      place = 0
    }
  }

  /// Visits the elements that are not after `upper`, in falling order, while `visit` says true.
  func descend(from upper: Element, _ visit: (Element) -> Bool) {
    var block = firstBlock { $0[0] > upper } - 1
    guard block >= 0 else { return }
    var place = lowerBound(upper, in: blocks[block])
    if place < blocks[block].count, blocks[block][place] == upper { place += 1 }
    while block >= 0 {
      while place > 0 {
        place -= 1
        guard visit(blocks[block][place]) else { return }
      }
      block -= 1
      if block >= 0 { place = blocks[block].count }
    }
  }

  private mutating func split(_ block: Int, insertedAt place: Int) {
    // Where elements come in order, an uneven cut leaves full blocks behind.
    let full = blocks[block].count
    let cut = place == full - 1 ? full - 1 : full / 2
    let upper = Array(blocks[block][cut...])
    blocks[block].removeSubrange(cut...)
    blocks.insert(upper, at: block + 1)
  }

  private func firstBlock(where isAfter: ([Element]) -> Bool) -> Int {
    var low = 0
    var high = blocks.count
    while low < high {
      let middle = (low + high) / 2
      if isAfter(blocks[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }

  private func lowerBound(_ element: Element, in block: [Element]) -> Int {
    var low = 0
    var high = block.count
    while low < high {
      let middle = (low + high) / 2
      if block[middle] < element { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
