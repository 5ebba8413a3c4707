import EventLog
import HotCache
import Nostr
import SyncCore
import SyncEngine

/// `skep query FILTER`.
enum QueryCommand: Command {
  static let spec = CommandSpec(
    "query", "FILTER", count: 1...1,
    options: [
      .flag("log", "answer from the whole log: what is deleted, replaced or expired too")
    ],
    about: "Answers a filter of NIP-01 from the local copy, as a relay would; newest first.",
    examples: [
      #"skep query '{"kinds":[9],"limit":20}'"#,
      ##"skep query '{"#h":["general"],"since":1750000000}' --log --json"##,
    ])

  static func run(_ context: Context) async throws -> ExitCode {
    let filters = try filters(context)
    let community = try ReadingCommunity.chosen(context)
    let count =
      context.invocation.has("log")
      ? try answerFromLog(filters, community, context)
      : try answer(filters, community, context)
    if let code = context.stop.code { return code }
    let verdict = try community.completeness(now: context.clock.now()).verdict(on: filters)
    if context.wantsJSON {
      try context.out.write(
        row: [
          "type": "end", "count": JSON(count), "complete": JSON(verdict.isComplete),
          "gaps": .array(verdict.gaps.map(Rows.gap)), "as_of": JSON(verdict.asOf),
        ])
    } else {
      context.talk.say(
        (count == 1 ? "1 event, " : "\(Progress.grouped(count)) events, ")
          + (verdict.isComplete
            ? "complete" + (verdict.asOf.map { " as of \(TimeWords.rfc3339($0))" } ?? "")
            : "not proved complete"))
      for gap in verdict.gaps { context.talk.detail("gap: " + Rows.gapLine(gap)) }
    }
    return .done
  }

  /// A key that is no part of a filter asks for nothing, as at a relay; a slip of the finger must
  /// not pass for an answer all the same.
  private static func nameUnknownKeys(_ value: JSONValue, _ context: Context) {
    for (key, _) in value.members ?? [] where !Filter.knows(key) {
      let near = Suggestion.nearest(to: key.string, among: Filter.names.map(\.string))
      context.talk.say(
        "“\(SafeText.line(key, cells: 40))” is no part of a filter and asks for nothing"
          + (near.map { "; did you mean \($0)?" } ?? ""))
    }
  }

  /// One filter, or a list of them whose answers are joined.
  private static func filters(_ context: Context) throws -> [Filter] {
    let word = context.invocation.operands[0]
    do {
      let value = try JSONValue.parse(Text(word))
      let list: [JSONValue]
      if case .array(let values) = value { list = values } else { list = [value] }
      for value in list { nameUnknownKeys(value, context) }
      let filters = try list.map { value throws(FilterError) in try Filter(value) }
      guard !filters.isEmpty else {
        throw context.usage(
          #"an empty list asks for nothing; expected a filter, such as {} for everything"#)
      }
      guard filters.allSatisfy({ $0.search == nil }) else {
        throw context.usage("query answers filters without “search”, which is no part of NIP-01")
      }
      return filters
    } catch let error as UsageError {
      throw error
    } catch {
      throw context.usage(
        "this is no filter: \(SafeText.line("\(error)", cells: 200)); expected JSON such as"
          + #" {"kinds":[9],"limit":20}"#)
    }
  }

  private static let chunk = 256

  private static func answer(
    _ filters: [Filter], _ community: ReadingCommunity, _ context: Context
  ) throws -> Int {
    let now = context.clock.now()
    let places = try community.views().read { snapshot throws(CacheError) in
      try snapshot.query(filters, now: now)
    }
    var count = 0
    var rest = places[...]
    while !rest.isEmpty && !context.stop.isRequested {
      let events = try community.log.events(at: Array(rest.prefix(chunk)))
      for case .some(let logged) in events {
        try write(logged, context)
        count += 1
      }
      rest = rest.dropFirst(chunk)
    }
    return count
  }

  /// The log has no indexes by content, so it is read through once and only positions are kept.
  private static func answerFromLog(
    _ filters: [Filter], _ community: ReadingCommunity, _ context: Context
  ) throws -> Int {
    var found = filters.map { _ in [EventPosition]() }
    let selection = ExportSelection(
      since: filters.contains { $0.since == nil } ? nil : filters.compactMap(\.since).min(),
      until: filters.contains { $0.until == nil } ? nil : filters.compactMap(\.until).max())
    try community.log.export(selection) { logged in
      for (index, filter) in filters.enumerated() where filter.matches(logged.event) {
        found[index].append(logged.event.position)
      }
      return !context.stop.isRequested
    }
    let chosen = zip(filters, found).flatMap { filter, positions in
      positions.sorted(by: isNewer).prefix(filter.limit ?? .max)
    }
    var count = 0
    for position in Set(chosen).sorted(by: isNewer) {
      guard let logged = try community.log.event(id: position.id) else { continue }
      try write(logged, context)
      count += 1
    }
    return count
  }

  private static func isNewer(_ left: EventPosition, _ right: EventPosition) -> Bool {
    left.createdAt != right.createdAt ? left.createdAt > right.createdAt : left.id < right.id
  }

  private static func write(_ logged: LoggedEvent, _ context: Context) throws {
    let event = logged.event.json()
    if context.wantsJSON { return try context.out.write(event + [UInt8(ascii: "\n")]) }
    // What a pipe is read by may be a pager, or a terminal after all.
    try context.out.write(line: SafeText.json(String(decoding: event, as: UTF8.self)))
  }
}
