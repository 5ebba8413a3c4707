import Foundation
import Testing

@testable import skep_cli

@Suite struct FrameTests {
  @Test func `an unknown option is an error with a suggestion`() throws {
    let outcome = try SkepProcess().run("key", "show", "--jsno")
    #expect(outcome.code == 64)
    #expect(outcome.stderr.contains("did you mean --json?"))
    #expect(outcome.text == "")
  }

  @Test func `an unknown command is an error with a suggestion`() throws {
    let outcome = try SkepProcess().run("verfy")
    #expect(outcome.code == 64)
    #expect(outcome.stderr.contains("did you mean verify?"))
  }

  @Test(arguments: ["search", "push", "frobnicate"])
  func `a command that is not built is unknown`(name: String) throws {
    #expect(try SkepProcess().run(name, "x").code == 64)
  }

  @Test func `every command explains itself`() throws {
    let skep = try SkepProcess()
    let overview = try skep.run("--help").text
    let names = overview.matches(of: /(?m)^ {2}([a-z][a-z-]*) {2}/).map { String($0.1) }
    #expect(names.contains("verify"))
    for name in names {
      let help = try skep.run(name, "--help")
      #expect(help.code == 0)
      #expect(help.text.contains("usage: skep \(name)"))
      #expect(
        help.text.components(separatedBy: "examples:\n").last?.split(separator: "\n").count == 2)
    }
  }

  @Test func `help may be asked for as if it were a command`() throws {
    let skep = try SkepProcess()
    #expect(try skep.run("help").text == skep.run("--help").text)
    #expect(try skep.run("help", "key", "new").text == skep.run("key", "new", "--help").text)
  }

  @Test(arguments: [
    ["mirror", "ws://127.0.0.1:9", "--since", "5", "--until", "2"],
    ["mirror", "ws://127.0.0.1:9", "--group", ""], ["export", "--since", "5", "--until", "2"],
    ["export", "--group", ""], ["sync", "--group", ""],
  ])
  func `what can match nothing is a usage error`(arguments: [String]) throws {
    let skep = try SkepProcess()
    _ = try skep.run("import", "-", stdin: try Vectors.goodLine())
    #expect(try skep.start(arguments).finish().code == 64)
  }

  @Test func `every exit code is documented`() throws {
    let page = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "docs/CLI.md")
    let text = try String(contentsOf: page, encoding: .utf8)
    let rows = text.split(separator: "\n").filter { $0.hasPrefix("| ") }
    for code in ExitCode.allCases {
      let isTold = rows.contains { row in
        row.dropFirst(2).prefix { $0 != "|" }.split { !$0.isNumber }.contains("\(code.rawValue)")
      }
      #expect(isTold, "\(code)")
    }
  }

  // F195: what people write is nobody's business but the reader's.
  @Test func `no talk holds what was written`() throws {
    let skep = try SkepProcess()
    let event = try #require(
      JSONSerialization.jsonObject(with: Data(Vectors.goodLine().utf8)) as? [String: Any])
    let content = try #require(event["content"] as? String)
    let bad = try Vectors.goodLine().replacingOccurrences(of: content, with: content + "!")
    let lines = try Vectors.goodLine() + "\n" + bad + "\n"
    for arguments in [["import", "-"], ["verify", "-"], ["status"], ["doctor", "--offline"]] {
      let outcome = try skep.start(arguments + ["--verbose"], stdin: lines).finish()
      #expect(!outcome.stderr.contains(content), "\(arguments)")
    }
  }

  @Test func `the version is data`() throws {
    let outcome = try SkepProcess().run("--version")
    #expect(outcome.code == 0)
    #expect(outcome.text.hasPrefix("skep "))
  }

  @Test func `no command and no terminal is a usage error`() throws {
    #expect(try SkepProcess().run().code == 64)
  }
}

@Suite struct KeyTests {
  private static let nsec = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"
  private static let pubkey = "7e7e9c42a91bfef19fa929e5fda1b72e0ebc1a4c1141673e2794234d86addf4e"

  @Test func `a key is made once and then shown`() throws {
    let skep = try SkepProcess()
    let made = try skep.run("key", "new", "--json")
    #expect(made.code == 0)
    let row = try #require(try made.rows().first)
    #expect((row["npub"] as? String)?.hasPrefix("npub1") == true)
    #expect((row["pubkey"] as? String)?.count == 64)
    #expect(try skep.run("key", "show", "--json").text == made.text)
    #expect(try skep.run("key", "new").code == 1)
  }

  @Test(arguments: [false, true])
  func `an imported key is the same key`(fromStdin: Bool) throws {
    let skep = try SkepProcess()
    let outcome =
      fromStdin
      ? try skep.run("key", "import", "-", "--json", stdin: Self.nsec + "\n")
      : try skep.run("key", "import", Self.nsec, "--json")
    #expect(try outcome.rows().first?["pubkey"] as? String == Self.pubkey)
    #expect(try skep.run("key", "export", "--yes").text == Self.nsec + "\n")
  }

  @Test func `a secret key is printed only on demand`() throws {
    let skep = try SkepProcess()
    _ = try skep.run("key", "import", "-", stdin: Self.nsec)
    let refused = try skep.run("key", "export")
    #expect(refused.code == 64)
    #expect(!(refused.text + refused.stderr).contains("nsec1vl"))
  }

  @Test func `a key file that others may read is refused`() throws {
    let skep = try SkepProcess()
    _ = try skep.run("key", "new")
    let path = skep.home + "/identity/default.key"
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
    let refused = try skep.run("key", "show")
    #expect(refused.code == 77)
    #expect(refused.stderr.contains("chmod 600"))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    #expect(try skep.run("key", "show").code == 0)
  }

