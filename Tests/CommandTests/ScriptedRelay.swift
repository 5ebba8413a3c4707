import Foundation
import Nostr
import RelaySocket
import SyncCore

/// A relay over real sockets that answers each frame with exactly the lines that a test says.
///
/// It has a thread of its own, because tests that wait for a program block those of the pool.
final class ScriptedRelay: Sendable {
  /// Gets a client's frame as JSON and returns the frames to answer it with; nil hangs up.
  typealias Script = @Sendable ([Any]) -> [String]?

  let url: String
  private let bound: any BoundListener

  /// - Parameters:
  ///   - greeting: What is sent to whoever connects.
  ///   - goesAway: Nobody is there any more once the first client was hung up on.
  init(
    greeting: [String] = [], goesAway: Bool = false, _ script: @escaping Script
  ) async throws {
    let bound = try await SocketListener().listen(
      host: "127.0.0.1", port: 0, frameBytesMax: 1 << 20)
    self.bound = bound
    url = "ws://127.0.0.1:\(bound.port)"
    let thread = OwnThread()
    Task.detached(executorPreference: thread) {
      // The listener throws when it is closed, which is the end.
      while let link = try? await bound.accept() {
        Task.detached(executorPreference: thread) {
          await Self.serve(link, greeting, script)
          if goesAway { bound.close() }
        }
      }
    }
  }

  deinit { bound.close() }

  private static func serve(
    _ link: any TransportLink, _ greeting: [String], _ script: Script
  ) async {
    // A client that goes away ends its connection, and nothing else.
    for line in greeting { try? await link.send(Array(line.utf8)) }
    while let frame = try? await link.receive() {
      guard case .message(let bytes) = frame else { continue }
      guard let frame = try? JSONSerialization.jsonObject(with: Data(bytes)) as? [Any],
        let answers = script(frame)
      else { break }
      for line in answers { try? await link.send(Array(line.utf8)) }
    }
    link.abandon()
  }
}

/// Runs the jobs of some tasks on one thread, which lives as long as the process.
private final class OwnThread: TaskExecutor, @unchecked Sendable {
  // Unchecked: `jobs` is touched only while `condition` is held.
  private let condition = NSCondition()
  private var jobs: [UnownedJob] = []

  init() { Thread.detachNewThread { self.run() } }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    condition.lock()
    jobs.append(job)
    condition.signal()
    condition.unlock()
  }

  private func run() {
    while true {
      condition.lock()
      while jobs.isEmpty { condition.wait() }
      let due = jobs
      jobs = []
      condition.unlock()
      for job in due { job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
  }
}
