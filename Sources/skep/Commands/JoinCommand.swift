import Nostr
import SyncCore
import SyncEngine

/// `skep join URL`.
enum JoinCommand: Command {
  static let spec = CommandSpec(
    "join", "URL", count: 1...1,
    options: [.value("fail-after", "D", "give up after so long; 30s otherwise")],
    about: "Adds a community: reads the relay's document and makes it known who you are.",
    examples: ["skep join wss://relay.example.com", "skep join ws://localhost:7777 --json"])

  static func run(_ context: Context) async throws -> ExitCode {
    let url = try MirrorCommand.relayURL(context)
    let home = try context.home()
    let folder = CommunityFolder(
      home: home, name: home.community(of: url, includesReplicas: false))
    let identity = Identity(home: folder.home, environment: context.environment)
    guard identity.pathInUse(by: folder.name) != nil else {
      throw Failure(
        .partial, "joining needs your key: “skep key new” makes one, “skep key import” takes yours")
    }
    var wish = RunningCommunity.Wish()
    wish.relay = url
    let isNew = !folder.home.has(folder.name)
    let community = try await RunningCommunity.open(folder, wish, context)
    do {
      try await join(url, community, context)
    } catch {
      await community.close(isNew: isNew)
      throw error
    }
    await community.close(isNew: isNew)
    return context.stop.code ?? .done
  }

  private static func join(
    _ url: RelayURL, _ community: RunningCommunity, _ context: Context
  ) async throws {
    // A run over no group connects, introduces itself, and asks for nothing else.
    var plan = SyncPlan(.groups([]))
    if let patience = try context.duration("fail-after") { plan.failAfter = patience }
    do throws(EngineError) {
      _ = try await community.engine.syncOnce(plan)
    } catch {
      throw Failure(error)
    }
    let relay = await community.engine.status().relays.first
    let information = relay?.information
    if context.wantsJSON {
      try context.out.write(
        row: [
          "community": JSON(community.name.text), "self": JSON(information?.selfKey?.hex),
          "nips": .array((information?.supportedNIPs ?? []).sorted().map { JSON($0) }),
          "authenticated": JSON(relay?.isAuthenticated),
        ])
      return
    }
    try context.out.write(line: SafeText.line(community.name.text, cells: 80))
    context.talk.say(
      information == nil
        ? "joined \(url); it has no document that says more about it"
        : "joined \(url); “skep chat” opens it")
  }
}
