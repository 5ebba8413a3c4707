import Nostr
import SyncCore
import SyncEngine

/// `skep sync`.
enum SyncCommand: Command {
  static let spec = CommandSpec(
    "sync",
    options: SyncRun.options + [
      .flag("no-redate", "leave messages that are too old for the relay to a decision by hand")
    ],
    about: "Reconciles a community with its relays: brings over what they have, sends what waits.",
    examples: ["skep sync", "skep sync --follow --group general"])

  static func run(_ context: Context) async throws -> ExitCode {
    let groups = try context.groups()
    let plan = try SyncRun.plan(context, groups.map { .groups($0) } ?? .community)
    var wish = RunningCommunity.Wish()
    wish.options.groups = groups
    wish.options.isRedating = !context.invocation.has("no-redate")
    let community = try await RunningCommunity.open(
      CommunityFolder.chosen(context), wish, context)
    return try await SyncRun(community: community, context: context).run(plan)
  }
}

/// `skep mirror URL`.
enum MirrorCommand: Command {
  static let spec = CommandSpec(
    "mirror", "URL", count: 1...1,
    options: SyncRun.options + [
      .flag("all", "everything that the relay serves, not only its groups"),
      .value("since", "T", "not older than this"), .value("until", "T", "not newer than this"),
      .flag("throwaway-key", "make a key for this mirror alone, for a relay that asks for one"),
    ],
    about: "Copies a community from its relay and proves it complete. Nothing is ever published.",
    examples: [
      "skep mirror wss://relay.example.com", "skep mirror ws://localhost:7777 --all --json",
    ])

  static func run(_ context: Context) async throws -> ExitCode {
    let url = try relayURL(context)
    let groups = try context.groups()
    let isEverything = context.invocation.has("all")
    if isEverything && groups != nil {
      throw context.usage("--all and --group exclude each other")
    }
    var plan = try SyncRun.plan(
      context, isEverything ? .everything : groups.map { .groups($0) } ?? .community)
    (plan.since, plan.until) = try context.span()
    var wish = RunningCommunity.Wish()
    wish.options.groups = groups
    wish.options.isEverything = isEverything
    wish.relay = url
    wish.isMirror = true
    wish.isKeyOptional = true
    wish.makesThrowawayKey = context.invocation.has("throwaway-key")
    let home = try context.home()
    let folder = CommunityFolder(home: home, name: home.community(of: url))
    let isNew = !folder.home.has(folder.name)
    let community = try await RunningCommunity.open(folder, wish, context)
    return try await SyncRun(community: community, context: context, isNew: isNew).run(plan)
  }

  /// The operand as a relay's address.
  static func relayURL(_ context: Context) throws -> RelayURL {
    let word = context.invocation.operands[0]
    guard let url = RelayURL(word) else {
      throw context.usage(
        "“\(SafeText.line(word, cells: 80))” is no relay: expected wss://HOST[:PORT], or ws:// on"
          + " this machine")
    }
    guard url.isSecure || url.isLoopback else {
      throw context.usage(
        "\(url) would go over the network in the clear: use wss://\(url.hostAndPort)")
    }
    return url
  }
}
