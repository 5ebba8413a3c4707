import HotCache
import Nostr
import SearchStore
import SyncCore
import SyncEngine

/// `skep search TEXT`.
enum SearchCommand: Command {
  static let spec = CommandSpec(
    "search", "TEXT", count: 1...64,
    options: [
      .value("group", "ID", "only this group"),
      .value("author", "KEY", "only what this person wrote"),
      .value("since", "T", "not older than this"), .value("until", "T", "not newer than this"),
      .value("limit", "N", "at most so many, the newest; 50 otherwise"),
    ],
    about:
      "Finds messages by the beginnings of words, or by “phrases” in quotes, as they read now.",
    examples: ["skep search sourdough", "skep search '\"spare key\"' --group general --json"])

  static func run(_ context: Context) async throws -> ExitCode {
    let (since, until) = try context.span()
    var query = SearchQuery(
      Text(context.invocation.operands.joined(separator: " ")),
      group: try context.groups()?.last, since: since, until: until,
      limit: try context.number("limit", in: 1...100_000) ?? 50)
    if let word = context.invocation.value("author") {
      guard let key = NameWords.publicKey(word) else {
        throw context.usage("--author “\(SafeText.line(word, cells: 40))” is no key")
      }
      query.author = key
    }
    guard query.isSearchable else {
      throw context.usage("there is no letter or number to look for in this text")
    }
    let community = try ReadingCommunity.chosen(context)
    let views = try community.views()
    let found = try community.find(query, in: views, now: context.clock.now())
    let names = try names(of: Set(found.map(\.author)), views, context)
    for message in found {
      try context.out.write(message, name: names[message.author], wantsJSON: context.wantsJSON)
    }
    context.talk.say(found.count == 1 ? "1 message" : "\(found.count) messages")
    return .done
  }

  private static func names(
    of authors: Set<PublicKey>, _ views: CacheViews, _ context: Context
  ) throws -> [PublicKey: Text] {
    let now = context.clock.now()
    return try views.read { view throws(CacheError) in
      var names: [PublicKey: Text] = [:]
      for author in authors { names[author] = try view.profile(author, now: now)?.shownName }
      return names
    }
  }
}

extension StandardOutput {
  fileprivate func write(_ message: FoundMessage, name: Text?, wantsJSON: Bool) throws {
    if wantsJSON {
      return try write(
        row: [
          "id": JSON(message.id.hex), "group": JSON(message.group),
          "author": JSON(message.author.hex), "created_at": JSON(message.createdAt),
          "text": .text(message.text), "name": JSON(name),
          "kind": .int(Int64(message.kind.number)),
        ])
    }
    let author = SafeText.name(name ?? .empty) ?? String(message.author.hex.prefix(8))
    let group = message.group.map { SafeText.line($0, cells: 24) } ?? "-"
    try write(
      line: "\(TimeWords.rfc3339(message.createdAt))  \(message.id.hex.prefix(8))  \(group)  "
        + CellWidth.clamp(author, to: 20) + ": " + SafeText.line(message.text, cells: 200))
  }
}

extension ReadingCommunity {
  /// Searches the words that are collected; where those are damaged, collects them anew in memory.
  func find(
    _ query: SearchQuery, in views: CacheViews, now: Timestamp
  ) throws -> [FoundMessage] {
    let path = folder.path + "/" + CommunityStore.searchName
    do throws(CacheError) {
      return try SearchReader.open(path: path, log: log).find(query, in: views, now: now)
    } catch .damaged {
      return try SearchReader.openInMemory(log: log).find(query, in: views, now: now)
    }
  }
}
