import EventLog
public import HotCache
public import Nostr
import Platform
import SyncCore

/// What is looked for.
public struct SearchQuery: Sendable {
  /// Words that must all begin words of a text; what stands between quotes is a phrase.
  public var text: Text
  public var group: Text?
  public var author: PublicKey?
  public var since: Timestamp?
  public var until: Timestamp?
  public var limit: Int

  public init(
    _ text: Text, group: Text? = nil, author: PublicKey? = nil, since: Timestamp? = nil,
    until: Timestamp? = nil, limit: Int = 50
  ) {
    self.text = text
    self.group = group
    self.author = author
    self.since = since
    self.until = until
    self.limit = limit
  }

  /// Whether there is anything in it that a text could have.
  public var isSearchable: Bool { SearchText.expression(text) != nil }
}

/// Search over what was collected, from any thread that may block.
///
/// The words say where a text might be; the cache says whether that text is what its message says
/// now, and whether the message is to be seen.
public final class SearchViews: Sendable {
  struct Current: Sendable {
    var files: [SearchFile]
    var isDoubted = false
  }

  private let current: Lock<Current>

  init(_ files: [SearchFile]) { current = Lock(Current(files: files)) }

  /// Edited texts looked at for one search, the newest.
  static let editsReadMax = 4096
  /// Texts looked at for one search, the newest.
  static let readMax = 50_000
  private static let chunk = 256

  /// The messages that say this now, newest first, ties to the highest id.
  public func find(
    _ query: SearchQuery, in cache: CacheViews, now: Timestamp
  ) throws(CacheError) -> [FoundMessage] {
    guard let words = SearchText.expression(query.text), query.limit > 0 else { return [] }
    do throws(CacheError) {
      return try find(words, query, files, cache, now)
    } catch .log(.closed) {
      // The writer has put others in their place since.
      return try find(words, query, files, cache, now)
    }
  }

  private func find(
    _ words: String, _ query: SearchQuery, _ files: [SearchFile], _ cache: CacheViews,
    _ now: Timestamp
  ) throws(CacheError) -> [FoundMessage] {
    var found: [EventID: FoundMessage] = [:]
    for message in try edited(words, query, files, cache, now) { found[message.id] = message }
    for message in try unedited(words, query, files, cache, now) { found[message.id] = message }
    let sorted = found.values.sorted { left, right in
      left.createdAt != right.createdAt ? left.createdAt > right.createdAt : left.id > right.id
    }
    return Array(sorted.prefix(query.limit))
  }

  /// Messages whose shown text is an edit: an edit's date says little about its message's.
  private func edited(
    _ words: String, _ query: SearchQuery, _ files: [SearchFile], _ cache: CacheViews,
    _ now: Timestamp
  ) throws(CacheError) -> [FoundMessage] {
    var expression = "\(words) AND scope : \(SearchFold.edits)"
    if let author = query.author { expression += " AND scope : \(SearchFold.author(author))" }
    let hits = try hits(
      expression, in: files, from: 0, through: .max, limit: Self.editsReadMax)
    return try judged(hits, query, cache, now)
  }

  private func unedited(
    _ words: String, _ query: SearchQuery, _ files: [SearchFile], _ cache: CacheViews,
    _ now: Timestamp
  ) throws(CacheError) -> [FoundMessage] {
    var expression = "\(words) AND scope : \(SearchFold.messages)"
    if let group = query.group { expression += " AND scope : \(SearchFold.group(group))" }
    if let author = query.author { expression += " AND scope : \(SearchFold.author(author))" }
    let lowest = query.since.map(SearchFold.first) ?? 0
    var highest = query.until.map(SearchFold.last) ?? .max
    var left = Self.readMax
    var result: [FoundMessage] = []
    while result.count < query.limit, left > 0, lowest <= highest {
      var hits = try hits(
        expression, in: files, from: lowest, through: highest, limit: Self.chunk)
      hits.sort { $0.row > $1.row }
      hits = Array(hits.prefix(Self.chunk))
      result += try judged(hits, query, cache, now)
      guard hits.count == Self.chunk, let last = hits.last else { break }
      left -= hits.count
      highest = last.row - 1
    }
    return result
  }

  private func hits(
    _ expression: String, in files: [SearchFile], from lowest: Int64, through highest: Int64,
    limit: Int
  ) throws(CacheError) -> [SearchFile.Hit] {
    var hits: [SearchFile.Hit] = []
    do throws(LogError) {
      for file in files {
        hits += try file.hits(expression, from: lowest, through: highest, limit: limit)
      }
    } catch {
      guard case .damaged(let why) = error else { throw .log(error) }
      doubt(files)
      throw .damaged("the words: \(why)")
    }
    return hits
  }

  private func judged(
    _ hits: [SearchFile.Hit], _ query: SearchQuery, _ cache: CacheViews, _ now: Timestamp
  ) throws(CacheError) -> [FoundMessage] {
    guard !hits.isEmpty else { return [] }
    return try cache.read { view throws(CacheError) in
      var result: [FoundMessage] = []
      for hit in hits {
        guard let message = try view.found(at: LogSequence(hit.sequence), now: now),
          query.group == nil || message.group == query.group,
          query.author == nil || message.author == query.author,
          query.since.map({ message.createdAt >= $0 }) ?? true,
          query.until.map({ message.createdAt <= $0 }) ?? true
        else { continue }
        result.append(message)
      }
      return result
    }
  }

  // MARK: For the writer

  var files: [SearchFile] { current.withLock { $0.files } }

  var isDoubted: Bool { current.withLock { $0.isDoubted } }

  func doubt(_ files: [SearchFile]) {
    // Others may have taken their place meanwhile, and are not to blame.
    current.withLock { if $0.files.first === files.first { $0.isDoubted = true } }
  }

  func replace(_ files: [SearchFile]) { current.withLock { $0 = Current(files: files) } }
}
