import Foundation
import Glibc
import Testing

/// A relay that nobody here wrote, as a process of its own.
final class Relay: Sendable {
  enum Kind: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case nostrRelaySQLite = "nostr-relay over SQLite"
    case nostrRelayLMDB = "nostr-relay over LMDB"
    case localRelay = "LocalRelay"

    var testDescription: String { rawValue }
  }

  let kind: Kind
  let port: UInt16
  private let process: Int32
  private let folder: String

  var url: String { "ws://127.0.0.1:\(port)" }

  /// Runs `body` with a running relay, and stops the relay by its pid whatever happens.
  ///
  /// - Parameters:
  ///   - folder: Where it keeps its events; the same folder holds the same ones again.
  ///   - port: 0 takes a free one.
  static func with<Value>(
    _ kind: Kind, in folder: String, port: UInt16 = 0, needsAuth: Bool = false,
    _ body: (Relay) async throws -> Value
  ) async throws -> Value {
    let relay = try Relay(
      kind, in: folder, port: port == 0 ? try freePort() : port, needsAuth: needsAuth)
    do {
      _ = try await Live.peer("wait-port.py", ["\(relay.port)", "30"])
      let value = try await body(relay)
      relay.stop()
      return value
    } catch {
      relay.stop()
      throw error
    }
  }

  private init(_ kind: Kind, in folder: String, port: UInt16, needsAuth: Bool) throws {
    let python = try Live.python.get()
    let launch = Process()
    switch kind {
    case .nostrRelaySQLite, .nostrRelayLMDB:
      launch.executableURL = Live.peers.appending(path: "nostr-relay.sh")
      launch.arguments =
        [kind == .nostrRelaySQLite ? "sqlite" : "lmdb", "\(port)", folder]
        + (needsAuth ? ["auth"] : [])
    case .localRelay:
      launch.executableURL = URL(filePath: "\(python)/bin/python")
      launch.arguments =
        [Live.peers.appending(path: "local-relay.py").path, "\(port)", "--lmdb", folder]
        + (needsAuth ? ["--nip42", "both"] : [])
    }
    launch.environment = Live.environment.merging(["SKEP_PEERS": python, "MAX_LIMIT": "100"]) { $1 }
    launch.standardInput = FileHandle.nullDevice
    launch.standardOutput = FileHandle.nullDevice
    launch.standardError = FileHandle.nullDevice
    try launch.runWithSignals()
    self.kind = kind
    self.port = port
    self.folder = folder
    process = launch.processIdentifier
  }

  private func stop() { kill(process, SIGKILL) }

  func publish(_ file: String, secret: String? = nil) async throws {
    let arguments = secret.map { ["--auth", $0] } ?? []
    let run = try await Live.peer("publish.py", [url, file] + arguments)
    let answers = run.summary["answers"] as? [String: Int] ?? [:]
    if answers.keys.sorted() == ["True"] { return }
    throw Untaken(answers: run.output)
  }

  /// Fills the folder of a LocalRelay that does not run: much faster than `publish`, and the same
  /// store decides what is taken: not what is deleted or superseded already.
  static func load(_ file: String, into folder: String) async throws {
    let run = try await Live.peer("load.py", [folder, file])
    let taken = run.summary["taken"] as? Int ?? 0
    let refused = run.summary["refused"] as? Int ?? 0
    // A corpus holds few events that are superseded or deleted when they come.
    try #require(taken > 9 * refused, "\(run.story)")
    let lines = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n")
    try #require(taken + refused == lines.count, "\(run.story)")
  }

  /// The ids that an independent client pages out.
  func ids(secret: String? = nil, filter: String = "{}") async throws -> Set<String> {
    let run = try await Live.peer(
      "page.py", [url, filter] + (secret.map { ["--auth", $0] } ?? []))
    return Set(run.output.split(separator: "\n").map(String.init))
  }

  /// The events of one request, read by an independent client.
  func events(_ filter: String, secret: String? = nil) async throws -> [[String: Any]] {
    try await Live.peer("query.py", [url, filter] + (secret.map { ["--auth", $0] } ?? [])).rows
  }

  /// Lets a key read from a `nostr-relay` that needs AUTH.
  func admit(_ pubkey: String) async throws {
    guard kind != .localRelay else { return }
    let run = try await ProgramRun.of(
      Live.peers.appending(path: "nostr-relay-reader.sh").path, [folder, pubkey],
      environment: ["SKEP_PEERS": try Live.python.get()])
    try #require(run.status == 0, "\(run.story)")
  }

  static func freePort() throws -> UInt16 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
        bind(descriptor, generic, length) == 0 && getsockname(descriptor, generic, &length) == 0
      }
    }
    try #require(isBound)
    return UInt16(bigEndian: address.sin_port)
  }
}

/// A relay did not take all events of a corpus, however often it was asked.
private struct Untaken: Error {
  let answers: String
}
