import Dispatch
import Foundation
import Nostr
import NostrCrypto
import Testing

/// `Tests/Peers/misbehaving-relay.py` as a process of its own: a relay that misbehaves as it is told
/// and tells all that came and went.
final class MisbehavingRelay {
  static let isAvailable = FileManager.default.isExecutableFile(atPath: "/usr/bin/python3")

  let url: String
  private let process = Process()
  private let orders = Pipe()
  private let out: String

  init(
    _ scratch: SkepProcess.Scratch, events: [Event], _ rules: [String: Any] = [:]
  ) throws {
    let name = UUID().uuidString
    let lines = events.map { String(decoding: $0.json(), as: UTF8.self) + "\n" }.joined()
    let rulesFile = try scratch.file(
      name + ".rules",
      String(decoding: try JSONSerialization.data(withJSONObject: rules), as: UTF8.self))
    out = try scratch.file(name + ".log", "")
    let script = URL(filePath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "Peers/misbehaving-relay.py").path
    process.executableURL = URL(filePath: "/usr/bin/python3")
    process.arguments = [script, try scratch.file(name + ".events", lines), rulesFile]
    process.standardInput = orders
    process.standardOutput = try FileHandle(forWritingTo: URL(filePath: out))
    try process.run()
    let running = SkepProcess.Running(process: process, out: out, err: out)
    let line = try running.waitForLine()
    let row = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
    url = try #require(row?["url"] as? String)
  }

  // The relay ends with its input, also where the test ends by a signal.
  deinit { try? orders.fileHandleForWriting.close() }

  /// Changes the relay: an event more, other rules, or all connections dropped.
  func order(_ order: [String: Any]) throws {
    let before = try rows("done").count
    let line = try JSONSerialization.data(withJSONObject: order)
    try orders.fileHandleForWriting.write(contentsOf: line + Data("\n".utf8))
    while process.isRunning, try rows("done").count == before { sched_yield() }
  }

  func add(_ event: Event) throws {
    try order(["add": try JSONSerialization.jsonObject(with: Data(event.json()))])
  }

  /// What the relay told of itself, in order.
  func rows(_ type: String) throws -> [[String: Any]] {
    try String(contentsOfFile: out, encoding: .utf8).split(separator: "\n").compactMap { line in
      // A line may be half written yet.
      let row = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      return row?["type"] as? String == type ? row : nil
    }
  }

  /// The frames with that label that clients have sent.
  func frames(_ label: String) throws -> [[Any]] {
    try rows("frame").compactMap { $0["frame"] as? [Any] }.filter { $0.first as? String == label }
  }

  /// The filters of all REQs, in order.
  func filters() throws -> [[String: Any]] {
    try frames("REQ").flatMap { $0.dropFirst(2).compactMap { $0 as? [String: Any] } }
  }

  /// The ids of the events that clients have sent, in order.
  func published() throws -> [String] {
    try frames("EVENT").compactMap { ($0.last as? [String: Any])?["id"] as? String }
  }
}

/// People and their events, dated so that a test knows each second.
enum Scripted {
  static func key(_ name: String) throws -> SecretKey {
    try SecretKey(bytes: SHA256.hash(Array("scripted \(name)".utf8)).array)
  }

  static func now() -> Timestamp { Timestamp(Int64(Date().timeIntervalSince1970)) }

  static func event(
    _ name: String, _ kind: EventKind, _ tags: [[Text]], _ content: String, at time: Timestamp
  ) throws -> Event {
    let draft = EventDraft(
      createdAt: time, kind: kind, tags: Tags(tags), content: Text(content))
    return try RelaySigner(try key(name)).sign(draft).event
  }

  /// Messages of one group, so many in each of the seconds before `end`.
  static func messages(
    _ count: Int, perSecond: Int = 1, group: Text = "den", until end: Timestamp
  ) throws -> [Event] {
    try (0..<count).map { number in
      try event(
        "ann", 9, [["h", group]], "\(group) \(number)", at: end - Int64(number / perSecond))
    }
  }

  /// 700 messages of the second 100 before `end`, and 50 in other groups on either side of it.
  static func aroundDenseSecond(until end: Timestamp) throws -> [Event] {
    try messages(700, perSecond: 700, until: end - 100)
      + messages(50, group: "later", until: end)
      + messages(50, group: "earlier", until: end - 200)
  }

  /// The same event with other words under its id and signature.
  static func forged(_ event: Event) -> Event {
    Event(
      id: event.id, pubkey: event.pubkey, createdAt: event.createdAt, kind: event.kind,
      tags: event.tags, content: "forged", sig: event.sig)
  }

  static func object(_ event: Event) throws -> Any {
    try JSONSerialization.jsonObject(with: Data(event.json()))
  }
}

extension SkepProcess {
  /// Runs the program without holding a thread that other tests need.
  func runAside(_ arguments: String..., stdin: String? = nil) async throws -> Outcome {
    try await runAside(arguments, stdin: stdin)
  }

  func runAside(_ arguments: [String], stdin: String? = nil) async throws -> Outcome {
    let running = try start(arguments, stdin: stdin)
    let process = running.process
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      DispatchQueue.global().async {
        process.waitUntilExit()
        continuation.resume()
      }
    }
    return try running.finish()
  }

  /// The ids of the log.
  func ids() async throws -> Set<String> {
    Set(try await runAside("export").rows().compactMap { $0["id"] as? String })
  }
}
