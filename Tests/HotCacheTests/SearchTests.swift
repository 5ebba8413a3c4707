import EventLog
import Foundation
import Nostr
import Platform
import SyncCore
import Testing

@testable import HotCache
@testable import SearchStore

/// What is found by words, and that it is what messages say now.
struct SearchTests {
  @Test(arguments: [
    ("hello", true), ("HELLO", true), ("hel", true), ("wor", true), ("hello world", true),
    ("world hello", true), ("\"hello wide\"", true), ("\"hello world\"", false),
    ("ello", false), ("hello moon", false), ("muller", true), ("Müll", true), ("naive", true),
    ("wide-world", true), ("2026", true), ("\"hel\"", false),
  ])
  func `words are found by their beginnings, whatever their case and accents, and phrases whole`(
    words: String, isFound: Bool
  ) throws {
    let said = message("Hello, wide-world! From Müller, nai\u{308}ve in 2026.", at: 10)
    #expect(try find(words, in: [said]) == (isFound ? [said.id] : []))
  }

  @Test(arguments: [
    ("日本語を勉強します", ["日", "語", "日本", "本語", "勉強", "勉強します", "す"], ["日語", "英語"]),
    ("Swift言語で書く", ["swift", "言語", "語で", "SWIFT言語"], ["言語swiftly", "書き"]),
    ("안녕하세요 세계", ["안녕", "하세요", "세계"], ["녕세"]),
    ("สวัสดีชาวโลก", ["สวัสดี", "ชาว", "โลก"], ["โลกชาว"]),
    ("Привет, мир", ["привет", "МИР", "прив"], ["ривет"]),
    ("مرحبا بالعالم", ["مرحبا", "بالع"], ["رحبا"]),
    ("我们😀今天", ["我们", "今天"], ["们今"]),
  ])
  func `every script is searched, those without spaces by any part`(
    text: String, hits: [String], misses: [String]
  ) throws {
    let said = message(text, at: 10)
    for words in hits { #expect(try find(words, in: [said]) == [said.id], "\(words)") }
    for words in misses { #expect(try find(words, in: [said]) == [], "\(words)") }
  }

  @Test(arguments: ["", " ", "!?", "\"", "\"\"", "🐝", "*", "- -"])
  func `where there is no letter there is nothing to look for`(words: String) throws {
    #expect(!SearchQuery(Text(words)).isSearchable)
    #expect(try find(words, in: [message("text", at: 1)]) == [])
  }

  @Test(arguments: [
    "a\" OR text", "text : x", "x AND NOT y", "(", "NEAR(a b)", "a\0b", "^a", "a*b",
  ])
  func `what looks like a query language is words`(words: String) throws {
    #expect(try find(words, in: [message("unrelated", at: 1)]) == [])
  }

  @Test func `an edit replaces, and only its author's latest counts`() throws {
    let said = message("original words", at: 10)
    let first = edit(said, "second thoughts", at: 20)
    let last = edit(said, "final thoughts", at: 30)
    let foreign = edit(said, "forged thoughts", by: 2, at: 40)
    for events in [[said, first, last, foreign], [foreign, last, first, said]] {
      #expect(try find("original", in: events) == [])
      #expect(try find("second", in: events) == [])
      #expect(try find("forged", in: events) == [])
      #expect(try find("final", in: events) == [said.id])
      let gone = event(5, by: 1, at: 50, [["e", last.id.hex]])
      #expect(try find("second", in: events + [gone]) == [said.id])
    }
  }

  @Test func `what is deleted, expired, discarded or blocked is not found`() throws {
    let said = message("words", at: 10)
    let deletion = event(5, at: 20, [["e", said.id.hex]])
    let foreign = event(5, by: 2, at: 20, [["e", said.id.hex]])
    #expect(try find("words", in: [deletion, said]) == [])
    #expect(try find("words", in: [said, deletion]) == [])
    #expect(try find("words", in: [said, foreign]) == [said.id])
    let brief = message("words", at: 11, [["expiration", "100"]])
    #expect(try find("words", in: [brief]) == [])
    let log = ArrayLog()
    log.append([said])
    log.append(.fact(.discarded(said.id)))
    #expect(try find(SearchQuery("words"), in: log).isEmpty)
    log.append(.fact(.restored(said.id)))
    #expect(try find(SearchQuery("words"), in: log).count == 1)
    #expect(try find(SearchQuery("words"), in: log, blocking: [person(1)]).isEmpty)
  }

  @Test func `a search can be bound to a group, a person and a time`() throws {
    let one = message("words", by: 1, at: 10)
    let two = message("words", by: 2, at: 20, in: "x")
    let three = edit(message("old", by: 2, at: 30), "words", by: 2, at: 90)
    let original = message("old", by: 2, at: 30)
    let log = ArrayLog()
    log.append([one, two, original, three])
    func ids(_ query: SearchQuery) throws -> [EventID] { try find(query, in: log).map(\.id) }
    #expect(try ids(SearchQuery("words")) == [original.id, two.id, one.id])
    #expect(try ids(SearchQuery("words", group: "x")) == [two.id])
    #expect(try ids(SearchQuery("words", group: "g")) == [original.id, one.id])
    #expect(try ids(SearchQuery("words", author: person(1))) == [one.id])
    #expect(try ids(SearchQuery("words", author: person(2))) == [original.id, two.id])
    #expect(try ids(SearchQuery("words", since: 20)) == [original.id, two.id])
    #expect(try ids(SearchQuery("words", until: 20)) == [two.id, one.id])
    #expect(try ids(SearchQuery("words", since: 31)) == [])
  }

  @Test func `a limit keeps the newest messages, however late others were edited`() throws {
    let messages = (0..<600).map { message("word \($0)", at: Int64($0)) }
    let late = edit(messages[0], "word late", at: 5000)
    let log = ArrayLog()
    log.append(messages + [late])
    let found = try find(SearchQuery("word", limit: 550), in: log)
    #expect(found.map(\.id) == messages.reversed().prefix(550).map(\.id))
    #expect(try find(SearchQuery("word", limit: 1000), in: log).last?.text == "word late")
  }

  @Test func `threads are found by their titles, and notices of the relay are not`() throws {
    let thread = event(11, at: 10, [["h", "g"], ["title", "Plans for May"]], "content")
    let notice = event(40099, at: 11, [["h", "g"]], "plans")
    let reaction = event(7, at: 12, [["h", "g"], ["e", thread.id.hex]], "plans")
    #expect(try find("plans", in: [thread, notice, reaction]) == [thread.id])
  }

  @Test func `of a text of any length the beginning is found`() throws {
    let long = "first " + String(repeating: "é", count: 200_000) + " last"
    let said = message(long, at: 10)
    #expect(try find("first", in: [said]) == [said.id])
    #expect(try find("last", in: [said]) == [])
  }

  @Test func `any order of the same events finds the same`() throws {
    let history = History(seed: 21, count: 600)
    func answers(_ log: ArrayLog) throws -> [FoundMessage] {
      try ["edited", "m1", "c", "brief 2", "k"].flatMap { words in
        try find(SearchQuery(Text(words), limit: 40), in: log, at: 1100)
      }
    }
    let first = try answers(history.log(order: 0))
    #expect(!first.isEmpty)
    for order in UInt64(1)...4 { #expect(try answers(history.log(order: order)) == first) }
    // A text's place must not come from its sequence, as these would.
    let log = history.log(order: 0)
    let rows = try rows(of: log)
    #expect(try rows == self.rows(of: history.log(order: 3)))
    #expect(try rows != Set(log.entries(after: .start, limit: .max).map(\.sequence.number)))
  }

  private func rows(of log: ArrayLog) throws -> Set<Int64> {
    Set(try log.entries(after: .start, limit: .max).compactMap(SearchFold.document).map(\.row))
  }

  @Test func `texts of one second whose ids begin alike are both found`() throws {
    let one = message("words one", at: 10, id: 0xabcd_ef01_0000_0001)
    let two = message("words two", at: 10, id: 0xabcd_ef01_0000_0002)
    #expect(Set(try find("words", in: [one, two, one])) == [one.id, two.id])
  }

  private func edit(_ target: Event, _ text: String, by author: UInt8 = 1, at time: Int64) -> Event
  {
    event(40003, by: author, at: time, [["h", "g"], ["e", target.id.hex]], text)
  }

  private func find(_ words: String, in events: [Event]) throws -> [EventID] {
    let log = ArrayLog()
    log.append(events)
    return try find(SearchQuery(Text(words)), in: log).map(\.id)
  }

  private func find(
    _ query: SearchQuery, in log: ArrayLog, at now: Timestamp = noon,
    blocking blocked: Set<PublicKey> = []
  ) throws -> [FoundMessage] {
    let cache = try views(log)
    cache.setBlocked(blocked)
    return try SearchReader.open(path: "/nowhere/search.sqlite", source: log)
      .find(query, in: cache, now: now)
  }
}

/// What becomes of the file, and that no answer depends on it.
struct SearchFileTests {
  private let scratch = Scratch()
  private let log = History(seed: 31, count: 400).log(order: 2)
  private var path: String { scratch.path + "/search.sqlite" }

  private func answers(_ search: SearchViews, _ log: ArrayLog) throws -> [FoundMessage] {
    let cache = try views(log)
    return try ["edited", "m1", "r", "k"].flatMap { words in
      try search.find(SearchQuery(Text(words)), in: cache, now: 1100)
    }
  }

  private func expected(_ log: ArrayLog) throws -> [FoundMessage] {
    try answers(SearchReader.open(path: "/nowhere/x", source: log), log)
  }

  private func collect(_ log: ArrayLog) async throws -> SearchIndex {
    let index = SearchIndex(path: path, source: log, executor: ThreadExecutor())
    try await index.catchUp()
    return index
  }

  @Test func `live, opened again, read by another and laid over, the answers are equal`()
    async throws
  {
    let half = log.prefix(200)
    let index = try await collect(half)
    #expect(try answers(index.views, half) == expected(half))
    #expect(try answers(SearchReader.open(path: path, source: log), log) == expected(log))
    await index.close()
    #expect(try answers(SearchReader.open(path: path, source: log), log) == expected(log))
    let again = try await collect(log)
    #expect(try answers(again.views, log) == expected(log))
    await again.close()
  }

  @Test(arguments: ["gone", "empty", "cut", "noise", "other log"])
  func `a file that is not as it was left is made anew`(harm: String) async throws {
    let index = try await collect(log)
    await index.close()
    var after = log
    let handle = try #require(FileHandle(forUpdatingAtPath: path))
    switch harm {
    case "gone": unlink(path)
    case "empty": try handle.truncate(atOffset: 0)
    case "cut": try handle.truncate(atOffset: handle.seekToEnd() / 2)
    case "noise":
      try handle.seek(toOffset: 9000)
      try handle.write(contentsOf: Data((0..<20_000).map { UInt8(truncatingIfNeeded: $0 * 7) }))
    default: after = History(seed: 32, count: 300).log(order: 1, name: "other")
    }
    try handle.close()
    #expect(try answers(SearchReader.open(path: path, source: after), after) == expected(after))
    let again = try await collect(after)
    #expect(try answers(again.views, after) == expected(after))
    await again.close()
  }

  @Test func `where no file can be kept memory answers`() async throws {
    let index = SearchIndex(
      path: scratch.path + "/missing/search.sqlite", source: log, executor: ThreadExecutor())
    try await index.catchUp()
    #expect(try answers(index.views, log) == expected(log))
    await index.close()
  }

  @Test func `a second writer keeps its words in memory`() async throws {
    let first = try await collect(log)
    let second = try await collect(log)
    #expect(try answers(second.views, log) == expected(log))
    await second.close()
    #expect(try answers(first.views, log) == expected(log))
    await first.close()
  }

  @Test func `a log that could not be read at first is collected when it can`() async throws {
    let source = StubbornLog(log)
    let index = SearchIndex(path: path, source: source, executor: ThreadExecutor())
    await #expect(throws: CacheError.log(.busy("log"))) { try await index.catchUp(limit: 4000) }
    #expect(try await index.catchUp(limit: 4000) == log.head())
    #expect(try answers(index.views, log) == expected(log))
    await index.close()
  }

  @Test func `a search whose file is closed goes on with the one in its place`() throws {
    let said = message("words", at: 10)
    let edited = event(40003, at: 20, [["h", "g"], ["e", said.id.hex]], "other words")
    let untouched = message("more words", at: 30)
    let log = ArrayLog()
    log.append([said, edited, untouched])
    func collected() throws -> SearchFile {
      let file = try SearchFile(writing: nil)
      _ = try SearchIndex.add(
        log.entries(after: .start, limit: .max), to: file, after: SearchFile.Mark(logID: []))
      return file
    }
    let old = try collected()
    let new = try collected()
    let search = SearchViews([old])
    // The edit is judged before messages are looked for.
    let store = WatchedStore {
      search.replace([new])
      old.close()
    }
    try fold(log, into: store.base)
    let cache = CacheViews(store: store, state: .ok)
    #expect(
      try search.find(SearchQuery("words"), in: cache, now: noon).map(\.id)
        == [untouched.id, said.id])
    // One that nothing has replaced says what it is.
    search.replace([old])
    #expect(throws: CacheError.log(.closed)) {
      try search.find(SearchQuery("words"), in: cache, now: noon)
    }
  }

  @Test func `searches go on while the file is made anew again and again`() async throws {
    let index = try await collect(log)
    let cache = try views(log)
    for _ in 0..<20 {
      // Once in a search, which is how often it looks again.
      let files = index.views.files
      index.views.doubt(files)
      async let writing = index.catchUp()
      _ = try index.views.find(SearchQuery("m1"), in: cache, now: 1100)
      #expect(try await writing == log.head())
      for file in files {
        #expect(throws: LogError.closed) {
          try file.hits("text : m1", from: 0, through: .max, limit: 1)
        }
      }
      #expect(try answers(index.views, log) == expected(log))
    }
    await index.close()
  }

