import Foundation
import Glibc
import Nostr
import NostrCrypto
import Testing

/// Small things that are said and shown.
@Suite struct MannersTests {
  @Test(arguments: [("", false), ("dumb", false), ("xterm", true)])
  func `a terminal that shows no styles is sent none`(name: String, isStyled: Bool) throws {
    let skep = try SkepProcess()
    try skep.importDemo()
    let terminal = try Terminal(
      skep, ["chat", "--offline"], variables: ["TERM": name, "NO_COLOR": ""])
    try terminal.shows("> ")
    terminal.type("/open general\n")
    let shown = try terminal.shows("▸ ") + terminal.shows("> ")
    terminal.type("/quit\n")
    #expect(shown.contains("\u{1b}[1m") || shown.contains("\u{1b}[2m") ? isStyled : !isStyled)
    #expect(terminal.finish() == 0)
  }

  @Test func `an empty home is not said to be without a cache`() throws {
    let skep = try SkepProcess()
    #expect(try skep.run("import", "/dev/null").code == 0)
    let row = try #require(try skep.run("status", "--json").rows().first)
    #expect((row["cache"] as? [String: Any])?["state"] as? String == "ok")
  }

  @Test(arguments: [
    ##"{"#1":["one"]}"##, ##"{"#&":["x"]}"##, ##"{"#hh":["x"]}"##, #"{"kind":[9]}"#,
  ])
  func `a key that is no part of a filter is named`(filter: String) throws {
    let skep = try SkepProcess()
    _ = try skep.run("import", "-", stdin: Vectors.goodLine())
    #expect(try skep.run("query", filter).stderr.contains("is no part of a filter"))
    #expect(try !skep.run("query", ##"{"#h":["x"]}"##).stderr.contains("no part of a filter"))
  }

  @Test func `a search gets one refusal`() throws {
    let skep = try SkepProcess()
    _ = try skep.run("import", "-", stdin: Vectors.goodLine())
    let outcome = try skep.run("query", #"{"search":"x"}"#)
    #expect(outcome.code == 64)
    #expect(outcome.stderr.components(separatedBy: "search").count == 2)
  }

  @Test func `a mirror of an address where nobody is leaves no community`() throws {
    let skep = try SkepProcess()
    #expect(try skep.run("mirror", "ws://127.0.0.1:1", "--fail-after", "1s").code == 3)
    #expect(access(skep.home + "/127.0.0.1:1", F_OK) != 0)
    #expect(try skep.run("import", "/dev/null", "--community", "ws://127.0.0.1:1").code == 0)
    #expect(try skep.run("mirror", "ws://127.0.0.1:1", "--fail-after", "1s").code == 3)
    #expect(access(skep.home + "/127.0.0.1:1/log.sqlite", F_OK) == 0)
  }

  @Test func `joining where nobody is leaves no community, and one that was there stays`() throws {
    let skep = try SkepProcess()
    let url = "ws://127.0.0.1:1"
    #expect(try skep.run("key", "new").code == 0)
    #expect(try skep.run("join", url, "--fail-after", "1s").code == 3)
    #expect(access(skep.home + "/127.0.0.1:1", F_OK) != 0)
    #expect(try skep.run("import", "/dev/null", "--community", url).code == 0)
    #expect(try skep.run("join", url, "--fail-after", "1s").code == 3)
    #expect(access(skep.home + "/127.0.0.1:1/log.sqlite", F_OK) == 0)
  }

  @Test func `a relay that answered and then went away leaves its community`() async throws {
    let skep = try SkepProcess()
    let relay = try await ScriptedRelay(goesAway: true) { _ in nil }
    let mirror = try skep.run("mirror", relay.url, "--fail-after", "10s")
    #expect([3, 4].contains(mirror.code), "\(mirror.code): \(mirror.stderr)")
    let name = relay.url.dropFirst("ws://".count)
    #expect(access(skep.home + "/\(name)/log.sqlite", F_OK) == 0)
  }

  @Test func `an address in use is not called a refused connection`() throws {
    let skep = try SkepProcess()
    let relay = try DemoProcess(skep)
    let outcome = try skep.run("demo-relay", "--listen", "127.0.0.1:\(relay.port)")
    #expect(outcome.code == 74)
    #expect(outcome.stderr.contains("in use") && !outcome.stderr.contains("connection refused"))
  }

  @Test func `a host that is too long is a usage error`() throws {
    let skep = try SkepProcess()
    let host = String(repeating: "a", count: 300)
    #expect(try skep.run("mirror", "wss://\(host)").code == 64)
    #expect(try skep.run("import", "/dev/null", "--community", "wss://\(host)").code == 64)
  }

  @Test func `without a community the advice is a command that can be typed`() throws {
    let skep = try SkepProcess()
    let terminal = try Terminal(skep, [])
    try terminal.shows("“skep --help”")
    #expect(terminal.finish() == 64)
  }

  @Test(arguments: ["", String(repeating: "g", count: 3000)])
  func `a channel with an odd id is listed and opened`(id: String) async throws {
    let skep = try SkepProcess()
    let event = try await LocalSigner(SecretKey.generate()).sign(
      EventDraft(
        createdAt: 1_700_000_000, kind: .message, tags: Tags([["h", Text(id)]]), content: "hello"))
    let line = String(decoding: event.event.json(), as: UTF8.self)
    #expect(try skep.run("import", "-", stdin: line).code == 0)
    let word = id.isEmpty ? "\"\"" : id
    let rows = try skep.run(
      "chat", "--offline", "--json", stdin: "/channels\n/open \(word)\n"
    ).rows()
    let channels = rows.filter { $0["type"] as? String == "channel" }
    #expect(channels.map { $0["id"] as? String } == [id])
    #expect(rows.contains { $0["text"] as? String == "hello" })
  }
}
