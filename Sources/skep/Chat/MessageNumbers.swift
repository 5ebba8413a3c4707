import Nostr

/// The short numbers that rows were shown with; a message keeps its number for the whole session.
struct MessageNumbers {
  private var numbers: [EventID: Int] = [:]
  private var ids: [EventID] = []

  mutating func number(of id: EventID) -> Int {
    if let number = numbers[id] { return number }
    ids.append(id)
    numbers[id] = ids.count
    return ids.count
  }

  /// A message that was given a new date keeps its number under the new id.
  mutating func rename(_ old: EventID, to new: EventID) {
    guard let number = numbers[old], numbers[new] == nil else { return }
    numbers[new] = number
    ids[number - 1] = new
  }

  /// The number that an event was shown with, if it was.
  func known(_ id: EventID) -> Int? { numbers[id] }

  func id(of number: Int) -> EventID? { ids.indices.contains(number - 1) ? ids[number - 1] : nil }
}

/// The short numbers of channels, counted apart from those of messages.
struct ChannelNumbers {
  private var ids: [Text] = []

  mutating func number(of id: Text) -> Int {
    if let index = ids.firstIndex(of: id) { return index + 1 }
    ids.append(id)
    return ids.count
  }

  func id(of number: Int) -> Text? { ids.indices.contains(number - 1) ? ids[number - 1] : nil }
}
