package import Nostr
import NostrCrypto
package import SyncCore

/// `POST /query`: the same events by HTTP, and windows of a channel (NIP-CW).
extension RelayMachine {
  /// - Returns: Nil where the rules leave whoever asks without an answer.
  package mutating func answer(_ question: ServedQuestion, now: Timestamp) -> RelayReply? {
    self.now = now
    guard question.path == ChannelWindowRequest.path else { return RelayReply(status: 404) }
    switch rules.reading.windows {
    case .unserved: return RelayReply(status: 404)
    case .refused(let status): return RelayReply(status: status)
    case .garbled: return RelayReply(status: 200, body: Array("<html>not here</html>".utf8))
    case .ignored: return nil
    case .oversized(let bytes):
      return RelayReply(status: 200, body: [UInt8](repeating: UInt8(ascii: " "), count: bytes))
    case .unread: return answer(question, asWindows: nil)
    case .served(let rowsMax, let projects):
      return answer(question, asWindows: (rowsMax: rowsMax, projectsReplies: projects))
    }
  }

  private func answer(
    _ question: ServedQuestion, asWindows windows: (rowsMax: Int, projectsReplies: Bool)?
  ) -> RelayReply {
    let keys = [signer(of: question)].compactMap { $0 }
    if keys.isEmpty, rules.authentication.isNeededToRead { return RelayReply(status: 401) }
    // What is no array of filters is the asker's fault, whatever it is.
    guard let filters = try? JSONValue.parse(question.body).array, !filters.isEmpty,
      filters.count <= rules.limits.filtersMax
    else { return RelayReply(status: 400) }
    var found: [Event] = []
    for value in filters {
      guard var filter = try? Filter(value) else { return RelayReply(status: 400) }
      do throws(RelayStoreError) {
        if let windows, value["top_level"]?.bool == true {
          guard
            let ask = WindowAsk(
              value, filter, rowsMax: windows.rowsMax, projectsReplies: windows.projectsReplies)
          else { return RelayReply(status: 400) }
          found += try window(ask, for: keys)
        } else {
          guard isAnswered(filter, keys) else { continue }
          filter.limit = filter.limit ?? rules.reading.pageMax
          found = merged(found, try page(of: filter, after: nil, for: keys).events)
        }
      } catch {
        return RelayReply(status: 500)
      }
    }
    return RelayReply(status: 200, body: Self.list(found))
  }

  /// By HTTP, what may not be read is nothing, and no refusal.
  private func isAnswered(_ filter: Filter, _ keys: [PublicKey]) -> Bool {
    var asker = Connection(id: ConnectionID(0), challenge: nil, openedAt: .zero)
    asker.keys = keys
    return refusalOfReading([filter], by: asker) == nil
  }

  private static func list(_ events: [Event]) -> [UInt8] {
    var body = Array("[".utf8)
    for (index, event) in events.enumerated() {
      if index > 0 { body.append(UInt8(ascii: ",")) }
      body += event.json()
    }
    body.append(UInt8(ascii: "]"))
    return body
  }

  // MARK: One window

  private func window(
    _ ask: WindowAsk, for keys: [PublicKey]
  ) throws(RelayStoreError) -> [Event] {
    var filter = ask.filter
    filter.limit = nil
    guard isAnswered(filter, keys), !rules.groups.areManaged || groups[ask.group] != nil else {
      return []
    }
    filter.until = ask.cursor?.createdAt
    var rows: [Event] = []
    var failure: RelayStoreError?
    // One row more than is shown tells whether there is more; it is asked after every condition.
    try store.scan(filter, sizeHint: ask.limit + 1) { event in
      if let cursor = ask.cursor, Place(event) <= cursor { return true }
      guard isVisible(event, to: keys) else { return true }
      do throws(RelayStoreError) {
        if !ask.projectsReplies, try !isTopLevel(event) { return true }
      } catch {
        failure = error
        return false
      }
      rows.append(event)
      return rows.count <= ask.limit
    }
    if let failure { throw failure }
    let hasMore = rows.count > ask.limit
    if hasMore { rows.removeLast() }
    var answer = rows
    if ask.includesAux { answer += try changes(of: rows, for: keys) }
    if ask.includesSummaries {
      for row in rows {
        if let summary = try summary(of: row, ask, for: keys) { answer.append(summary) }
      }
    }
    if let bounds = bounds(ask, next: hasMore ? rows.last.map { Place($0) } : nil) {
      answer.append(bounds)
    }
    return answer
  }

