import Nostr

/// The dates of the versions that were written last, by slot.
///
/// A version that is stored is the log's to tell. This bridges the time until it is, in which a
/// second version of the slot may be begun; so only the newest slots are kept.
struct VersionDates {
  private let countMax: Int
  private var dates: [EventAddress: Timestamp] = [:]
  /// The one that was written longest ago first.
  private var order: [EventAddress] = []

  init(countMax: Int) { self.countMax = countMax }

  subscript(slot: EventAddress) -> Timestamp? { dates[slot] }

  mutating func note(_ date: Timestamp, for slot: EventAddress) {
    if dates.updateValue(date, forKey: slot) != nil { order.removeAll { $0 == slot } }
    order.append(slot)
    while order.count > countMax { dates[order.removeFirst()] = nil }
  }
}
