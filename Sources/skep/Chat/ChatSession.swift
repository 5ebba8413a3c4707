import EventLog
import HotCache
import Nostr
import NostrCrypto
import SyncCore
import SyncEngine

/// One run of the line client: takes lines in order, answers each, and goes on after a bad one.
final class ChatSession {
  let context: Context
  let folder: CommunityFolder
  let store: CommunityStore
  let engine: Engine
  let me: PublicKey?
  let output: ChatOutput

  /// The id of the open channel.
  var open: Text?
  var numbers = MessageNumbers()
  var channelNumbers = ChannelNumbers()
  /// What is new in the open channel for somebody who sits before it.
  var news = ChannelNews()
  /// The date of the message written last, so that messages keep their order.
  var lastWritten: Timestamp?
  /// Whether it was said that lines have to wait for the clock.
  var isPaced = false
  private var isOver = false
  /// Whether somebody sits before it and sees what fails.
  let isInteractive: Bool
  /// How many lines that were to be sent were not taken.
  private(set) var unwritten = 0

  init(
    context: Context, folder: CommunityFolder, store: CommunityStore, engine: Engine,
    me: PublicKey?, output: ChatOutput, isInteractive: Bool
  ) {
    self.isInteractive = isInteractive
    self.context = context
    self.folder = folder
    self.store = store
    self.engine = engine
    self.me = me
    self.output = output
  }

  var now: Timestamp { context.clock.now() }

  func run(_ input: any LineInput) async throws {
    let terminal = input as? EditedLines
    let ringing = terminal.map { ring($0.bell) }
    defer { ringing?.cancel() }
    if terminal != nil { try output.say("\(folder.name)  ·  /help lists the commands, /quit ends") }
    while !isOver, !context.stop.isRequested {
      if let terminal { try await showNews(on: terminal) }
      try output.out.flush()
      guard let line = try await input.next() else { break }
      try refuseDamage()
      try await take(line)
    }
    try refuseDamage()
    try output.out.flush()
  }

  /// The check of the log goes on while it is read, and may find something at any moment.
  private func refuseDamage() throws {
    if let damage = store.log.damage { throw damage }
  }

  /// Rings whenever the log has grown and the views show it.
  private func ring(_ bell: Bell) -> Task<Void, Never> {
    let (changes, store) = (engine.changes, store)
    return Task {
      for await change in changes {
        guard case .log(let head) = change else { continue }
        await store.caughtUp(to: head)
        bell.ring()
      }
    }
  }

  private func take(_ line: InputLine) async throws {
    switch line {
    case .rung: break
    case .tooLong(let limit):
      unwritten += 1
      try finish("", ChatFailure("syntax", "a line holds at most \(limit) bytes"))
    case .notUTF8:
      unwritten += 1
      try finish("", ChatFailure("syntax", "column 1: expected text in UTF-8"))
    case .line(let text):
      let parsed: ChatLine
      do throws(ChatLineError) {
        parsed = try ChatLineParser.parse(text)
      } catch {
        if error.command == "open" { closeAfterFailure() }
        if ChatLine.writing.contains(error.command) { unwritten += 1 }
        return try finish(error.command, ChatFailure(error.code, error.message))
      }
      if parsed == .nothing { return }
      try await answer(parsed)
    }
  }

  private func answer(_ line: ChatLine) async throws {
    do {
      let extra = try await attempt(line)
      try finish(line.name, nil, extra)
    } catch let failure as ChatFailure {
      try finish(line.name, failure)
    } catch let error as EngineError {
      if case .store(let problem) = error { return try finish(line.name, failing: problem) }
      if case .stopped = error, context.stop.isRequested { throw CancellationError() }
      try finish(line.name, ChatFailure(Self.code(of: error), advice(on: error)))
    } catch let closed as OutputClosed {
      throw closed
    } catch let cancelled as CancellationError {
      throw cancelled
    } catch {
      try finish(line.name, failing: error)
    }
  }

  private func attempt(_ line: ChatLine) async throws -> [(String, JSON)] {
    do {
      return try await perform(line)
    } catch {
      if ChatLine.writing.contains(line.name) { unwritten += 1 }
      throw error
    }
  }

  /// Says that a store failed, and goes on where the next answer may be a better one.
  private func finish(_ command: String, failing error: any Error) throws {
    try finish(command, ChatFailure("store", Failure(error).message))
    switch error {
    case LogError.full, LogError.busy, LogError.readOnly, LogError.io: break
    case CacheError.log(.full), CacheError.log(.busy), CacheError.log(.io): break
    default: throw error
    }
  }

  /// A key that is there and was not opened is not a key that has to be made.
  private func advice(on error: EngineError) -> String {
    let identity = Identity(home: folder.home, environment: context.environment)
    guard case .noKey = error, let path = identity.pathInUse(by: folder.name) else {
      return error.description
    }
    return "writing needs the key: " + Failure(KeyFileError.needsPassphrase(path: path)).message
  }

  private func finish(
    _ command: String, _ failure: ChatFailure?, _ extra: [(String, JSON)] = []
  ) throws {
    if output.isJSON {
      guard case .object(let members) = ChatRows.done(command, failure) else { return }
      try output.out.write(row: .object(members + extra))
    } else if let failure {
      try output.out.write(line: "! " + SafeText.line(failure.message, cells: 300))
    }
    try output.out.flush()
  }

