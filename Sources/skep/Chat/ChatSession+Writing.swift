import EventLog
import HotCache
import Nostr
import NostrCrypto
import SyncCore
import SyncEngine

extension ChatSession {
  /// How far the clock may be set back so that what is written next waits for it; further back it is
  /// another clock.
  private static let setBackSeconds: Int64 = 10

  func send(_ text: String) async throws {
    let group = try openGroup()
    try await publish(
      EventDraft(
        createdAt: try await nextDate(), kind: .message, tags: Tags([["h", group]]),
        content: try composed(text)))
  }

  func reply(to reference: MessageReference, _ text: String) async throws {
    let target = try event(reference)
    let (time, viewer) = (now, me)
    let (parent, root) = try await read { view throws(CacheError) in
      let parent = try view.message(target, now: time, me: viewer)
      var root: MessageRow?
      if let id = parent?.root { root = try view.message(id, now: time, me: viewer) }
      return (parent, root)
    }
    guard let parent else { throw ChatFailure("unknown-message", "that message is not held") }
    guard let group = parent.group else {
      throw ChatFailure("no-channel", "that message belongs to no channel")
    }
    let isComment = parent.kind == .threadRoot || parent.kind == .comment
    let tags =
      isComment
      ? try commentTags(group, parent: parent, root: root ?? parent)
      : replyTags(group, parent: parent)
    try await publish(
      EventDraft(
        createdAt: try await nextDate(), kind: isComment ? .comment : .message, tags: tags,
        content: try composed(text)))
  }

  /// Marked `e` tags (NIP-10). A direct answer has only `reply`, which every relay that checks
  /// ancestry understands.
  private func replyTags(_ group: Text, parent: MessageRow) -> Tags {
    var tags: [[Text]] = [["h", group]]
    if let root = parent.root, root != parent.id {
      tags.append(["e", Text(root.hex), "", "root"])
    }
    tags.append(["e", Text(parent.id.hex), "", "reply"])
    if parent.author != me { tags.append(["p", Text(parent.author.hex)]) }
    return Tags(tags)
  }

  /// The tags of a comment (NIP-22): the root in capitals, the parent in small letters.
  private func commentTags(
    _ group: Text, parent: MessageRow, root: MessageRow
  ) throws -> Tags {
    guard root.kind != .comment else {
      throw ChatFailure("unknown-message", "the beginning of that thread is not held")
    }
    func kind(_ row: MessageRow) -> Text { Text(String(row.kind.number)) }
    return Tags([
      ["h", group],
      ["E", Text(root.id.hex), "", Text(root.author.hex)], ["K", kind(root)],
      ["P", Text(root.author.hex)],
      ["e", Text(parent.id.hex), "", Text(parent.author.hex)], ["k", kind(parent)],
      ["p", Text(parent.author.hex)],
    ])
  }

  func composed(_ text: String) throws -> Text {
    do throws(ComposeError) {
      return try ComposedText(Text(text)).text
    } catch {
      throw ChatFailure("text", error.description)
    }
  }

  /// Now, or just after the message before it, also where another run of the program wrote that:
  /// what was written later must not be sorted earlier. Where that is further ahead of the clock than
  /// relays can be expected to take, the next line is taken when the clock has come up.
  func nextDate() async throws -> Timestamp {
    let dates = MessageDates(
      lead: engine.options.limits.datingLeadMax, setBack: Self.setBackSeconds)
    let last = try lastWritten ?? store.reader.lastWrittenDate()
    while true {
      if let date = dates.next(after: last, at: now) { return date }
      if !isPaced {
        context.talk.say(
          "many lines at once: one a second is taken from here on, so that all are read in order")
      }
      isPaced = true
      try await context.clock.sleep(until: context.clock.uptime() + .milliseconds(200))
    }
  }

  private func publish(_ draft: EventDraft) async throws {
    try await show(try await write(draft))
  }

  /// Signs and stores what was written; it is sent now or when the relay can be reached.
  @discardableResult
  func write(_ draft: EventDraft) async throws -> EventID {
    let message = try await engine.publish(draft)
    lastWritten = draft.createdAt
    await store.caughtUp()
    return message.eventID
  }

  /// A message as it reads now.
  func show(_ id: EventID) async throws {
    let (time, viewer) = (now, me)
    let row = try await read { view throws(CacheError) in
      try view.message(id, now: time, me: viewer)
    }
    guard let row else { return }
    for shown in try await shown([row]) {
      try output.write(ChatRows.message(shown), output.rendering.message(shown))
    }
  }

  // MARK: The outbox

  func listOutbox() throws {
    let deliveries = try store.reader.deliveries(includingSent: false)
    if deliveries.isEmpty { try output.say("the outbox is empty") }
    for delivery in deliveries {
      let number = numbers.number(of: delivery.eventID)
      guard case .object(let members) = Rows.delivery(delivery, isAtWork: true) else { continue }
      try output.write(
        .object([("type", "outbox"), ("n", JSON(number))] + members),
        ["#\(number)  " + Rows.deliveryLine(delivery, isAtWork: true)])
    }
  }

  /// A message of one's own, as the outbox knows it.
  func ownMessage(_ reference: MessageReference) throws -> Message {
    if case .prefix(let digits) = reference {
      do {
        if let message = try OutboxChange.find(digits, in: store.reader) { return message }
      } catch let ambiguous as OutboxChange.Ambiguous {
        throw ChatFailure("ambiguous-message", ambiguous.sentence(digits))
      }
    }
    guard let message = try store.reader.message(eventID: try event(reference)) else {
      throw ChatFailure("unknown-message", "that message was not written here")
    }
    return message
  }

  func discard(_ reference: MessageReference) async throws {
    let message = try ownMessage(reference)
    try await engine.discard(message.id)
    await store.caughtUp()
    try output.say("given up; it is not sent any more")
  }
}
