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
    let folder = CommunityFolder(home: try context.home(), name: CommunityName(url))
    let identity = Identity(home: folder.home, environment: context.environment)
    guard identity.pathInUse(by: folder.name) != nil else {
      throw Failure(
        .partial, "joining needs your key: “skep key new” makes one, “skep key import” takes yours")
    }
    var wish = RunningCommunity.Wish()
    wish.relay = url
    let community = try await RunningCommunity.open(folder, wish, context)
    do {
      try await join(url, community, context)
    } catch {
      await community.close()
      throw error
    }
    await community.close()
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

/// `skep relay add|remove|list`.
enum RelayCommand: Command {
  static let spec = CommandSpec(
    "relay",
    about: "The relays of a community: the first is its home, the others are replicas of it.",
    examples: ["skep relay list", "skep relay add wss://replica.example.com"],
    verbs: [
      CommandSpec(
        "list", about: "lists the relays",
        examples: ["skep relay list", "skep relay list --json"]),
      CommandSpec(
        "add", "URL", count: 1...1, about: "adds a replica",
        examples: [
          "skep relay add wss://replica.example.com", "skep relay add ws://localhost:7778 --json",
        ]),
      CommandSpec(
        "remove", "URL", count: 1...1, about: "forgets a replica; what it gave stays",
        examples: [
          "skep relay remove wss://replica.example.com", "skep relay remove ws://localhost:7778",
        ]),
    ], defaultVerb: "list")

  static func run(_ context: Context) async throws -> ExitCode {
    let verb = context.invocation.command[1]
    if verb == "list" {
      try report(try ReadingCommunity.chosen(context).relays(), context)
      return .done
    }
    let url = try MirrorCommand.relayURL(context)
    let store = try await CommunityFolder.chosen(context).openStore(context)
    do {
      var settings = try CommunitySettings(store.reader)
      if verb == "add" {
        if !settings.relays.contains(url) { settings.relays.append(url) }
      } else {
        try remove(url, from: &settings)
      }
      try await settings.save(to: store.log)
      await store.close()
      try report(settings.relays, context)
    } catch {
      await store.close()
      throw error
    }
    return .done
  }

  private static func remove(_ url: RelayURL, from settings: inout CommunitySettings) throws {
    guard let index = settings.relays.firstIndex(of: url) else {
      throw Failure(.partial, "\(url) is no relay of this community")
    }
    guard index > 0 else {
      throw Failure(
        .partial, "\(url) is the home of this community; without it there is nowhere to write to")
    }
    settings.relays.remove(at: index)
  }

  private static func report(_ relays: [RelayURL], _ context: Context) throws {
    if context.wantsJSON {
      try context.out.write(
        row: [
          "relays": .array(
            relays.enumerated().map { index, relay in
              ["url": JSON(relay.description), "home": .bool(index == 0)]
            })
        ])
      return
    }
    for (index, relay) in relays.enumerated() {
      try context.out.write(line: "\(relay)\(index == 0 ? " (home)" : "")")
    }
  }
}