  private static func code(of error: EngineError) -> String {
    switch error {
    case .noRelayReached: "no-relay"
    case .noRelay: "no-relay"
    case .keyNeeded, .noKey: "no-key"
    case .signing: "signing"
    case .store: "store"
    case .outboxFull: "outbox-full"
    case .unknownMessage: "unknown-message"
    case .alreadySent: "already-sent"
    case .versionAhead: "version-ahead"
    case .stopped: "stopped"
    }
  }

  /// - Returns: What the closing row says beside the outcome.
  private func perform(_ line: ChatLine) async throws -> [(String, JSON)] {
    switch line {
    case .nothing: break
    case .text(let text): try await send(text)
    case .reply(let target, let text): try await reply(to: target, text)
    case .react(let target, let emoji): try await react(to: target, emoji)
    case .unreact(let target, let emoji): try await unreact(to: target, emoji)
    case .edit(let target, let text): try await edit(target, text)
    case .delete(let target):
      if try await delete(target) { return [("discarded", .bool(true))] }
    case .activity: try await listActivity()
    case .search(let words): try await search(words)
    case .block(let name): try await block(name)
    case .unblock(let name): try await unblock(name)
    case .channels: try await listChannels()
    case .open(let name): return try await openOrClose(name)
    case .history(let count, let before): return try await history(count ?? 20, before: before)
    case .thread(let target): try await thread(target)
    case .show(let target): try show(target)
    case .members: try await listMembers()
    case .profile(let name): try await profile(name)
    case .gaps: try listGaps()
    case .status: try await status()
    case .outbox: try listOutbox()
    case .retry(let target): try await engine.retry(try ownMessage(target).id)
    case .discard(let target): try await discard(target)
    case .offline:
      await engine.goOffline()
      try output.say("offline: what you write waits in the outbox")
    case .online:
      if engine.relays.isEmpty {
        throw ChatFailure("no-relay", "this community has no relay; “skep relay add URL” adds one")
      }
      await engine.goOnline()
      try output.say("connecting to \(engine.relays.map(\.description).joined(separator: ", "))")
    case .sync: try await synchronise()
    case .wait(let goal): return try await wait(for: goal)
    case .help(let name): try help(name)
    case .quit: isOver = true
    }
    return []
  }

  // MARK: Looking at the cache

  /// Reads one snapshot; a damaged cache is folded again first.
  func read<Value>(
    _ body: (borrowing CacheSnapshot) throws(CacheError) -> Value
  ) async throws -> Value {
    do throws(CacheError) {
      return try store.views.read(body)
    } catch .damaged(_) {
      try await store.cache.catchUp()
      return try store.views.read(body)
    }
  }

  func openGroup() throws -> Text {
    guard let open else {
      throw ChatFailure(
        "no-channel", "no channel is open; /channels lists them, /open NAME opens one")
    }
    return open
  }

  /// The event that a person means.
  func event(_ reference: MessageReference) throws -> EventID {
    switch reference {
    case .number(let number):
      guard let id = numbers.id(of: number) else {
        throw ChatFailure("unknown-message", "no message was shown as #\(number)")
      }
      return id
    case .id(let id): return id
    case .prefix(let digits): return try event(beginning: digits)
    }
  }

  private static let candidatesMax = 8

  /// The one event of the whole log whose id begins with these digits, whether it was shown or not.
  private func event(beginning digits: String) throws -> EventID {
    let found = try store.reader.eventIDs(beginning: digits, limit: Self.candidatesMax + 1)
    guard let only = found.first else {
      throw ChatFailure("unknown-message", "no event that is held begins with \(digits)")
    }
    guard found.count > 1 else { return only }
    let named = found.prefix(Self.candidatesMax).map { id in
      id.hex + (numbers.known(id).map { " (#\($0))" } ?? "")
    }
    throw ChatFailure(
      "ambiguous-message",
      "several events begin with \(digits): " + named.joined(separator: ", ")
        + (found.count > Self.candidatesMax ? " and more" : ""))
  }

  /// Messages as rows show them: with numbers, names, and the state of their sending.
  func shown(_ rows: [MessageRow]) async throws -> [ShownMessage] {
    for row in rows { news.shown.insert(row.id) }
    let waiting = Dictionary(
      try store.reader.deliveries(includingSent: false).map { ($0.eventID, $0) },
      uniquingKeysWith: { first, _ in first })
    let authors = Set(rows.map(\.author))
    let time = now
    let names = try await read { view throws(CacheError) in
      var names: [PublicKey: Text] = [:]
      for author in authors {
        if let name = try view.profile(author, now: time)?.shownName { names[author] = name }
      }
      return names
    }
    return rows.map { row in
      if let old = row.redatedFrom { numbers.rename(old, to: row.id) }
      return ShownMessage(
        number: numbers.number(of: row.id), row: row, authorName: names[row.author],
        isMine: row.author == me, delivery: waiting[row.id],
        repliesTo: row.replyTo.map { numbers.number(of: $0) })
    }
  }
}
