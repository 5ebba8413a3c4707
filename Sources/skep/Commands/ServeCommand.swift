import EventLog
import HotCache
import Nostr
import NostrCrypto
import Platform
import RelayServer
import SyncCore
import SyncEngine

/// `skep serve`.
enum ServeCommand: Command {
  static let spec = CommandSpec(
    "serve",
    options: [
      RelayServing.listen,
      .flag("auth", "serve authenticated readers only, private groups to their members only"),
    ],
    about: "Serves the local copy as a read-only relay.",
    examples: [
      "skep serve --listen 127.0.0.1:7778", "skep serve --listen 127.0.0.1:0 --auth --json",
    ])

  static func run(_ context: Context) async throws -> ExitCode {
    let serving = try RelayServing(context)
    let community = try ReadingCommunity.chosen(context)
    let source = ReplicaSource(community, context)
    let machine = try await source.machine()
    return try await serving.run(machine, context) { relay in try await source.follow(relay) }
  }
}

/// The local copy as a relay machine, kept up with a process that writes beside it.
private final class ReplicaSource {
  private let community: ReadingCommunity
  private let context: Context
  private let verifier = Verifier()
  private var head = LogSequence.start

  init(_ community: ReadingCommunity, _ context: Context) {
    self.community = community
    self.context = context
  }

  func machine() async throws -> RelayMachine {
    head = try community.log.head()
    return try replica(views: community.views())
  }

  private func replica(views: CacheViews) throws -> RelayMachine {
    let origin = try community.relays().first
    let key = try views.read { snapshot throws(CacheError) in
      try origin.flatMap { relay throws(CacheError) in try snapshot.relaySelf(relay) }
    }
    let verifier = verifier
    do throws(RelayStoreError) {
      return try ReplicaRelay.make(
        of: origin, selfKey: key, log: community.log, views: views, clock: context.clock,
        asksForAuthentication: context.invocation.has("auth"), version: Shell.versionText
      ) { (try? verifier.verify($0)) != nil }
    } catch {
      throw Failure(.io, "the copy cannot be served: \(error)")
    }
  }

  /// Takes over what another process has written since.
  func follow(_ relay: RelayHost) async throws {
    let now = try community.log.head()
    guard now > head else { return }
    var fresh: [Event] = []
    while head < now {
      let entries = try community.log.entries(after: head, limit: 1000)
      guard let last = entries.last else { break }
      head = last.sequence
      for case .event(let logged) in entries.map(\.body) { fresh.append(logged.event) }
    }
    let store = LogStore(log: community.log, views: try community.views(), clock: context.clock)
    await relay.update { machine, _, _ in
      // A store that cannot be read now is asked again at the next turn.
      try? machine.use(store)
      return []
    }
    await relay.announce(fresh)
  }
}
