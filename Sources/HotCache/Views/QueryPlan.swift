import Nostr

/// Which index answers a filter with the fewest entries to look at.
enum QueryPlan {
  /// A filter that nothing can match.
  case nothing
  case ids([EventID])
  case keys([IndexKey])

  /// Beyond so many (author, kind) pairs the authors' own kinds are listed instead.
  private static let pairCountMax = 4096

  init(_ filter: Filter, _ reading: Reading) throws(StoreError) {
    let lists = [filter.ids?.count, filter.authors?.count, filter.kinds?.count]
    if lists.contains(0) || filter.tags.values.contains(where: \.isEmpty) {
      self = .nothing
      return
    }
    if let since = filter.since, let until = filter.until, since > until {
      self = .nothing
      return
    }
    if let ids = filter.ids {
      self = .ids(ids)
      return
    }
    var best: (keys: [IndexKey], cost: Int)?
    func consider(_ keys: [IndexKey]) throws(StoreError) {
      var cost = keys.count
      for key in keys {
        cost += try reading.store.count(key)
        if let best, cost >= best.cost { return }
      }
      best = (keys, cost)
    }
    for letter in filter.tags.keys.sorted() {
      try consider(try Self.keys(letter, filter.tags[letter] ?? [], reading))
    }
    if let authors = filter.authors {
      try consider(try Self.keys(authors: authors, kinds: filter.kinds, reading))
    } else if let kinds = filter.kinds {
      try consider(kinds.map { .kind($0) })
    }
    if let best {
      self = .keys(best.keys)
    } else {
      self = .keys(try Self.keysOfEverything(reading))
    }
  }

  private static func keys(_ letter: UInt8, _ values: [Text], _ reading: Reading)
    throws(StoreError) -> [IndexKey]
  {
    var result: [IndexKey] = []
    for value in values {
      let hash = IndexKey.tagHash(value)
      result += try reading.store.keys(
        from: IndexKey(space: letter, hash: hash),
        through: IndexKey(space: letter, hash: hash, sub: .max), limit: .max)
      if letter == UInt8(ascii: "e"), value.count == 64 {
        result += try reading.store.keys(
          from: .reference(hash, .deletion), through: .reference(hash, .reaction, .max),
          limit: .max)
      }
    }
    return result
  }

  private static func keys(authors: [PublicKey], kinds: [EventKind]?, _ reading: Reading)
    throws(StoreError) -> [IndexKey]
  {
    if let kinds, authors.count * kinds.count <= pairCountMax {
      return authors.flatMap { author in kinds.map { .author(author, $0) } }
    }
    let wanted = kinds.map(Set.init)
    var result: [IndexKey] = []
    for author in authors {
      let own = try reading.store.keys(
        from: .author(author, EventKind(.min)), through: .author(author, EventKind(.max)),
        limit: .max)
      result += own.filter { key in
        wanted?.contains(EventKind(UInt16(truncatingIfNeeded: key.sub))) ?? true
      }
    }
    return result
  }

  private static func keysOfEverything(_ reading: Reading) throws(StoreError) -> [IndexKey] {
    try reading.store.keys(
      from: .kind(EventKind(.min)), through: .kind(EventKind(.max)), limit: .max)
  }
}

/// A filter made ready for many events.
struct PreparedFilter {
  private let filter: Filter
  private let ids: Set<EventID>?
  private let authors: Set<PublicKey>?
  private let kinds: Set<EventKind>?
  private let tags: [(letter: UInt8, values: Set<Text>)]

  init(_ filter: Filter) {
    self.filter = filter
    ids = filter.ids.map { Set($0) }
    authors = filter.authors.map { Set($0) }
    kinds = filter.kinds.map { Set($0) }
    tags = filter.tags.sorted { $0.key < $1.key }.map { ($0.key, Set($0.value)) }
  }

  func matches(_ row: BodyRow) -> Bool {
    if let since = filter.since, row.createdAt < since { return false }
    if let until = filter.until, row.createdAt > until { return false }
    if let kinds, !kinds.contains(row.kind) { return false }
    if let authors, !authors.contains(row.pubkey) { return false }
    if let ids, !ids.contains(row.id) { return false }
    if tags.isEmpty { return true }
    let rowTags = row.tags
    return tags.allSatisfy { wanted in
      rowTags.contains { tag in
        tag.letter == wanted.letter && tag.count > 1 && wanted.values.contains(tag[1])
      }
    }
  }
}