  @Test func `an encrypted key opens with its passphrase only`() throws {
    var skep = try SkepProcess()
    skep.environment["SKEP_PASSPHRASE"] = "caf\u{e9}"
    _ = try skep.run("key", "import", "-", stdin: Self.nsec)
    let file = try String(contentsOfFile: skep.home + "/identity/default.key", encoding: .utf8)
    #expect(file.hasPrefix("ncryptsec1"))
    skep.environment["SKEP_PASSPHRASE"] = "cafe\u{301}"
    #expect(try skep.run("key", "show", "--json").rows().first?["pubkey"] as? String == Self.pubkey)
    skep.environment["SKEP_PASSPHRASE"] = "tea"
    #expect(try skep.run("key", "show").code == 77)
  }

  @Test func `what is no key is refused without being repeated`() throws {
    let outcome = try SkepProcess().run("key", "import", "-", stdin: "nsec1qqqqqsecret")
    #expect(outcome.code == 64)
    #expect(!outcome.stderr.contains("qqqqqsecret"))
  }
}

@Suite struct VerifyFileTests {
  @Test func `the wire vectors get their verdicts in order`() throws {
    let skep = try SkepProcess()
    let vectors = try Vectors.rows("field-report-wire.jsonl")
    let lines = try vectors.map { try #require($0["line"] as? String) }
    let file = try skep.scratch.file("wire.jsonl", lines.joined(separator: "\n") + "\n")
    let outcome = try skep.run("verify", file, "--json")
    #expect(outcome.code == 2)
    let rows = try outcome.rows()
    #expect(rows.count == vectors.count + 1)
    for (index, (vector, row)) in zip(vectors, rows).enumerated() {
      let isAccepted = (vector["verdict"] as? String)?.hasPrefix("reject") == false
      #expect(row["line"] as? Int == index + 1)
      #expect(
        (row["verdict"] as? String == "ok") == isAccepted, "\(vector["name"] ?? ""): \(row)")
      #expect((row["reason"] is NSNull) == isAccepted)
      #expect(!isAccepted || row["id"] as? String != nil)
      #expect(!isAccepted || row["id_form"] as? String != nil)
    }
    let accepted = vectors.count { ($0["verdict"] as? String)?.hasPrefix("reject") == false }
    #expect(rows.last?["type"] as? String == "summary")
    #expect(rows.last?["ok"] as? Int == accepted)
    #expect(rows.last?["rejected"] as? Int == vectors.count - accepted)
  }

  @Test func `the serialiser vectors verify and name their ids`() throws {
    let skep = try SkepProcess()
    let vectors = try Vectors.rows("field-report-vectors.jsonl").compactMap {
      $0["event"] as? [String: Any]
    }
    let lines = try vectors.map {
      String(decoding: try JSONSerialization.data(withJSONObject: $0), as: UTF8.self)
    }
    let outcome = try skep.run("verify", "-", "--json", stdin: lines.joined(separator: "\n"))
    #expect(outcome.code == 0)
    let rows = try outcome.rows()
    #expect(
      rows.dropLast().compactMap { $0["id"] as? String }
        == vectors.compactMap { $0["id"] as? String })
  }

  @Test func `blank lines are not counted and a last line needs no end`() throws {
    let good = try Vectors.goodLine()
    let outcome = try SkepProcess().run(
      "verify", "-", "--json", stdin: "\n \(good)\r\n\r\n\t\n{}\n\(good)")
    let rows = try outcome.rows()
    #expect(rows.dropLast().compactMap { $0["line"] as? Int } == [1, 2, 3])
    #expect(rows.dropLast().compactMap { $0["reason"] as? String } == ["shape"])
  }

  @Test func `a line over the limit is refused by size and the next one is read`() throws {
    let good = try Vectors.goodLine()
    let long = String(repeating: "x", count: 16 * 1024 * 1024 + 1)
    let outcome = try SkepProcess().run(
      "verify", "-", "--json", stdin: "\(good)\n\(long)\n\(long)y\n\(good)\n\(long)")
    let rows = try outcome.rows()
    #expect(
      rows.dropLast().map { $0["verdict"] as? String } == [
        "ok", "rejected", "rejected", "ok", "rejected",
      ])
    #expect(rows.dropLast().compactMap { $0["reason"] as? String } == ["size", "size", "size"])
  }

  @Test func `a long line within the limit is not refused by size`() throws {
    let long = String(repeating: "x", count: 16 * 1024 * 1024)
    let outcome = try SkepProcess().run("verify", "-", "--json", stdin: long + "\n")
    #expect(try outcome.rows().first?["reason"] as? String == "json")
  }

  @Test func `a file that is not there is an error of input`() throws {
    let outcome = try SkepProcess().run("verify", "/nowhere/at/all.jsonl")
    #expect(outcome.code == 74)
    #expect(outcome.stderr.contains("/nowhere/at/all.jsonl"))
  }

  @Test func `a reader that goes away ends the program quietly`() throws {
    let skep = try SkepProcess()
    let good = try Vectors.goodLine()
    let pipe = Pipe()
    try pipe.fileHandleForReading.close()
    let running = try skep.start(
      ["verify", "-", "--json"], stdin: String(repeating: good + "\n", count: 2000),
      stdout: pipe.fileHandleForWriting)
    let outcome = try running.finish()
    #expect(outcome.code == 0)
    #expect(outcome.stderr == "")
  }
}
