import EventLog
import HotCache
import Nostr
import SyncCore
import SyncEngine

extension ChatSession {
  func listChannels() async throws {
    let refused = try refusedGroups()
    let (time, viewer) = (now, me)
    let groups = try await read { view throws(CacheError) in
      try view.groups(now: time, me: viewer)
    }
    if groups.isEmpty { try output.say("no channels are known yet") }
    for group in groups { try await list(group, hasAccess: !refused.contains(group.id)) }
  }

  private func list(_ group: GroupRow, hasAccess: Bool, showsID: Bool = false) async throws {
    let name = try await name(of: group)
    let number = channelNumbers.number(of: group.id)
    try output.write(
      ChatRows.channel(group, number: number, name: name, hasAccess: hasAccess),
      output.rendering.channel(
        group, number: number,
        name: group.id.isEmpty
          ? Self.emptyID : SafeText.name(name ?? group.id) ?? SafeText.line(group.id, cells: 28),
        isOpen: group.id == open, hasAccess: hasAccess, showsID: showsID))
  }

  /// How the group whose id is nothing is shown and opened.
  private static let emptyID = "\"\""

  /// Groups whose events a relay has refused to give.
  private func refusedGroups() throws -> Set<Text> {
    Set(
      try store.reader.gaps().filter { gap in
        switch RefusalClass(gap.why) {
        case .restricted, .blocked, .authRequired: true
        default: false
        }
      }.compactMap(\.scope.group))
  }

  /// A group's name, or who else is in it where it is a conversation without one.
  private func name(of group: GroupRow) async throws -> Text? {
    let (time, viewer) = (now, me)
    return try await read { view throws(CacheError) in
      try view.title(of: group, now: time, me: viewer)
    }
  }

  /// Opens a channel. A script cannot see that it failed: what it writes next was meant for that
  /// channel and must not reach the one that was open before.
  func openOrClose(_ word: String) async throws -> [(String, JSON)] {
    do {
      return try await openChannel(word)
    } catch {
      let wasOpen = open != nil
      closeAfterFailure()
      guard let failure = error as? ChatFailure, wasOpen else { throw error }
      guard let open else {
        throw ChatFailure(failure.code, failure.message + "; no channel is open now")
      }
      let name = try await shownName(of: open)
      throw ChatFailure(failure.code, failure.message + "; “\(name)” stays open")
    }
  }

  /// What a failed `/open` leaves open: nothing, where nobody sits before it.
  func closeAfterFailure() {
    if !isInteractive { open = nil }
  }

  private func shownName(of id: Text) async throws -> String {
    let time = now
    let group = try await read { view throws(CacheError) in try view.group(id, now: time) }
    let name = SafeText.name(group?.name ?? id)
    return id.isEmpty ? Self.emptyID : name ?? SafeText.line(id, cells: 28)
  }

  private func openChannel(_ word: String) async throws -> [(String, JSON)] {
    let (time, viewer) = (now, me)
    let (groups, applied) = try await read { view throws(CacheError) in
      (try view.groups(now: time, me: viewer), view.applied)
    }
    let matches = channels(named: word, among: groups)
    guard let group = matches.first else {
      throw ChatFailure(
        "unknown-channel",
        "there is no channel “\(SafeText.line(word, cells: 40))”; /channels lists them")
    }
    guard matches.count == 1 else { throw try await ambiguous(word, matches) }
    open = group.id
    // The log may be ahead of the views: what the page cannot show yet is news.
    news = ChannelNews(after: applied, shown: news.shown)
    let name = try await name(of: group)
    try output.say(
      "▸ "
        + (group.id.isEmpty
          ? Self.emptyID : SafeText.name(name ?? group.id) ?? SafeText.line(group.id, cells: 40)))
    return try await history(20, before: nil)
  }

