import Foundation
import Glibc
import Testing

/// The commands that talk to a relay, against the demo relay over real sockets.
@Suite struct RelayCommandTests {
  /// A demo relay of this test's own, ended with the value.
  private final class Relay {
    let url: String
    private let running: SkepProcess.Running

    init(_ skep: SkepProcess, port: String = "0", _ options: String...) throws {
      running = try skep.start(
        [
          "demo-relay", "--listen", "127.0.0.1:\(port)", "--events", "400", "--home",
          skep.scratch.path + "/demo", "--json",
        ] + options)
      let line = try running.waitForLine()
      let row = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      #expect(row?["type"] as? String == "listening")
      url = try #require(row?["url"] as? String)
    }

    var port: String { String(url.split(separator: ":").last ?? "") }

    func stop() throws {
      running.process.terminate()
      #expect(try running.finish().code == 143)
    }

    deinit { if running.process.isRunning { running.process.terminate() } }
  }

  private func summary(_ outcome: SkepProcess.Outcome) throws -> [String: Any] {
    let row = try #require(try outcome.rows().last)
    #expect(row["type"] as? String == "summary")
    for key in [
      "stored", "duplicates", "rejected", "sent", "queued", "failed", "complete", "gaps", "via",
    ] { #expect(row[key] != nil, "\(key)") }
    return row
  }

  @Test func `a mirror is complete, and a second run stores nothing`() throws {
    let skep = try SkepProcess()
    let relay = try Relay(skep)
    let first = try skep.run("mirror", relay.url, "--all", "--json")
    #expect(first.code == 0)
    let told = try summary(first)
    #expect(told["complete"] as? Bool == true)
    #expect(told["stored"] as? Int == 400)
    #expect(try summary(skep.run("mirror", relay.url, "--all", "--json"))["stored"] as? Int == 0)
    #expect(try skep.run("query", "{}", "--json").rows().last?["complete"] as? Bool == true)
    #expect(try skep.run("verify").code == 0)
    try relay.stop()
  }

  @Test func `a mirror needs no key, and one that must say who it is says how to get one`() throws {
    let skep = try SkepProcess()
    let relay = try Relay(skep, "--auth")
    let refused = try skep.run("mirror", relay.url, "--all")
    #expect(refused.code == 1)
    #expect(refused.stderr.contains("skep key new"))
    #expect(try skep.run("mirror", relay.url, "--all", "--throwaway-key").code != 1)
    // It was for that run alone.
    #expect(!FileManager.default.fileExists(atPath: skep.home + "/identity"))
    #expect(try skep.run("key", "new", "--community", relay.url).code == 0)
    try relay.stop()
  }

  @Test func `a relay that is not there ends with its own code`() throws {
    let skep = try SkepProcess()
    let relay = try Relay(skep)
    try relay.stop()
    let outcome = try skep.run("mirror", relay.url, "--fail-after", "1s")
    #expect(outcome.code == 3)
    #expect(outcome.stderr.contains(relay.url))
  }

  @Test func `a follower that reaches nobody for the stated time ends`() throws {
    let skep = try SkepProcess()
    let relay = try Relay(skep)
    try relay.stop()
    #expect(try skep.run("mirror", relay.url, "--follow", "--fail-after", "1s").code == 3)
  }

  @Test func `a relay in the clear on another machine is refused`() throws {
    #expect(try SkepProcess().run("mirror", "ws://relay.example.com").code == 64)
  }

  @Test func `joining needs a key, and tells what the relay is`() throws {
    let skep = try SkepProcess()
    let relay = try Relay(skep)
    #expect(try skep.run("join", relay.url).code == 1)
    #expect(try skep.run("key", "new").code == 0)
    let joined = try skep.run("join", relay.url, "--json")
    #expect(joined.code == 0)
    let row = try #require(try joined.rows().last)
    #expect(row["community"] as? String == "127.0.0.1:\(relay.port)")
    #expect((row["self"] as? String)?.count == 64)
    #expect((row["nips"] as? [Int])?.contains(29) == true)
    try relay.stop()
  }

  @Test func `relays are added, listed and removed, but for the home`() throws {
    let skep = try SkepProcess()
    _ = try skep.run(
      "import", "-", "--community", "wss://home.example", stdin: try Vectors.goodLine())
    #expect(try skep.run("relay", "add", "wss://two.example").code == 0)
    let row = try #require(try skep.run("relay", "list", "--json").rows().first)
    let urls = (row["relays"] as? [[String: Any]])?.compactMap { $0["url"] as? String }
    #expect(urls == ["wss://home.example", "wss://two.example"])
    #expect(try skep.run("relay", "remove", "wss://home.example").code == 1)
    #expect(try skep.run("relay", "remove", "wss://two.example").code == 0)
  }

  @Test func `a replica serves the copy and takes nothing`() throws {
    let skep = try SkepProcess()
    let relay = try Relay(skep)
    _ = try skep.run("mirror", relay.url, "--all")
    try relay.stop()
    let serving = try skep.start(["serve", "--listen", "127.0.0.1:0", "--json"])
    let line = try serving.waitForLine()
    let row = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
    let url = try #require(row?["url"] as? String)
    let other = try SkepProcess()
    let copied = try summary(other.run("mirror", url, "--all", "--json"))
    #expect(copied["stored"] as? Int == 400)
    #expect(try other.run("export").stdout == skep.run("export").stdout)
    serving.process.terminate()
    #expect(try serving.finish().code == 143)
  }

  @Test func `what is written offline arrives once when the relay is back`() throws {
    let skep = try SkepProcess()
    _ = try skep.run("key", "new")
    let relay = try Relay(skep)
    #expect(try skep.run("mirror", relay.url, "--all").code == 0)
    try relay.stop()
    let offline = try skep.run(
      "chat", "--offline", "--json",
      stdin: "/open general\none\ntwo\n/reply #1 three\n/wait outbox\n/bogus\n/thread\n/quit\n")
    #expect(offline.code == 0)
    let rows = try offline.rows()
    let done = rows.filter { $0["type"] as? String == "done" }
    #expect(
      done.map { $0["command"] as? String } == [
        "open", "send", "send", "reply", "wait", "bogus", "thread", "quit",
      ])
    #expect(
      done.map { $0["ok"] as? Bool } == [true, true, true, true, false, false, false, true])
    let written = rows.filter { $0["state"] as? String == "queued" }
    #expect(written.compactMap { $0["text"] as? String } == ["one", "two", "three"])
    #expect(try skep.run("outbox", "--json").rows().count == 3)