  @Test func `damage of the cache is told as such, and the words are not blamed for it`() throws {
    let search = try SearchReader.open(path: "/nowhere/x", source: log)
    let store = WatchedStore { () throws(StoreError) in throw StoreError.damaged("a row") }
    try fold(log, into: store.base)
    let cache = CacheViews(store: store, state: .ok)
    #expect(throws: CacheError.damaged("a row")) {
      try search.find(SearchQuery("m1"), in: cache, now: 1100)
    }
    #expect(cache.isDoubted && !search.isDoubted)
  }
}

/// A log that is busy when it is first asked for anything.
private final class StubbornLog: EntrySource {
  private let log: ArrayLog
  private let isBusy = Lock(true)

  init(_ log: ArrayLog) { self.log = log }

  func logID() throws(CacheError) -> [UInt8] {
    let wasBusy = isBusy.withLock { isBusy in
      defer { isBusy = false }
      return isBusy
    }
    if wasBusy { throw .log(.busy("log")) }
    return try log.logID()
  }

  func head() throws(CacheError) -> LogSequence { try log.head() }

  func entries(after sequence: LogSequence, limit: Int) throws(CacheError) -> [LogEntry] {
    try log.entries(after: sequence, limit: limit)
  }
}

/// Memory that calls somebody before each read.
private final class WatchedStore: CacheStore {
  let base = MemoryStore()
  private let willRead: @Sendable () throws(StoreError) -> Void

  init(_ willRead: @escaping @Sendable () throws(StoreError) -> Void) { self.willRead = willRead }

  func write(_ batch: inout RowBatch, meta: CacheMeta) throws(StoreError) {
    try base.write(&batch, meta: meta)
  }

  func read<Result, Failure: Error>(
    _ body: (any StoreSnapshot) throws(Failure) -> Result
  ) throws(StoreReadError<Failure>) -> Result {
    do throws(StoreError) { try willRead() } catch { throw .store(error) }
    return try base.read(body)
  }

  func close() { base.close() }
}