  /// The channels that a word may mean: by a number that was shown, or by `id:`, one alone; else
  /// all whose id or name it is; else all whose id or name begins with it.
  ///
  /// Anybody may give a group of theirs the name of another as its id, so neither goes before the
  /// other.
  private func channels(named word: String, among groups: [GroupRow]) -> [GroupRow] {
    let lower = word.lowercased()
    let wanted = word == Self.emptyID ? Text.empty : Text(word)
    var matches: [GroupRow]
    if word.hasPrefix("#"), let number = Int(word.dropFirst()),
      let id = channelNumbers.id(of: number)
    {
      matches = groups.filter { $0.id == id }
    } else if word.hasPrefix(Self.idPrefix) {
      let id = Text(String(word.dropFirst(Self.idPrefix.count)))
      matches = groups.filter { $0.id == id }
    } else {
      matches = []
    }
    if matches.isEmpty {
      matches = groups.filter { $0.id == wanted || $0.name?.string.lowercased() == lower }
    }
    if matches.isEmpty {
      matches = groups.filter { group in
        group.id.string.hasPrefix(word)
          || group.name?.string.lowercased().hasPrefix(lower) ?? false
      }
    }
    // A group id on two relays is one channel here.
    var seen: Set<Text> = []
    return matches.filter { seen.insert($0.id).inserted }
  }

  /// Before an id that is to be taken for nothing else.
  private static let idPrefix = "id:"

  private static let choicesMax = 20

  /// Lists the channels to choose from, each with what opens it alone.
  private func ambiguous(_ word: String, _ matches: [GroupRow]) async throws -> ChatFailure {
    let refused = try refusedGroups()
    for group in matches.prefix(Self.choicesMax) {
      try await list(group, hasAccess: !refused.contains(group.id), showsID: true)
    }
    let choices = matches.prefix(Self.choicesMax).map { group in
      "#\(channelNumbers.number(of: group.id)) \(SafeText.line(group.id, cells: 80))"
    }
    return ChatFailure(
      "ambiguous-channel",
      "\(matches.count) channels fit “\(SafeText.line(word, cells: 40))”; open one by its number or"
        + " by “id:” and its id: " + choices.joined(separator: ", "))
  }

  /// - Returns: Whether all of the page was proved to be there.
  func history(
    _ count: Int, before reference: MessageReference?
  ) async throws -> [(String, JSON)] {
    let group = try openGroup()
    let (time, viewer) = (now, me)
    var cursor = PageCursor.newest
    if let reference {
      let id = try event(reference)
      let position = try await read { view throws(CacheError) in
        try view.message(id, now: time, me: viewer)?.position
      }
      guard let position else { throw ChatFailure("unknown-message", "that message is not held") }
      cursor = .before(position)
    }
    let rows = try await read { [cursor] view throws(CacheError) in
      try view.timeline(group, cursor, limit: count, now: time, me: viewer)
    }
    let shown = try await shown(rows)
    let verdict = try verdict(on: group, page: rows, isFull: rows.count == count, cursor)
    if output.isJSON {
      for message in shown { try output.out.write(row: ChatRows.message(message)) }
      for gap in verdict.gaps { try output.out.write(row: ChatRows.gap(gap)) }
    } else {
      for line in output.rendering.page(shown, gaps: verdict.gaps) {
        try output.out.write(line: line)
      }
      if rows.isEmpty {
        try output.say(
          reference == nil
            ? verdict.isComplete
              ? "nothing was written here" : "nothing is held of this channel yet"
            : verdict.isComplete ? "nothing older was written here" : "nothing older is held")
      }
    }
    if cursor == .newest { news.floor = rows.first?.position ?? news.floor }
    return [
      ("complete", JSON(verdict.isComplete)), ("oldest", JSON(rows.first?.createdAt)),
    ]
  }