  private func isTopLevel(_ event: Event) throws(RelayStoreError) -> Bool {
    let position = event.markedPosition
    guard let parent = position.parent else { return true }
    guard position.isBroadcast else { return false }
    // Only an answer to a row itself can be shown beside it; one of which nobody knows is shown.
    return try store.event(parent)?.markedPosition.isReply != true
  }

  /// Two hops: what changes the rows, and what takes that back.
  private func changes(
    of rows: [Event], for keys: [PublicKey]
  ) throws(RelayStoreError) -> [Event] {
    var seen = Set(rows.map(\.id))
    var found: [Event] = []
    var targets = rows
    for kinds: [EventKind] in [[7, 5, 9005, 40003], [5, 9005]] where !targets.isEmpty {
      let filter = Filter(
        kinds: kinds, tags: [UInt8(ascii: "e"): targets.map { Text($0.id.hex) }])
      let hop = try store.page(PageRequest(filter: filter, eventsMax: 1000)) { event in
        isVisible(event, to: keys) && !seen.contains(event.id)
      }
      targets = hop.events
      seen.formUnion(targets.map(\.id))
      found += targets
    }
    return found
  }

  private func summary(
    of row: Event, _ ask: WindowAsk, for keys: [PublicKey]
  ) throws(RelayStoreError) -> Event? {
    var replies = 0
    var descendants: [Event] = []
    let filter = Filter(tags: [UInt8(ascii: "e"): [Text(row.id.hex)]])
    try store.scan(filter, sizeHint: .max) { event in
      guard isVisible(event, to: keys), let parent = event.markedPosition.parent else {
        return true
      }
      if parent == row.id { replies += 1 }
      descendants.append(event)
      return true
    }
    guard replies > 0 else { return nil }
    var people: [PublicKey] = []
    for event in descendants where !people.contains(event.pubkey) && people.count < 10 {
      people.append(event.pubkey)
    }
    let content = JSONValue.object([
      ("reply_count", .int(replies)), ("descendant_count", .int(descendants.count)),
      ("last_reply_at", descendants.first.map { .int($0.createdAt.seconds) } ?? .null),
      ("participants", .array(people.map { .string(Text($0.hex)) })),
    ])
    let id = Text(row.id.hex)
    return overlay(.threadSummary, [["e", id], ["d", id], ["h", ask.group]], content)
  }

  private func bounds(_ ask: WindowAsk, next: Place?) -> Event? {
    let cursor = next.map { next in
      JSONValue.object([
        ("created_at", .int(next.createdAt.seconds)), ("id", .string(Text(next.id.hex))),
      ])
    }
    let content = JSONValue.object([
      ("has_more", .bool(next != nil)), ("next_cursor", cursor ?? .null),
      ("thread_replies_in_channel", .bool(ask.projectsReplies)),
    ])
    let place = ask.cursor.map { "\($0.createdAt.seconds):\($0.id.hex)" } ?? "head"
    return overlay(
      .windowBounds, [["d", Text("\(ask.group):\(place)")], ["h", ask.group]], content)
  }

  private func overlay(_ kind: EventKind, _ tags: [[Text]], _ content: JSONValue) -> Event? {
    let draft = EventDraft(
      createdAt: now, kind: kind, tags: Tags(tags), content: Text(utf8: content.json()))
    // A relay that signs nothing serves no window that counts.
    return try? identity.signer?.sign(draft).event
  }
}

/// A filter that asks for a window, understood.
private struct WindowAsk {
  let filter: Filter
  let group: Text
  let limit: Int
  let cursor: Place?
  let includesAux: Bool
  let includesSummaries: Bool
  let projectsReplies: Bool

  /// - Returns: Nil for what must be refused: no single channel, or half a cursor.
  init?(_ value: JSONValue, _ filter: Filter, rowsMax: Int, projectsReplies: Bool) {
    guard let groups = filter.tags[UInt8(ascii: "h")], groups.count == 1 else { return nil }
    group = groups[0]
    self.filter = Filter(kinds: filter.kinds, tags: [UInt8(ascii: "h"): groups])
    limit = max(1, min(filter.limit ?? 50, rowsMax))
    let beforeID = value["before_id"]
    guard (filter.until == nil) == (beforeID == nil) else { return nil }
    if let until = filter.until {
      guard until >= 0, let id = beforeID?.string.flatMap({ EventID(hex: $0.string) }) else {
        return nil
      }
      cursor = Place(createdAt: until, id: id)
    } else {
      cursor = nil
    }
    includesAux = value["include_aux"]?.bool == true
    includesSummaries = value["include_summaries"]?.bool == true
    self.projectsReplies = projectsReplies
  }
}
