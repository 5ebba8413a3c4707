public import Nostr

/// How the events of two filters relate, times and limits aside.
public enum FilterRelation {
  /// Whether an event could match both.
  public static func overlap(_ left: Filter, _ right: Filter) -> Bool {
    left.tags.allSatisfy { letter, values in
      // Without the letter on the other side, or on another one, nothing rules it out.
      right.tags[letter].map { meets(values, $0) } ?? true
    } && meets(left.ids, right.ids) && meets(left.authors, right.authors)
      && meets(left.kinds, right.kinds)
  }

  /// Whether every event that matches `inner` matches `outer`.
  public static func contains(_ outer: Filter, _ inner: Filter) -> Bool {
    outer.search == nil
      && outer.tags.allSatisfy { letter, values in holds(values, inner.tags[letter]) }
      && holds(outer.ids, inner.ids) && holds(outer.authors, inner.authors)
      && holds(outer.kinds, inner.kinds)
  }

  private static func meets<Value: Hashable>(_ left: [Value]?, _ right: [Value]?) -> Bool {
    guard let left, let right else { return true }
    return left.contains(where: right.contains)
  }

  private static func holds<Value: Hashable>(_ outer: [Value]?, _ inner: [Value]?) -> Bool {
    guard let outer else { return true }
    guard let inner else { return false }
    if outer.count * inner.count <= 256 { return inner.allSatisfy(outer.contains) }
    return Set(inner).isSubset(of: outer)
  }
}

/// What a filter can be cut along: lists of which an event needs to match one value each.
enum FilterField: Hashable {
  case tag(UInt8)
  case authors
  case ids
  case kinds

  /// The fields that `filter` restricts, in an order that does not change.
  static func restricted(in filter: Filter) -> [FilterField] {
    var fields = filter.tags.keys.sorted().map { FilterField.tag($0) }
    if filter.authors != nil { fields.append(.authors) }
    if filter.ids != nil { fields.append(.ids) }
    if filter.kinds != nil { fields.append(.kinds) }
    return fields
  }

  /// Parts of `filter` that together are all of it: values of this field that the same ones of
  /// `others` name stay together.
  ///
  /// - Returns: Each part with the places in `others` of those that leave the field open or name the
  ///   part's values.
  func parts(of filter: Filter, by others: [Filter]) -> [(part: Filter, others: [Int])] {
    switch self {
    case .tag(let letter):
      classes(filter.tags[letter] ?? [], others.map { $0.tags[letter] }).map { values, places in
        var part = filter
        part.tags[letter] = values
        return (part, places)
      }
    case .authors:
      classes(filter.authors ?? [], others.map(\.authors)).map { values, places in
        var part = filter
        part.authors = values
        return (part, places)
      }
    case .ids:
      classes(filter.ids ?? [], others.map(\.ids)).map { values, places in
        var part = filter
        part.ids = values
        return (part, places)
      }
    case .kinds:
      classes(filter.kinds ?? [], others.map(\.kinds)).map { values, places in
        var part = filter
        part.kinds = values
        return (part, places)
      }
    }
  }

  private func classes<Value: Hashable>(
    _ values: [Value], _ lists: [[Value]?]
  ) -> [(values: [Value], places: [Int])] {
    var naming: [Value: [Int]] = [:]
    for (place, list) in lists.enumerated() {
      for value in Set(list ?? []) { naming[value, default: []].append(place) }
    }
    let open = lists.indices.filter { lists[$0] == nil }
    var order: [[Int]] = []
    var classes: [[Int]: [Value]] = [:]
    for value in values {
      let key = naming[value] ?? []
      if classes[key] == nil { order.append(key) }
      classes[key, default: []].append(value)
    }
    return order.map { (classes[$0] ?? [], ($0 + open).sorted()) }
  }
}