  private func verdict(
    on group: Text, page: [MessageRow], isFull: Bool, _ cursor: PageCursor
  ) throws -> ProvedScopes.Verdict {
    var filter = Filter.group(group, kinds: SyncScopes.contentKinds)
    // A page that came short reaches back to the beginning.
    if isFull { filter.since = page.first?.createdAt }
    if case .before(let position) = cursor { filter.until = position.createdAt }
    return try Completeness(store.reader, relays: engine.relays, now: now).verdict(on: filter)
  }

  func thread(_ reference: MessageReference) async throws {
    let id = try event(reference)
    let (time, viewer, channel) = (now, me, open)
    let rows = try await read { view throws(CacheError) in
      let message = try view.message(id, now: time, me: viewer)
      // What is not held may be the beginning of a thread of which replies are.
      let root = message?.root ?? id
      let head = try view.message(root, now: time, me: viewer)
      let replies = try view.thread(
        root, group: message?.group ?? channel, limit: 500, now: time, me: viewer)
      return (head.map { [$0] } ?? []) + replies
    }
    guard let first = rows.first else {
      throw ChatFailure("unknown-message", "that message is not held")
    }
    if first.isStray { try output.say("the beginning of this thread is not shown here") }
    let shown = try await shown(rows)
    if output.isJSON {
      for message in shown { try output.out.write(row: ChatRows.message(message)) }
    } else {
      for line in output.rendering.page(shown) { try output.out.write(line: line) }
    }
  }

  func show(_ reference: MessageReference) throws {
    guard let logged = try store.reader.event(id: try event(reference)) else {
      throw ChatFailure("unknown-message", "that event is not held")
    }
    let json = logged.event.json()
    try output.write(
      ["type": "event", "event": .raw(json), "id_form": JSON(logged.idForm.name)],
      [SafeText.line(String(decoding: json, as: UTF8.self))])
  }

  func listMembers() async throws {
    let group = try openGroup()
    let time = now
    let members = try await read { view throws(CacheError) in
      var rows: [(member: MemberRow, name: Text?)] = []
      for member in try view.members(of: group, now: time) {
        rows.append((member, try view.profile(member.pubkey, now: time)?.shownName))
      }
      return rows
    }
    if members.isEmpty { try output.say("the relay has published no roster of this channel") }
    for (member, name) in members {
      try output.write(
        ChatRows.member(member, name: name), [output.rendering.member(member, name: name)])
    }
  }

  func profile(_ word: String?) async throws {
    let keys: [PublicKey]
    if let word {
      keys = try await people(named: word)
    } else if let me {
      keys = [me]
    } else {
      throw ChatFailure("no-key", "you have no key yet; “skep key new” makes one")
    }
    let time = now
    for key in keys {
      let row = try await read { view throws(CacheError) in try view.profile(key, now: time) }
      try output.write(ChatRows.profile(key, row), output.rendering.profile(key, row))
    }
  }

  /// Everybody whom a word may mean: a key, or the beginning of a name.
  func people(named word: String) async throws -> [PublicKey] {
    if let key = NameWords.publicKey(word) { return [key] }
    let (name, time) = (Text(word), now)
    let keys = try await read { view throws(CacheError) in
      try view.profiles(named: name, limit: 10, now: time).map(\.pubkey)
    }
    guard !keys.isEmpty else {
      throw ChatFailure("unknown-person", "nobody here goes by “\(SafeText.line(word, cells: 40))”")
    }
    return keys
  }

  /// Every span that is not proved; with none, how far what is proved reaches.
  func listGaps() throws {
    let snapshot = try StatusSnapshot(
      name: folder.name, log: store.reader, views: store.views, relays: engine.relays,
      deliveries: [], now: now)
    if snapshot.open.isEmpty {
      try output.say("no gap is known: what is proved reaches from the beginning up to")
      for line in snapshot.reachLines { try output.say("  " + line) }
    }
    for gap in snapshot.open { try output.write(ChatRows.gap(gap), [Rows.gapLine(gap)]) }
  }
}
