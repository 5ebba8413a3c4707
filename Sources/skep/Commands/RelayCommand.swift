import EventLog
import Nostr
import SyncCore
import SyncEngine

/// `skep relay add|remove|trust|list`.
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
      CommandSpec(
        "trust", "PUBKEY", count: 1...1,
        about: "takes a key for the community's own: what it signs about groups counts",
        examples: ["skep relay trust npub1…", "skep relay trust npub1… --community HOST"]),
    ], defaultVerb: "list")

  static func run(_ context: Context) async throws -> ExitCode {
    let verb = context.invocation.command[1]
    if verb == "list" {
      try report(try CommunitySettings(try ReadingCommunity.chosen(context).log), context)
      return .done
    }
    if verb == "trust" { return try await trust(context) }
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
      try report(settings, context)
    } catch {
      await store.close()
      throw error
    }
    return .done
  }

  /// The user's consent, without which no relay can put another key in the place of the first.
  private static func trust(_ context: Context) async throws -> ExitCode {
    let word = context.invocation.operands[0]
    guard let key = NameWords.publicKey(word) else {
      throw context.usage(
        "“\(SafeText.line(word, cells: 80))” is no key: expected npub1… or 64 hex digits")
    }
    let store = try await CommunityFolder.chosen(context).openStore(context)
    do {
      var settings = try CommunitySettings(store.reader)
      settings.accept(key)
      try await settings.save(to: store.log)
      for relay in settings.relays { try await store.note(.relaySelf(relay, key)) }
      await store.close()
      try report(settings, context)
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

  private static func report(_ settings: CommunitySettings, _ context: Context) throws {
    let relays = settings.relays
    if context.wantsJSON {
      try context.out.write(
        row: [
          "relays": .array(
            relays.enumerated().map { index, relay -> JSON in
              [
                "url": JSON(relay.description), "home": .bool(index == 0),
                "offered_self": JSON(settings.offeredSelves[relay]?.hex),
              ]
            }), "self": JSON(settings.relaySelf?.hex),
        ])
      return
    }
    for (index, relay) in relays.enumerated() {
      try context.out.write(line: "\(relay)\(index == 0 ? " (home)" : "")")
    }
    for line in settings.offerLines { context.talk.say(line) }
  }
}

extension CommunitySettings {
  /// What is to be said of relays that name another key than the accepted one.
  var offerLines: [String] {
    offeredSelves.sorted { $0.key < $1.key }.map { relay, key in
      let npub = NameWords.npub(key)
      return "\(SafeText.line(relay.description, cells: 60)) names another key as its own than the"
        + " one accepted: nothing it signs about groups counts until “skep relay trust \(npub)”"
    }
  }
}
