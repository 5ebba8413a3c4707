import EventLog
import Foundation
import Glibc
import Nostr
import NostrCrypto
import SyncCore
import SyncEngine

/// `skep chat`: the line client.
enum ChatCommand: Command {
  static let spec = CommandSpec(
    "chat",
    options: [
      .flag("offline", "start without connecting; /online connects"),
      .flag("demo", "a made-up community in this process; nothing of it is kept"),
      .flag("no-redate", "never give an old message a new date; it waits as expired"),
    ],
    about: "Reads and writes a community, with or without a connection; /help lists its commands.",
    examples: ["skep chat --offline", "printf '/channels\\n/quit\\n' | skep chat --json"])

  static func run(_ context: Context) async throws -> ExitCode {
    guard context.invocation.has("demo") else {
      let folder = try CommunityFolder.chosen(context)
      return try await run(folder, try key(of: folder, context), relay: nil, context)
    }
    let demo = try await ChatDemo.start(context)
    do {
      let code = try await run(demo.folder, SecretKey.generate(), relay: demo.relay, context)
      await demo.end()
      return code
    } catch {
      await demo.end()
      throw error
    }
  }

  /// Without a connection the key is for writing alone, and reading goes on where it stays closed.
  private static func key(of folder: CommunityFolder, _ context: Context) throws -> SecretKey? {
    let identity = Identity(home: folder.home, environment: context.environment)
    do {
      return try identity.load(for: folder.name)
    } catch let problem as KeyFileError where context.invocation.has("offline") {
      guard case .needsPassphrase = problem else { throw problem }
      context.talk.say("reading only: " + Failure(problem).message)
      return nil
    }
  }

  /// - Parameter relay: The home relay of a community that is new, which is brought over first.
  private static func run(
    _ folder: CommunityFolder, _ key: SecretKey?, relay: RelayURL?, _ context: Context
  ) async throws -> ExitCode {
    let store = try await folder.openStore(relay: relay, context)
    let engine: Engine
    do {
      engine = try makeEngine(store, key, context)
    } catch {
      await store.close()
      throw error
    }
    let session = ChatSession(
      context: context, folder: folder, store: store, engine: engine, me: key?.publicKey,
      output: output(context), isInteractive: isatty(STDIN_FILENO) == 1)
    do {
      if relay != nil { _ = try await engine.syncOnce(SyncPlan(.everything)) }
      if context.invocation.has("offline") { await engine.goOffline() }
      // What can be read is read at once; connecting goes on behind it.
      await store.caughtUp()
      if let damage = await store.logDamage() { throw damage }
      await engine.start()
      try await session.run(try input(context))
    } catch {
      await close(engine, store)
      throw error
    }
    await close(engine, store)
    if context.stop.isRequested { throw CancellationError() }
    guard session.unwritten > 0, !session.isInteractive else { return .done }
    context.talk.say(
      session.unwritten == 1
        ? "1 line was not taken: nothing of it is sent or waits to be sent"
        : "\(session.unwritten) lines were not taken: nothing of them is sent or waits to be sent")
    return .partial
  }

  private static func makeEngine(
    _ store: CommunityStore, _ key: SecretKey?, _ context: Context
  ) throws -> Engine {
    let settings = try CommunitySettings(store.reader)
    var options = EngineOptions()
    options.isOffline = context.invocation.has("offline") || settings.relays.isEmpty
    options.isRedating = !context.invocation.has("no-redate")
    return Engine(
      store: store, relays: settings.relays, ports: context.ports,
      signer: key.map { LocalSigner($0) }, options: options)
  }

  private static func close(_ engine: Engine, _ store: CommunityStore) async {
    await engine.stop()
    await store.close()
  }

  private static func input(_ context: Context) throws -> any LineInput {
    if isatty(STDIN_FILENO) == 1, !context.wantsJSON,
      let edited = EditedLines(stop: context.stop, terminal: context.environment["TERM"])
    {
      return edited
    }
    return try PlainLines(stop: context.stop)
  }

  private static func output(_ context: Context) -> ChatOutput {
    let terminal = context.environment["TERM"] ?? ""
    let isPlain =
      terminal.isEmpty || terminal == "dumb" || !(context.environment["NO_COLOR"] ?? "").isEmpty
    return ChatOutput(
      out: context.out, isJSON: context.wantsJSON,
      rendering: ChatRendering(
        zone: { time in
          Int64(
            TimeZone.current.secondsFromGMT(
              for: Date(timeIntervalSince1970: Double(time.seconds))))
        },
        columns: Talk.columns(of: STDOUT_FILENO),
        hasStyle: context.out.isTerminal && !isPlain, isWrapping: context.out.isTerminal))
  }
}

/// Rows for scripts or lines for people, whichever was asked for.
struct ChatOutput {
  let out: StandardOutput
  let isJSON: Bool
  let rendering: ChatRendering

  /// - Parameter lines: Made only where a person reads.
  func write(_ row: @autoclosure () -> JSON, _ lines: @autoclosure () -> [String]) throws {
    if isJSON {
      try out.write(row: row())
    } else {
      for line in lines() { try out.write(line: line) }
    }
  }

  /// Something said to people alone.
  func say(_ line: @autoclosure () -> String) throws {
    if !isJSON { try out.write(line: line()) }
  }
}
