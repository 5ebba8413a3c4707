import Foundation
import Testing

/// One community on a demo relay and on a served copy of it, over real sockets.
@Suite struct ReplicaCommandTests {
  /// A relay of this test's own, ended with the value.
  private final class Serving {
    let url: String
    private let running: SkepProcess.Running

    init(_ skep: SkepProcess, _ arguments: [String]) throws {
      running = try skep.start(arguments + ["--json"])
      let row =
        try JSONSerialization.jsonObject(with: Data(running.waitForLine().utf8)) as? [String: Any]
      url = try #require(row?["url"] as? String)
    }

    var port: String { String(url.split(separator: ":").last ?? "") }

    func stop() throws {
      running.process.terminate()
      _ = try running.finish()
    }

    deinit { if running.process.isRunning { running.process.terminate() } }
  }

  private func demo(_ skep: SkepProcess, port: String = "0") throws -> Serving {
    try Serving(
      skep,
      [
        "demo-relay", "--listen", "127.0.0.1:\(port)", "--events", "300", "--home",
        skep.scratch.path + "/demo",
      ])
  }

  @Test func `a home that is down leaves a community that is read from its replica`() throws {
    let skep = try SkepProcess()
    let home = try demo(skep)
    let archive = try SkepProcess()
    #expect(try archive.run("mirror", home.url, "--all").code == 0)
    let copy = try Serving(archive, ["serve", "--listen", "127.0.0.1:0"])

    _ = try skep.run("key", "new")
    #expect(try skep.run("join", home.url).code == 0)
    #expect(try skep.run("relay", "add", copy.url).code == 0)
    try home.stop()
    let alone = try skep.run("sync", "--once", "--json")
    #expect(alone.code == 4)
    let summary = try #require(try alone.rows().last)
    #expect(summary["complete"] as? Bool == false)
    #expect(try #require(summary["stored"] as? Int) > 100)
    let reached = (summary["relays"] as? [[String: Any]])?.filter { $0["reached"] as? Bool == true }
    #expect(reached?.compactMap { $0["url"] as? String } == [copy.url])

    let chat = try skep.run(
      "chat", "--json", stdin: "/wait live\n/open general\nhello\n/history 5\n/quit\n")
    #expect(chat.code == 0)
    let rows = try chat.rows()
    #expect(rows.filter { $0["type"] as? String == "message" }.count > 5)
    let done = rows.filter { $0["type"] as? String == "done" }
    #expect(done.allSatisfy { $0["ok"] as? Bool == true })
    let waiting = try skep.run("outbox", "--json").rows()
    #expect(waiting.compactMap { $0["relay"] as? String } == [home.url])

    let back = try demo(skep, port: home.port)
    let sent = try skep.run("sync", "--json")
    #expect(sent.code == 0)
    let told = try #require(try sent.rows().last)
    #expect(told["sent"] as? Int == 1 && told["complete"] as? Bool == true)
    let status = try #require(try skep.run("status", "--json").rows().first)
    let proved = Set(
      (status["coverage"] as? [[String: Any]] ?? []).compactMap { $0["relay"] as? String })
    #expect(proved == [home.url, copy.url])
    try copy.stop()
    #expect(try skep.run("sync", "--once").code == 0, "a replica is never needed")
    try back.stop()
  }

  @Test func `a key is trusted by the user alone`() throws {
    let skep = try SkepProcess()
    _ = try skep.run(
      "import", "-", "--community", "wss://home.example", stdin: try Vectors.goodLine())
    let key = String(repeating: "ab", count: 32)
    #expect(try skep.run("relay", "trust", "nobody").code == 64)
    #expect(try skep.run("relay", "trust", key).code == 0)
    let row = try #require(try skep.run("relay", "list", "--json").rows().first)
    #expect(row["self"] as? String == key)
    let status = try #require(try skep.run("status", "--json").rows().first)
    #expect(status["self"] as? String == key)
  }
}
