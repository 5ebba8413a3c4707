import EventLog
import Foundation
import Nostr
import NostrCrypto
import Platform
import RelaySocket
import SyncCore
import Testing

/// Homes as somebody leaves them who was killed, lost a file, or reads beside another process.
@Suite(.timeLimit(.minutes(3))) struct LostLogTests {
  private static let community = "ws://127.0.0.1:9"

  private static func folder(_ skep: SkepProcess) -> String { skep.home + "/127.0.0.1:9" }

  private static let files = ["log.sqlite", "log.sqlite-wal", "log.sqlite-shm"]

  @Test(arguments: [[], ["cache/data.mdb"], ["log.sqlite-checked"]])
  func `a log that is gone is told, and no new one begins`(alsoGone: [String]) async throws {
    let skep = try SkepProcess()
    try skep.importDemo()
    let folder = Self.folder(skep)
    for name in Self.files + alsoGone {
      try? FileManager.default.removeItem(atPath: "\(folder)/\(name)")
    }
    let good = try skep.scratch.file("good.jsonl", try Vectors.goodLine())
    let commands = [
      ["import", good, "--community", Self.community], ["import", good],
      ["mirror", Self.community, "--fail-after", "1s"], ["sync", "--fail-after", "1s"],
      ["status"], ["chat", "--offline"], ["verify"], ["export"],
      ["query", "{}"], ["outbox"], ["doctor", "--offline"], ["relay", "list"],
    ]
    for command in commands {
      let outcome = try await skep.runAside(command)
      #expect(outcome.code == 2, "\(command): \(outcome.text) \(outcome.stderr)")
      let told = outcome.text + outcome.stderr
      #expect(told.contains("the log is gone") && told.contains("backup"), "\(command): \(told)")
      #expect(!FileManager.default.fileExists(atPath: "\(folder)/log.sqlite"), "\(command)")
    }
  }

  @Test func `a home whose first process was killed before there was a log goes on`() async throws {
    let good = try Vectors.goodLine()
    for name in ["127.0.0.1:9", "archive"] {
      let skep = try SkepProcess()
      let folder = skep.home + "/" + name
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700])
      try Data("1\n".utf8).write(to: URL(filePath: folder + "/lock"))
      for command in [
        ["status"], ["verify"], ["export"], ["outbox"], ["query", "{}"], ["doctor", "--offline"],
      ] {
        let outcome = try await skep.runAside(command)
        #expect(outcome.code == 0, "\(command): \(outcome.text) \(outcome.stderr)")
        #expect(!FileManager.default.fileExists(atPath: folder + "/log.sqlite"), "\(command)")
      }
      let outcome = try skep.run("import", "-", "--json", stdin: good)
      #expect(outcome.code == 0, "\(outcome.stderr)")
      #expect(try outcome.rows().last?["stored"] as? Int == 1)
      #expect(FileManager.default.fileExists(atPath: folder + "/log.sqlite"))
    }
  }

  @Test func `a fresh home has no community, which is a slip and no loss`() throws {
    let skep = try SkepProcess()
    #expect(try skep.run("status").code == 64)
    #expect(try skep.run("import", "-", stdin: try Vectors.goodLine()).code == 0)
  }

  // MARK: Who sends

  /// A home with a message that is marked as being sent.
  private func sending(handed: Bool) async throws -> SkepProcess {
    let skep = try SkepProcess()
    #expect(try await skep.runAside("key", "new").code == 0)
    try skep.importDemo()
    #expect(try await skep.runAside("relay", "add", Self.community).code == 0)
    let chat = try await skep.runAside(
      "chat", "--offline", "--json", stdin: "/open general\nhello\n/quit\n")
    #expect(chat.code == 0, "\(chat.text) \(chat.stderr)")
    let log = try await EventLog.open(
      path: Self.folder(skep) + "/log.sqlite", executor: ThreadExecutor(), clock: SystemClock())
    let delivery = try #require(try log.reader.deliveries(includingSent: false).first)
    try await log.record(
      DeliveryChange(
        message: delivery.message, relay: delivery.relay, state: .sending, attempts: 1,
        handedAt: handed ? 1_700_000_000 : nil))
    await log.close()
    return skep
  }

  @Test(arguments: [true, false])
  func `what nobody sends is not shown as being sent`(wasHanded: Bool) async throws {
    let skep = try await sending(handed: wasHanded)
    let state = wasHanded ? "unknown" : "queued"
    let row = try #require(try await skep.runAside("outbox", "--json").rows().first)
    #expect(row["state"] as? String == state, "\(row)")
    #expect((row["next"] as? String)?.contains("the next sync or chat") == true, "\(row)")
    let line = try await skep.runAside("outbox", "list").text
    #expect(line.contains(" \(state) ") && line.contains("the next sync or chat"), "\(line)")
    let status = try #require(try await skep.runAside("status", "--json").rows().first)
    let outbox = try #require(status["outbox"] as? [String: Int])
    #expect(outbox["sending"] == 0 && outbox[state] == 1)
    #expect(try await skep.runAside("status").text.contains("outbox     1 \(state)"))
  }

  @Test func `while a process holds the home, what it sends is being sent`() async throws {
    let skep = try await sending(handed: true)
    let lock = open(Self.folder(skep) + "/lock", O_RDWR)
    #expect(flock(lock, LOCK_EX | LOCK_NB) == 0)
    defer { close(lock) }
    let row = try #require(try await skep.runAside("outbox", "--json").rows().first)
    #expect(row["state"] as? String == "sending", "\(row)")
    #expect(row["next"] as? String == "waits for the relay's answer")
  }

  // MARK: Chat

  @Test func `the status of a chat has every figure of its feeds`() async throws {
    let skep = try SkepProcess()
    try skep.importDemo()
    #expect(try await skep.runAside("relay", "add", Self.community).code == 0)
    let rows = try await skep.runAside("chat", "--offline", "--json", stdin: "/status\n").rows()
    let relay = try #require((rows.first?["relays"] as? [[String: Any]])?.first)
    let feeds = try #require(relay["feeds"] as? [String: Int])
    #expect(Set(feeds.keys) == ["wanted", "asked", "live", "refused", "parked"])
    #expect(feeds["wanted"] ?? 0 > 0 && feeds["live"] == 0)
    #expect(relay["refused_feeds"] as? [Any] != nil)
  }

  @Test func `a reply to a message that is not held is found in its channel, and in a thread`()
    async throws
  {
    let skep = try SkepProcess()
    let root = String(repeating: "5a", count: 32)
    let signer = LocalSigner(SecretKey.generate())
    var lines = ""
    for (time, tags) in [
      (100, [["h", "den"]]), (200, [["h", "den"], ["e", Text(root), "", "reply"]]),
    ] as [(Timestamp, [[Text]])] {
      let draft = EventDraft(
        createdAt: time, kind: .message, tags: Tags(tags), content: Text("said at \(time)"))
      lines += String(decoding: try await signer.sign(draft).event.json(), as: UTF8.self) + "\n"
    }
    #expect(try skep.run("import", "-", stdin: lines).code == 0)
    let rows = try await skep.runAside(
      "chat", "--offline", "--json", stdin: "/open den\n/thread \(root)\n/thread #2\n"
    ).rows().filter { $0["type"] as? String == "message" }
    let reply = "said at \(Timestamp(200))"
    #expect(
      rows.map { $0["text"] as? String } == ["said at \(Timestamp(100))", reply, reply, reply])
    #expect(rows.map { $0["root_held"] as? Bool } == [nil, false, false, false])
    let text = try await skep.runAside("chat", "--offline", stdin: "/open den\n").text
    #expect(text.contains("reply to a message not shown here"), "\(text)")
  }
}
