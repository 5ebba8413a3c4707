import EventLog
import Glibc
import Nostr
import NostrCrypto
import SyncCore
import SyncEngine

/// One community opened for writing, with its engine.
struct RunningCommunity: Sendable {
  let name: CommunityName
  let store: CommunityStore
  let settings: CommunitySettings
  let engine: Engine
  /// Who writes and answers challenges; nil for reading without a key.
  let me: PublicKey?
  /// Why the key that is there is not used.
  let keyProblem: KeyFileError?

  /// How a command wants the engine.
  struct Wish {
    var options = EngineOptions()
    /// The relay of a community that is not known yet.
    var relay: RelayURL?
    /// Nothing is published in this run.
    var isMirror = false
    /// Without a key that can be opened, go on without one.
    var isKeyOptional = false
    /// Take a key of this run's own where there is none. It is never kept, so that it cannot become
    /// the community's identity.
    var makesThrowawayKey = false
  }

  static func open(
    _ folder: CommunityFolder, _ wish: Wish, _ context: Context
  ) async throws -> RunningCommunity {
    let identity = Identity(home: folder.home, environment: context.environment)
    let (found, problem) = try signingKey(identity, folder.name, wish, context)
    let key = found ?? (wish.makesThrowawayKey ? SecretKey.generate() : nil)
    let store = try await folder.openStore(relay: wish.relay, context)
    do {
      let settings = try CommunitySettings(store.reader)
      var options = wish.options
      options.isReadOnly = wish.isMirror
      if let patience = try context.duration("fail-after") { options.limits.fit(into: patience) }
      let engine = Engine(
        store: store, relays: try relays(wish, settings), ports: context.ports,
        signer: key.map { LocalSigner($0) }, options: options)
      return RunningCommunity(
        name: folder.name, store: store, settings: settings, engine: engine,
        me: key?.publicKey, keyProblem: key == nil ? problem : nil)
    } catch {
      await store.close()
      throw error
    }
  }

  /// The relays to ask: all of the community's; of a replica that is named, itself alone, because
  /// what another says is no answer for it.
  private static func relays(_ wish: Wish, _ settings: CommunitySettings) throws -> [RelayURL] {
    guard let relay = wish.relay, relay != settings.home else { return settings.relays }
    guard settings.relays.contains(relay) else {
      throw Failure(.partial, "\(relay) is no relay of the community that its name stands for")
    }
    return [relay]
  }

  private static func signingKey(
    _ identity: Identity, _ name: CommunityName, _ wish: Wish, _ context: Context
  ) throws -> (SecretKey?, KeyFileError?) {
    do {
      return (try identity.load(for: name), nil)
    } catch let problem as KeyFileError where wish.isKeyOptional {
      // Whatever keeps it shut, it is needed only where a relay asks for it.
      context.talk.say("going on without the key: " + Failure(problem).message)
      return (nil, problem)
    }
  }

  /// - Parameter isNew: The community was not known before this run; it goes again where nobody
  ///   was reached and nothing came, or a slip of the finger would stand among the others for ever.
  func close(isNew: Bool = false) async {
    let wasReached = await engine.status().relays.contains(where: \.wasReached)
    await engine.stop()
    // What cannot be read is not known to be empty, and stays.
    let isEmpty = isNew && !wasReached && (try? store.isUntouched()) == true
    await store.close(removing: isEmpty)
  }
}

extension Failure {
  init(_ error: EngineError) {
    let code: ExitCode =
      switch error {
      case .noRelayReached: .noRelay
      case .noRelay, .keyNeeded, .noKey, .signing, .outboxFull, .unknownMessage, .alreadySent,
        .versionAhead:
        .partial
      case .store(let error): Failure(error).code
      case .stopped: .interrupted
      }
    let advice =
      switch error {
      case .noKey: " (skep key new, or skep key import)"
      case .keyNeeded: " (skep key new; or --throwaway-key for a mirror)"
      case .noRelay: " (skep relay add URL)"
      default: ""
      }
    self.init(code, error.description + advice)
  }
}
