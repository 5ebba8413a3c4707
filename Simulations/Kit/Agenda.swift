/// What is still to happen in a world, in the order of its time; what is due at the same time
/// happens in the order in which it was put down.
struct Agenda {
  struct Item {
    let due: Duration
    let order: Int
    /// Whether somebody waits for it who cannot be told that it will not be.
    let isOwed: Bool
    let run: () -> Void
  }

  private var heap: [Item] = []
  private var orderNext = 0

  var isEmpty: Bool { heap.isEmpty }

  var nextDue: Duration? { heap.first?.due }

  mutating func add(at due: Duration, isOwed: Bool = false, _ run: @escaping () -> Void) {
    heap.append(Item(due: due, order: orderNext, isOwed: isOwed, run: run))
    orderNext += 1
    var child = heap.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      if !isBefore(child, parent) { return }
      heap.swapAt(child, parent)
      child = parent
    }
  }

  mutating func takeFirst() -> Item? {
    guard let first = heap.first else { return nil }
    heap[0] = heap[heap.count - 1]
    heap.removeLast()
    var parent = 0
    while true {
      var smallest = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count {
        if isBefore(child, smallest) { smallest = child }
      }
      if smallest == parent { return first }
      heap.swapAt(parent, smallest)
      parent = smallest
    }
  }

  mutating func removeAll() { heap.removeAll() }

  private func isBefore(_ left: Int, _ right: Int) -> Bool {
    heap[left].due != heap[right].due
      ? heap[left].due < heap[right].due : heap[left].order < heap[right].order
  }
}
