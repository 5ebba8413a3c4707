/// A first-in-first-out queue over an array; taking is O(1) on average.
struct Fifo<Element> {
  private var items: [Element?] = []
  private var head = 0

  var isEmpty: Bool { head == items.count }
  var count: Int { items.count - head }

  mutating func append(_ element: Element) { items.append(element) }

  mutating func popFirst() -> Element? {
    guard head < items.count else { return nil }
    defer {
      head += 1
      // Compact once half is spent, so that a queue that never runs empty does not grow.
      if head == items.count {
        items.removeAll(keepingCapacity: true)
        head = 0
      } else if head >= 64, head * 2 >= items.count {
        items.removeFirst(head)
        head = 0
      }
    }
    let element = items[head]
    items[head] = nil
    return element
  }

  mutating func removeAll() -> [Element] {
    let rest = items[head...].compactMap { $0 }
    items = []
    head = 0
    return rest
  }

  mutating func removeFirst(where isMatch: (Element) -> Bool) -> Element? {
    guard let index = items[head...].firstIndex(where: { $0.map(isMatch) ?? false }) else {
      return nil
    }
    return items.remove(at: index)
  }
}
