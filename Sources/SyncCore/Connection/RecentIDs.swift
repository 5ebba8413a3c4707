/// The last few ids of something; the oldest is forgotten first.
package struct RecentIDs<ID: Hashable & Sendable>: Sendable {
  private let capacity: Int
  private var ids: Set<ID> = []
  private var order: [ID] = []
  private var oldest = 0

  package init(_ capacity: Int) { self.capacity = max(capacity, 1) }

  func contains(_ id: ID) -> Bool { ids.contains(id) }

  /// - Returns: Whether it was not among them.
  @discardableResult
  package mutating func add(_ id: ID) -> Bool {
    guard ids.insert(id).inserted else { return false }
    guard order.count == capacity else {
      order.append(id)
      return true
    }
    ids.remove(order[oldest])
    order[oldest] = id
    oldest = (oldest + 1) % capacity
    return true
  }

  mutating func removeAll() { self = RecentIDs(capacity) }
}
