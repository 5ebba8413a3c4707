import Nostr
import Platform
import RelayServer
import SyncCore

/// A relay in memory that answers each request by a rule of the test's own.
final class ScriptedRelay: Sendable {
  typealias Rule = @Sendable (ClientMessage) -> [RelayMessage]

  private let listener: any BoundListener
  private let asked = Lock<[ClientMessage]>([])
  private let serving: any SpawnedTask

  /// - Parameter isCut: Whether each connection ends with its first answer.
  init(
    on network: MemoryNetwork, host: String, port: UInt16, tasks: any TaskSpawner,
    isCut: Bool = false, rule: @escaping Rule
  )
    async throws
  {
    let listener = try await network.listen(host: host, port: port, frameBytesMax: 1 << 20)
    self.listener = listener
    let asked = asked
    serving = tasks.spawn("scripted relay") {
      await withTaskGroup(of: Void.self) { group in
        while let link = try? await listener.accept() {
          group.addTask {
            while case .message(let bytes)? = try? await link.receive() {
              guard let message = try? ClientMessage.parse(bytes) else { continue }
              asked.withLock { $0.append(message) }
              let answers = rule(message)
              for answer in answers { try? await link.send(answer.json()) }
              if isCut, !answers.isEmpty { link.close(code: 1001) }
            }
          }
        }
      }
    }
  }

  var requests: [ClientMessage] { asked.withLock { $0 } }

  func stop() async {
    listener.close()
    serving.cancel()
    await serving.finished()
  }
}
