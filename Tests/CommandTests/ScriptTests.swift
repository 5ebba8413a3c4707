import Foundation
import Glibc
import Nostr
import NostrCrypto
import Testing

/// What a script may rely on when something of it fails.
@Suite struct ScriptTests {
  private static let relay = "wss://home.example"

  /// Two groups: one called Board, and one whose id is that.
  private func twins() throws -> SkepProcess {
    let skep = try SkepProcess()
    let signer = RelaySigner(SecretKey.generate())
    var lines = ""
    for (id, name) in [("a1b2", "Board"), ("Board", "Anything"), ("c3", "Kitchen")] {
      let draft = EventDraft(
        createdAt: 1_780_000_000, kind: .groupMetadata, tags: Tags([["d", id], ["name", name]]),
        content: "")
      lines += String(decoding: try signer.sign(draft).event.json(), as: UTF8.self) + "\n"
    }
    _ = try skep.run("key", "new")
    #expect(try skep.run("import", "-", "--community", Self.relay, stdin: lines).code == 0)
    return skep
  }

  private func chat(_ skep: SkepProcess, _ lines: String) throws -> SkepProcess.Outcome {
    try skep.run("chat", "--offline", "--json", stdin: lines)
  }

  private func groupsWritten(_ skep: SkepProcess) throws -> [String] {
    try skep.run("query", #"{"kinds":[9]}"#, "--json").rows().compactMap { row in
      (row["tags"] as? [[String]])?.first?.last
    }
  }

  @Test(
    arguments: [
      ("Board", []), ("id:Board", ["Board"]), ("id:a1b2", ["a1b2"]), ("a1b2", ["a1b2"]),
      ("Anything", ["Board"]), ("kitchen", ["c3"]),
    ] as [(String, [String])])
  func `a word that is one channel's name and another's id opens neither`(
    word: String, written: [String]
  ) throws {
    let skep = try twins()
    let outcome = try chat(skep, "/open \(word)\nhello\n")
    #expect(try groupsWritten(skep) == written)
    #expect(outcome.code == (written.isEmpty ? 1 : 0))
    if written.isEmpty {
      #expect(outcome.text.contains("a1b2") && outcome.text.contains("2 channels fit"))
    }
  }

  @Test(arguments: ["/open nowhere", "/open Board", "/open"])
  func `after an open that failed a script writes nowhere`(line: String) throws {
    let skep = try twins()
    let outcome = try chat(skep, "/open kitchen\n\(line)\nmeant for another\n")
    #expect(try groupsWritten(skep) == [])
    #expect(outcome.code == 1)
    let errors = try outcome.rows().compactMap {
      ($0["error"] as? [String: Any])?["code"] as? String
    }
    #expect(errors.last == "no-channel")
    #expect(try chat(skep, "/open kitchen\nhello\n").code == 0)
    #expect(try groupsWritten(skep) == ["c3"])
  }

  @Test func `somebody at a terminal keeps the channel and is told which`() throws {
    let skep = try twins()
    let terminal = try Terminal(skep, ["chat", "--offline"])
    try terminal.shows("> ")
    terminal.type("/open kitchen\n")
    try terminal.shows("▸ Kitchen")
    terminal.type("/open nowhere\n")
    try terminal.shows("“Kitchen” stays open")
    terminal.type("/quit\n")
    #expect(terminal.finish() == 0)
  }

  @Test(arguments: ["text", "/reply #9 text", "/react #9 +", "/edit #9 text", "/reply"])
  func `a script of which something was not written does not end well`(line: String) throws {
    let skep = try twins()
    let outcome = try chat(skep, line + "\n/channels\n")
    #expect(outcome.code == 1)
    #expect(outcome.stderr.contains("1 line was not taken"))
    #expect(try chat(skep, "/thread #9\n/channels\n").code == 0)
  }

  @Test func `without a connection nothing is synchronised before it is online`() throws {
    let skep = try twins()
    let rows = try chat(skep, "/sync\n").rows()
    let error = rows.last?["error"] as? [String: Any]
    #expect(error?["code"] as? String == "offline")
    #expect((error?["message"] as? String)?.contains("/online first") == true)
  }

  @Test func `an online session synchronises`() throws {
    let skep = try SkepProcess()
    let relay = try DemoProcess(skep)
    #expect(try skep.run("mirror", relay.url, "--all").code == 0)
    let rows = try skep.run("chat", "--json", stdin: "/sync\n").rows()
    #expect(rows.last?["ok"] as? Bool == true)
  }

  @Test func `what query prints for people holds nothing that moves a cursor`() throws {
    let skep = try SkepProcess()
    let tower = "o" + String(repeating: "\u{301}", count: 40)
    let text = "\(tower) a\u{9b}31m \u{202e}b\u{7f} \u{e0041} 👩‍👩‍👧"
    let draft = EventDraft(
      createdAt: 1_780_000_000, kind: .message, tags: Tags([["h", "x"]]), content: Text(text))
    let event = try RelaySigner(SecretKey.generate()).sign(draft).event
    let line = String(decoding: event.json(), as: UTF8.self)
    #expect(try skep.run("import", "-", stdin: line).code == 0)
    let shown = try skep.run("query", "{}")
    #expect(shown.text.contains(#"a\u009b31m \u202eb\u007f \udb40\udc41 👩‍👩‍👧"#))
    #expect(try shown.rows().first?["content"] as? String == text, "it says the same")
    #expect(try skep.run("query", "{}", "--json").text.hasPrefix(line))
  }

  @Test func `a home that is no folder is called that`() throws {
    let skep = try SkepProcess()
    let file = try skep.scratch.file("file", "")
    for path in [file, file + "/below"] {
      let outcome = try skep.run("status", "--home", path)
      #expect(outcome.code == 74)
      #expect(outcome.stderr.contains("is not a folder"))
    }
    #expect(try !skep.run("status").stderr.contains("is not a folder"))
  }

  @Test func `an encrypted key is taken over with its passphrase and stays encrypted`() throws {
    var skep = try SkepProcess()
    skep.environment["SKEP_PASSPHRASE"] = "correct horse"
    let made = try skep.run("key", "new", "--json").text
    let kept = try String(contentsOfFile: skep.home + "/identity/default.key", encoding: .utf8)
    #expect(kept.hasPrefix("ncryptsec1"))
    var other = try SkepProcess()
    #expect(try other.run("key", "import", "-", stdin: kept).code == 77)
    other.environment["SKEP_PASSPHRASE"] = "wrong"
    #expect(try other.run("key", "import", "-", stdin: kept).code == 77)
    #expect(access(other.home + "/identity/default.key", F_OK) != 0)
    other.environment["SKEP_PASSPHRASE"] = "correct horse"
    #expect(try other.run("key", "import", "-", "--json", stdin: kept).text == made)
    let saved = try String(contentsOfFile: other.home + "/identity/default.key", encoding: .utf8)
    #expect(saved.hasPrefix("ncryptsec1"))
    #expect(try other.run("key", "import", "-", stdin: "ncryptsec1nonsense").code == 64)
  }
}
