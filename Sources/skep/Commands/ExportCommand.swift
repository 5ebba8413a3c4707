import EventLog
import Nostr
import NostrCrypto
import SyncCore
import SyncEngine

/// `skep export`.
enum ExportCommand: Command {
  static let spec = CommandSpec(
    "export",
    options: [
      .value("group", "ID", "the events of one group, and what is about them"),
      .value("kind", "N", "only this kind; may be given again", repeats: true),
      .value("since", "T", "not older than this"), .value("until", "T", "not newer than this"),
      .value(
        "out", "FILE", "a file that appears whole or not at all; otherwise, and for -, stdout"),
      .value("manifest", "FILE", "a file that says what the export holds"),
    ],
    about:
      "Writes the log as JSON lines, by time and then by id; the same log gives the same bytes.",
    examples: ["skep export --out archive.jsonl --manifest archive.json", "skep export --kind 9"])

  static func run(_ context: Context) async throws -> ExitCode {
    let (since, until) = try context.span()
    let selection = ExportSelection(
      group: try context.groups()?.last, kinds: try kinds(context),
      since: since, until: until)
    let out = try OutputPath.given("out", context) ?? OutputPath.stdout
    let manifest = try OutputPath.given("manifest", context)
    let isToStdout = out == OutputPath.stdout
    if let manifest, isToStdout ? manifest == out : AtomicFile.isSame(out, manifest) {
      throw context.usage(
        isToStdout
          ? "the events and the manifest cannot both go to stdout: name a file for one of them"
          : "--out and --manifest name the same file, which can hold only one of them")
    }
    let community = try ReadingCommunity.chosen(context)
    let file = isToStdout ? nil : try AtomicFile(out)
    var tally = Tally()
    try write(selection, community, context, to: file, &tally)
    if let code = context.stop.code { return code }
    try file?.finish()
    if file == nil { try context.out.flush() }
    if let manifest { try writeManifest(manifest, selection, tally, community, context) }
    context.talk.say("\(Progress.grouped(tally.count)) events exported")
    return .done
  }

  private struct Tally {
    var count = 0
    var first: EventPosition?
    var last: EventPosition?
    let hash = SHA256Stream()
  }

  private static func kinds(_ context: Context) throws -> [EventKind]? {
    let words = context.invocation.values("kind")
    guard !words.isEmpty else { return nil }
    return try words.map { word in
      guard let number = UInt16(word) else {
        throw context.usage(
          "--kind “\(SafeText.line(word, cells: 40))” is not a number up to 65535")
      }
      return EventKind(number)
    }
  }

  private static func write(
    _ selection: ExportSelection, _ community: ReadingCommunity, _ context: Context,
    to file: AtomicFile?, _ tally: inout Tally
  ) throws {
    var problem: (any Error)?
    var line: [UInt8] = []
    let progress = Progress()
    try community.log.export(selection) { logged in
      line.removeAll(keepingCapacity: true)
      logged.event.writeJSON(into: &line)
      line.append(UInt8(ascii: "\n"))
      do {
        if let file { try file.write(line) } else { try context.out.write(line) }
      } catch {
        problem = error
        return false
      }
      tally.hash.update(line)
      tally.count += 1
      if tally.first == nil { tally.first = logged.event.position }
      tally.last = logged.event.position
      if tally.count % 1024 == 0 {
        context.talk.progress(progress.line("exported", done: tally.count))
      }
      return !context.stop.isRequested
    }
    if let problem { throw problem }
  }

  private static func writeManifest(
    _ path: String, _ selection: ExportSelection, _ tally: Tally, _ community: ReadingCommunity,
    _ context: Context
  ) throws {
    let reach = reach(selection)
    let now = context.clock.now()
    let touched = try community.log.coverage(asOf: now).filter { row in
      // A scope that is no filter says nothing about this export.
      guard let filter = try? Filter(json: row.scope.utf8) else { return false }
      return reach.contains { FilterRelation.overlap(filter, $0) }
    }
    let gaps = try community.completeness(now: now).verdict(on: reach).gaps
    let relays = try community.relays()
    let manifest: JSON = [
      "count": JSON(tally.count), "sha256": JSON(tally.hash.finish().hex),
      "first": position(tally.first), "last": position(tally.last),
      "filter": filter(selection),
      "relays": .array(relays.map { JSON($0.description) }),
      "coverage": .array(touched.map(Rows.coverage)), "gaps": .array(gaps.map(Rows.gap)),
      "created_at": JSON(now),
    ]
    if path == OutputPath.stdout {
      try context.out.write(manifest.line)
      return try context.out.flush()
    }
    let file = try AtomicFile(path)
    try file.write(manifest.line)
    try file.finish()
  }

  /// What an export asks for: of a group all that names it, and what its relay says of it. What is
  /// about those events without naming the group goes with them; no relay can be asked for that.
  private static func reach(_ selection: ExportSelection) -> [Filter] {
    var whole = Filter(
      kinds: selection.kinds, since: selection.since, until: selection.until)
    guard let group = selection.group else { return [whole] }
    var state = whole
    let states = SyncScopes.groupState(group).filter
    state.tags = states.tags
    state.kinds = states.kinds?.filter { selection.kinds?.contains($0) ?? true }
    whole.tags = Filter.group(group).tags
    return [whole, state]
  }

  private static func position(_ position: EventPosition?) -> JSON {
    guard let position else { return nil }
    return ["id": JSON(position.id.hex), "created_at": JSON(position.createdAt)]
  }

  private static func filter(_ selection: ExportSelection) -> JSON {
    var members: [(String, JSON)] = []
    if let group = selection.group { members.append(("group", .text(group))) }
    if let kinds = selection.kinds {
      members.append(("kinds", .array(Set(kinds).sorted().map { JSON(Int($0.number)) })))
    }
    if let since = selection.since { members.append(("since", JSON(since))) }
    if let until = selection.until { members.append(("until", JSON(until))) }
    return .object(members)
  }
}
