import EventLog
import Nostr
import SyncCore
import SyncEngine

/// `skep outbox [list|retry ID|discard ID]`.
enum OutboxCommand: Command {
  static let spec = CommandSpec(
    "outbox", about: "Every message that was not sent yet, and why.",
    examples: ["skep outbox", "skep outbox retry 12"],
    verbs: [
      CommandSpec(
        "list", options: [.flag("all", "also what was sent")],
        about: "lists the messages",
        examples: ["skep outbox list", "skep outbox list --all --json"]),
      CommandSpec(
        "retry", "ID", count: 1...1, about: "tries a message again at the next sync",
        examples: ["skep outbox retry 12", "skep outbox retry 4 --json"]),
      CommandSpec(
        "discard", "ID", count: 1...1, about: "gives a message up",
        examples: ["skep outbox discard 12", "skep outbox discard 4 --quiet"]),
    ], defaultVerb: "list")

  static func run(_ context: Context) async throws -> ExitCode {
    switch context.invocation.command[1] {
    case "list": try list(context)
    case "retry": try await retry(context)
    default: try await change(context, OutboxChange.discard)
    }
    return .done
  }

  private static func list(_ context: Context) throws {
    let community = try ReadingCommunity.chosen(context)
    let deliveries = try community.deliveries(includingSent: context.invocation.has("all"))
    let isAtWork = community.isAtWork
    if deliveries.isEmpty { context.talk.say("the outbox is empty") }
    for delivery in deliveries {
      if context.wantsJSON {
        try context.out.write(row: Rows.delivery(delivery, isAtWork: isAtWork))
      } else {
        try context.out.write(line: Rows.deliveryLine(delivery, isAtWork: isAtWork))
      }
    }
  }

  private static func change(
    _ context: Context, _ change: (Message, CommunityStore) async throws -> Void
  ) async throws {
    let folder = try CommunityFolder.chosen(context)
    let store = try await folder.openStore(context)
    do {
      try await change(try named(context, store.reader), store)
    } catch {
      await store.close()
      throw error
    }
    await store.close()
  }

  private static func named(_ context: Context, _ log: LogReader) throws -> Message {
    let word = context.invocation.operands[0]
    let found: Message?
    do {
      found = try OutboxChange.find(word, in: log)
    } catch let ambiguous as OutboxChange.Ambiguous {
      throw Failure(.partial, ambiguous.sentence(word))
    }
    guard let message = found else {
      throw Failure(
        .partial,
        "there is no message “\(SafeText.line(word, cells: 80))” in the outbox; expected"
          + " a number of “skep outbox”, or an event")
    }
    return message
  }

  /// One that has expired is signed anew, with a new date, which needs the key; any other goes back
  /// into the queue.
  private static func retry(_ context: Context) async throws {
    let folder = try CommunityFolder.chosen(context)
    let log = try ReadingCommunity(folder).log
    let found = try named(context, log)
    log.close()
    guard found.deliveries.contains(where: { $0.state == .expired }) else {
      return try await change(context, OutboxChange.retry)
    }
    var wish = RunningCommunity.Wish()
    wish.options.isOffline = true
    let community = try await RunningCommunity.open(folder, wish, context)
    var after: Message?
    do {
      try await community.engine.retry(found.id)
      after = try community.store.reader.message(id: found.id)
    } catch {
      await community.close()
      throw error
    }
    await community.close()
    if let still = after?.deliveries.first(where: { $0.state == .expired }) {
      let why = still.reason.map { SafeText.line($0.string, cells: 200) } ?? "no reason is known"
      throw Failure(.partial, "message \(found.id) could not be given a new date: \(why)")
    }
  }
}

/// What a person may do to a message of the outbox while no engine runs.
enum OutboxChange {
  /// A word that begins the ids of several messages.
  struct Ambiguous: Error {
    /// In the order of writing.
    let events: [EventID]

    func sentence(_ word: String) -> String {
      "several messages begin with \(SafeText.line(word, cells: 80)): "
        + events.map(\.hex).joined(separator: ", ")
    }
  }

  /// The message of a number, an event, or an event's first digits, which may all be decimal.
  static func find(_ word: String, in log: LogReader) throws -> Message? {
    if let number = Int64(word), let message = try log.message(id: MessageID(number)) {
      return message
    }
    if let id = NameWords.eventID(word) { return try log.message(eventID: id) }
    guard word.count >= 8 else { return nil }
    let matches = try log.deliveries(includingSent: true)
      .filter { $0.eventID.hex.hasPrefix(word) }
    let messages = Set(matches.map(\.message)).sorted()
    guard messages.count <= 1 else {
      var events: [EventID] = []
      for match in matches where !events.contains(match.eventID) { events.append(match.eventID) }
      throw Ambiguous(events: events)
    }
    return try messages.first.flatMap { try log.message(id: $0) }
  }

  /// Puts everything that has ended without success back into the queue.
  static func retry(_ message: Message, _ store: CommunityStore) async throws {
    for delivery in message.deliveries where delivery.state != .sent {
      var next = delivery
      next.state = .queued
      next.reason = nil
      next.nextAttemptAt = nil
      try await store.record(DeliveryChange(next))
    }
  }

  static func discard(_ message: Message, _ store: CommunityStore) async throws {
    try await store.discard(message.id)
  }
}
