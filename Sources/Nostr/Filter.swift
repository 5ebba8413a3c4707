/// What a REQ asks for (NIP-01): fields are joined by AND, the values of a field by OR.
public struct Filter: Hashable, Sendable {
  /// Exact 32-byte ids; nil asks for any. An empty list matches nothing.
  public var ids: [EventID]?
  /// Exact authors; nil asks for any. An empty list matches nothing.
  public var authors: [PublicKey]?
  public var kinds: [EventKind]?
  /// Values by tag letter (`a-z`, `A-Z`), compared as bytes with element 1 of such tags.
  public var tags: [UInt8: [Text]]
  /// Inclusive lower bound of `created_at`.
  public var since: Timestamp?
  /// Inclusive upper bound of `created_at`.
  public var until: Timestamp?
  /// The most events wanted from what is stored; 0 asks for live events only.
  public var limit: Int?
  /// Full-text query (NIP-50).
  public var search: Text?

  public init(
    ids: [EventID]? = nil, authors: [PublicKey]? = nil, kinds: [EventKind]? = nil,
    tags: [UInt8: [Text]] = [:], since: Timestamp? = nil, until: Timestamp? = nil,
    limit: Int? = nil, search: Text? = nil
  ) {
    self.ids = ids
    self.authors = authors
    self.kinds = kinds
    self.tags = tags
    self.since = since
    self.until = until
    self.limit = limit
    self.search = search
  }

  /// A filter on one group's `h` tag.
  public static func group(_ group: Text, kinds: [EventKind]? = nil) -> Filter {
    Filter(kinds: kinds, tags: [UInt8(ascii: "h"): [group]])
  }

  /// Whether `event` is one that this filter asks for; `limit` and `search` are not looked at.
  public func matches(_ event: Event) -> Bool {
    if let since, event.createdAt < since { return false }
    if let until, event.createdAt > until { return false }
    if let kinds, !kinds.contains(event.kind) { return false }
    if let authors, !authors.contains(event.pubkey) { return false }
    if let ids, !ids.contains(event.id) { return false }
    return tags.allSatisfy { letter, values in
      event.tags.contains { tag in
        tag.letter == letter && tag.count > 1 && values.contains(tag[1])
      }
    }
  }
}

extension Filter {
  /// The same filter with every list sorted and without repeats, so that equal meanings are equal.
  public var canonical: Filter {
    var result = self
    result.ids = ids.map { Array(Set($0)).sorted() }
    result.authors = authors.map { Array(Set($0)).sorted() }
    result.kinds = kinds.map { Array(Set($0)).sorted() }
    result.tags = tags.mapValues { Array(Set($0)).sorted() }
    return result
  }
}
