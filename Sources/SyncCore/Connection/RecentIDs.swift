import Nostr

/// The last few ids of something that ended; the oldest is forgotten first.
struct RecentIDs: Sendable {
  private let capacity: Int
  private var ids: Set<SubscriptionID> = []
  private var order: [SubscriptionID] = []
  private var oldest = 0

  init(_ capacity: Int) { self.capacity = max(capacity, 1) }

  func contains(_ id: SubscriptionID) -> Bool { ids.contains(id) }

  mutating func add(_ id: SubscriptionID) {
    guard ids.insert(id).inserted else { return }
    guard order.count == capacity else { return order.append(id) }
    ids.remove(order[oldest])
    order[oldest] = id
    oldest = (oldest + 1) % capacity
  }

  mutating func removeAll() { self = RecentIDs(capacity) }
}
