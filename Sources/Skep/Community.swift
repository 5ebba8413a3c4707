public import Nostr
public import NostrCrypto
import RelaySocket
import SyncCore
public import SyncEngine

/// One community on this machine, wired to the system's sockets, clock and threads: what a program
/// that embeds Skep opens.
///
/// Read through `store.views`, write through `engine.publish`; both work without a connection.
public struct Community: Sendable {
  public let store: CommunityStore
  public let engine: Engine

  /// Opens the community in `folder`, or makes it. Nothing is connected before `engine.start()`.
  ///
  /// - Parameters:
  ///   - relays: Where it lives; the first is its home.
  ///   - signer: Nil for reading alone.
  public static func open(
    folder: String, relays: [RelayURL], signer: (any Signer)?,
    options: EngineOptions = EngineOptions()
  ) async throws(StoreError) -> Community {
    let ports = Ports.system()
    let store = try await CommunityStore.open(
      folder: folder, clock: ports.clock, tasks: ports.tasks)
    let engine = Engine(
      store: store, relays: relays, ports: ports, signer: signer, options: options)
    return Community(store: store, engine: engine)
  }

  /// Ends all work and brings everything to the disk.
  public func close() async {
    await engine.stop()
    await store.close()
  }
}
