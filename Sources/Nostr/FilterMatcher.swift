/// One or more filters made ready to be asked about many events; an event matches when any
/// filter does. `limit` and `search` are not looked at, as in `Filter.matches`.
public struct FilterMatcher: Sendable {
  private let clauses: [Clause]

  public init(_ filters: [Filter]) { clauses = filters.map(Clause.init) }

  public init(_ filter: Filter) { clauses = [Clause(filter)] }

  public func matches(_ event: Event) -> Bool { clauses.contains { $0.matches(event) } }

  /// Wanted values: a few are walked, many are looked up. Hashing costs more than a few compares.
  private enum Values<Value: Hashable & Sendable>: Sendable {
    case few([Value])
    case many(Set<Value>)

    init(_ list: [Value]) { self = list.count <= 8 ? .few(list) : .many(Set(list)) }

    func contains(_ value: Value) -> Bool {
      switch self {
      case .few(let list): list.contains(value)
      case .many(let set): set.contains(value)
      }
    }
  }

  private struct Clause: Sendable {
    private let ids: Values<EventID>?
    private let authors: Values<PublicKey>?
    private let kinds: Values<EventKind>?
    private let tags: [(letter: UInt8, values: Values<Text>)]
    private let since: Int64
    private let until: Int64

    init(_ filter: Filter) {
      ids = filter.ids.map { Values($0) }
      authors = filter.authors.map { Values($0) }
      kinds = filter.kinds.map { Values($0) }
      tags = filter.tags.sorted { $0.key < $1.key }.map { ($0.key, Values($0.value)) }
      since = filter.since?.seconds ?? .min
      until = filter.until?.seconds ?? .max
    }

    func matches(_ event: Event) -> Bool {
      guard event.createdAt.seconds >= since, event.createdAt.seconds <= until else {
        return false
      }
      if let kinds, !kinds.contains(event.kind) { return false }
      if let authors, !authors.contains(event.pubkey) { return false }
      if let ids, !ids.contains(event.id) { return false }
      return tags.allSatisfy { wanted in
        event.tags.contains { tag in
          tag.letter == wanted.letter && tag.count > 1 && wanted.values.contains(tag[1])
        }
      }
    }
  }
}
