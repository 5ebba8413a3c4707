import Foundation
import Glibc
import Testing

/// The commands that talk to a relay, against the demo relay over real sockets.
@Suite struct RelayCommandTests {
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
    let relay = try DemoProcess(skep)
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
    let relay = try DemoProcess(skep, "--auth")
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
    let relay = try DemoProcess(skep)
    try relay.stop()
    let outcome = try skep.run("mirror", relay.url, "--fail-after", "1s", "--json")
    #expect(outcome.code == 3)
    let told = try summary(outcome)
    #expect(told["complete"] as? Bool == false)
    let gap = try #require((told["gaps"] as? [[String: Any]])?.first)
    #expect(gap["relay"] as? String == relay.url)
    #expect((gap["why"] as? String)?.isEmpty == false)
    #expect(outcome.stderr.contains(relay.url))
  }

  @Test func `a follower that reaches nobody for the stated time ends`() throws {
    let skep = try SkepProcess()
    let relay = try DemoProcess(skep)
    try relay.stop()
    let outcome = try skep.run("mirror", relay.url, "--follow", "--fail-after", "1s", "--json")
    #expect(outcome.code == 3)
    #expect(try summary(outcome)["complete"] as? Bool == false)
  }

  @Test func `a relay in the clear on another machine is refused`() throws {
    #expect(try SkepProcess().run("mirror", "ws://relay.example.com").code == 64)
  }

  @Test func `joining needs a key, and tells what the relay is`() throws {
    let skep = try SkepProcess()
    let relay = try DemoProcess(skep)
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
    let skep = try SkepProcess.withMirror()
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
    let relay = try DemoProcess(skep)
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

    let back = try DemoProcess(skep, port: relay.port)
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
    let skep = try SkepProcess.withMirror()
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

  // F194: a number that is left out is a number, and not none.
  @Test func `a page without a number is twenty messages`() throws {
    let skep = try SkepProcess.withMirror()
    let rows = try skep.run(
      "chat", "--offline", "--json", stdin: "/open general\n/history\n/history 3 --before #1\n"
    ).rows()
    let pages = rows.split { $0["type"] as? String == "done" }
    #expect(pages.map(\.count) == [20, 20, 3])
    let dates = try pages.map { page in
      try page.map { try #require($0["created_at"] as? Int) }
    }
    #expect(dates.allSatisfy { $0 == $0.sorted() })
    #expect(dates[2].allSatisfy { $0 <= dates[0][0] })
  }

  @Test func `what is proved and what is not are told by status, gaps and query alike`() throws {
    let skep = try SkepProcess()
    let relay = try DemoProcess(skep)
    _ = try skep.run("mirror", relay.url)
    // Leaving in the middle of a round takes nothing from what was proved.
    for _ in 0..<3 { #expect(try skep.run("chat", stdin: "/wait 1\n").code == 0) }
    for _ in 0..<3 { #expect(try skep.run("chat", stdin: "/channels\n").code == 0) }
    try relay.stop()
    let status = try #require(try skep.run("status", "--json").rows().first)
    #expect((status["gaps"] as? [Any])?.isEmpty == true)
    #expect(try skep.run("status").text.contains("proved     all of 6 groups at \(relay.url): "))
    let told = try skep.run("status", "--all").text
    #expect(told.contains("proved     all of general at \(relay.url): the beginning to"))
    #expect(
      try skep.run("chat", "--offline", stdin: "/gaps\n").text.hasPrefix("no gap is known"))

    let archive = try SkepProcess()
    _ = try archive.run("import", skep.scratch.path + "/demo/demo-relay-1.jsonl")
    #expect(try archive.run("status").text.contains("proved     nothing"))
    let gap = try #require(
      try archive.run("chat", "--json", stdin: "/gaps\n").rows().first)
    #expect(gap["type"] as? String == "gap" && gap["relay"] is NSNull)
    let end = try #require(try archive.run("query", "{}", "--json").rows().last)
    #expect(end["complete"] as? Bool == false)
    #expect((end["gaps"] as? [Any])?.count == 1)
  }

  @Test func `a group that no relay knows is named`() throws {
    let skep = try SkepProcess()
    let relay = try DemoProcess(skep)
    let outcome = try skep.run("mirror", relay.url, "--group", "genral", "--group", "general")
    #expect(outcome.stderr.contains("“genral”"))
    #expect(!outcome.stderr.contains("“general”"))
  }

  @Test func `waiting for what is live tells how many feeds are`() throws {
    let skep = try SkepProcess()
    let relay = try DemoProcess(skep)
    _ = try skep.run("mirror", relay.url, "--all")
    let done = try #require(
      try skep.run("chat", "--json", stdin: "/wait live\n").rows().last)
    #expect(done["ok"] as? Bool == true)
    #expect((done["feeds"] as? [String: Int])?["live"] ?? 0 > 6)
  }

  @Test func `channels that fit one word are told apart by number and id`() throws {
    let skep = try SkepProcess.withMirror()
    let rows = try skep.run(
      "chat", "--offline", "--json", stdin: "/open G\n/open #2\n/open #99\n"
    ).rows()
    let choices = rows.prefix { $0["type"] as? String == "channel" }
    #expect(choices.compactMap { $0["id"] as? String } == ["garden", "general"])
    let done = rows.filter { $0["type"] as? String == "done" }
    #expect(done.map { $0["ok"] as? Bool } == [false, true, false])
    let error = try #require(done[0]["error"] as? [String: String])
    #expect(error["code"] == "ambiguous-channel")
    #expect(error["message"]?.contains("#1 garden, #2 general") == true)
    let page = try #require(rows.first { $0["type"] as? String == "message" })
    #expect(page["group"] as? String == "general")
  }

  @Test func `a page of an archive without proofs says so`() throws {
    let skep = try SkepProcess()
    let relay = try DemoProcess(skep)
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
