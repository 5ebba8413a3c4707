import Nostr

/// Who may read an event.
///
/// An event with an `h` is read by whoever may read that group. One without is read by whoever may
/// read everything that it refers to, also where that is deleted, expired or replaced, for what is
/// said about a message tells of it. What refers to something that is not held may belong to any
/// group in which its author has been.
extension RelayMachine {
  func mayRead(_ event: Event, with keys: [PublicKey]) -> Bool {
    if groups.guarded.isEmpty { return true }
    var lookups = 0
    return mayRead(event, with: keys, depth: 0, &lookups)
  }

  /// How many events are looked up to judge one; what is beyond counts as not held.
  private static let lookupsMax = 256
  private static let depthMax = 16

  private func mayRead(
    _ event: Event, with keys: [PublicKey], depth: Int, _ lookups: inout Int
  ) -> Bool {
    switch event.kind {
    case 39000, 39001, 39003:
      guard let group = groups[event.identifier] else { return true }
      return !group.isHidden || group.hasMember(of: keys)
    case 39002:
      guard let group = groups[event.identifier] else { return true }
      return !(group.isPrivate || group.isHidden) || group.hasMember(of: keys)
    default: break
    }
    let names = event.tags.values("h")
    guard names.isEmpty else { return names.allSatisfy { isOpen($0, to: keys) } }
    // Nothing that it could refer to is closed to somebody who is in every group.
    if groups.guarded.allSatisfy({ isOpen($0, to: keys) }) { return true }
    var isUnknown = false
    for tag in event.tags {
      guard let reference = Reference(tag) else { continue }
      guard depth < Self.depthMax, lookups < Self.lookupsMax else {
        isUnknown = true
        break
      }
      lookups += 1
      if let target = record(of: reference) {
        guard mayRead(target, with: keys, depth: depth + 1, &lookups) else { return false }
      } else {
        isUnknown = true
      }
    }
    return !isUnknown || mayReadUnknown(by: event.pubkey, with: keys)
  }

  private func isOpen(_ name: Text, to keys: [PublicKey]) -> Bool {
    guard let group = groups[name], group.isPrivate else { return true }
    return group.hasMember(of: keys)
  }

  private enum Reference {
    case event(EventID)
    case address(EventAddress)

    init?(_ tag: Tag) {
      guard let letter = tag.letter else { return nil }
      switch letter {
      case UInt8(ascii: "e"), UInt8(ascii: "E"), UInt8(ascii: "q"),
        UInt8(ascii: "a"), UInt8(ascii: "A"):
        break
      default: return nil
      }
      if let id = tag.bytes32(1).map(EventID.init) {
        self = .event(id)
      } else if let address = tag.value(1).flatMap({ EventAddress($0) }) {
        self = .address(address)
      } else {
        return nil
      }
    }
  }

  private func record(of reference: Reference) -> Event? {
    // What a store that fails cannot tell counts as not held.
    switch reference {
    case .event(let id): try? store.record(of: id)
    case .address(let address): try? store.record(of: address)
    }
  }

  /// Only who is, or was, in a group can have seen what is in it.
  private func mayReadUnknown(by author: PublicKey, with keys: [PublicKey]) -> Bool {
    var names: [Text] = []
    for name in groups.guarded where !isOpen(name, to: keys) {
      guard let group = groups[name] else { continue }
      if group.members.isEmpty || group.members[author] != nil { return false }
      names.append(name)
    }
    let own = Filter(authors: [author], tags: [UInt8(ascii: "h"): names])
    guard let page = try? store.page(PageRequest(filter: own, eventsMax: 1)) else { return false }
    return page.events.isEmpty
  }
}