    let back = try Relay(skep, port: relay.port)
    let sent = try summary(skep.run("sync", "--json"))
    #expect(sent["sent"] as? Int == 3)
    #expect(sent["queued"] as? Int == 0)
    #expect(try skep.run("outbox", "--json").rows().isEmpty)
    #expect(try summary(skep.run("sync", "--json"))["sent"] as? Int == 0)
    let witness = try SkepProcess()
    _ = try witness.run("mirror", back.url, "--all")
    let key = try #require(try skep.run("key", "show", "--json").rows().first?["pubkey"] as? String)
    let seen = try witness.run("query", #"{"authors":["\#(key)"]}"#, "--json").rows().dropLast()
    let ids = Set(seen.compactMap { $0["id"] as? String })
    #expect(ids == Set(written.compactMap { $0["id"] as? String }))
    try back.stop()
  }

  @Test func `a channel's page has the rows of the contract`() throws {
    let skep = try SkepProcess()
    let relay = try Relay(skep)
    _ = try skep.run("mirror", relay.url, "--all")
    try relay.stop()
    let rows = try skep.run(
      "chat", "--offline", "--json", stdin: "/channels\n/open general\n/members\n/show #1\n"
    ).rows()
    func first(_ type: String) throws -> [String: Any] {
      try #require(rows.first { $0["type"] as? String == type })
    }
    for (type, keys) in [
      (
        "channel",
        [
          "id", "name", "about", "members", "unread", "mentions", "last_at", "member", "state",
          "private", "dm", "access",
        ]
      ),
      (
        "message",
        [
          "n", "id", "group", "author", "created_at", "kind", "text", "state", "deleted", "edited",
          "reply_to", "root", "replies", "reactions", "redated_from", "future",
        ]
      ),
      ("member", ["pubkey", "name", "roles"]),
      ("done", ["command", "ok", "error"]),
    ] {
      let row = try first(type)
      for key in keys { #expect(row[key] != nil, "\(type) has no \(key)") }
    }
    let page = try #require(
      rows.first { $0["type"] as? String == "done" && $0["command"] as? String == "open" })
    #expect(page["complete"] as? Bool == true)
  }

  @Test func `a page of an archive without proofs says so`() throws {
    let skep = try SkepProcess()
    let relay = try Relay(skep)
    try relay.stop()
    _ = try skep.run("import", skep.scratch.path + "/demo/demo-relay-1.jsonl")
    let rows = try skep.run("chat", "--json", stdin: "/open general\n").rows()
    #expect(rows.last?["complete"] as? Bool == false)
  }

  @Test func `a signal ends a waiting chat cleanly`() throws {
    let skep = try SkepProcess()
    _ = try skep.run("import", "-", stdin: try Vectors.goodLine())
    let running = try skep.start(
      ["chat", "--json", "--offline"], stdin: "/channels\n/wait 600\n")
    try running.waitForLine()
    running.process.interrupt()
    #expect(try running.finish().code == 130)
    #expect(try skep.run("verify").code == 0)
  }
}
