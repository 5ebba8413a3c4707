import Foundation
import Nostr
import Platform
import RelayServer
import RelaySocket
import SyncCore
import SyncEngine

/// The community that `skep chat --demo` opens: a made-up relay in this process, and a home of its
/// own that is thrown away at the end, so that nothing touches what is real.
struct ChatDemo {
  let relay: RelayURL
  let folder: CommunityFolder
  private let host: RelayHost

  static func start(_ context: Context) async throws -> ChatDemo {
    let path = NSTemporaryDirectory() + "skep-demo-" + UUID().uuidString
    let demo: DemoRelay
    do throws(DemoError) {
      demo = try await DemoRelay.make(
        seed: 1, eventsCount: 1000, folder: nil, rules: RelayRules(),
        version: Shell.versionText, on: WorkPool())
    } catch {
      throw Failure(.io, error.description)
    }
    let host = RelayHost(
      demo.machine, ports: context.ports, executor: ThreadExecutor(), journal: demo.journal)
    let port: UInt16
    do throws(TransportError) {
      port = try await host.start(
        on: SocketListener(service: SocketService()), host: "127.0.0.1", port: 0)
    } catch {
      throw Failure(.io, "the demo relay cannot listen: \(error)")
    }
    guard let relay = RelayURL("ws://127.0.0.1:\(port)") else {
      throw Failure(.io, "the demo relay has no address")
    }
    return ChatDemo(
      relay: relay,
      folder: CommunityFolder(home: Home(path: path), name: CommunityName(relay)), host: host)
  }

  func end() async {
    await host.stop()
    // What cannot be removed is in the folder for temporary files anyway.
    try? FileManager.default.removeItem(atPath: folder.home.path)
  }
}
