import Foundation
import Glibc
import Testing

/// What the commands do with a community's stores, without any relay.
@Suite struct StoreTests {
  /// Good, the same again, a bad signature, no JSON, a CR LF and a blank line, and no last line end.
  private static func sixLines() throws -> String {
    let rows = try Vectors.rows("field-report-wire.jsonl")
    func line(_ name: String) throws -> String {
      try #require(rows.first { $0["name"] as? String == name }?["line"] as? String)
    }
    let good = try line("good")
    return [
      good, good, try line("sig-bitflip"), "{not json", try line("escaped-solidus") + "\r", "",
      try line("kind-65535"),
    ].joined(separator: "\n")
  }

  private static func corpus(_ skep: SkepProcess, _ count: Int = 400) throws -> String {
    let demo = skep.scratch.path + "/demo"
    let relay = try skep.start([
      "demo-relay", "--listen", "127.0.0.1:0", "--events", "\(count)", "--home", demo, "--json",
    ])
    try relay.waitForLine()
    relay.process.terminate()
    #expect(try relay.finish().code == 143)
    return demo + "/demo-relay-1.jsonl"
  }

  @Test func `an import counts each line once and again changes nothing`() throws {
    let skep = try SkepProcess()
    let file = try skep.scratch.file("six.jsonl", Self.sixLines())
    let rejects = skep.scratch.path + "/rejects.jsonl"
    let first = try skep.run("import", file, "--json", "--rejects", rejects)
    #expect(first.code == 1)
    let row = try #require(try first.rows().last)
    #expect(row["type"] as? String == "summary")
    #expect(row["stored"] as? Int == 3)
    #expect(row["duplicates"] as? Int == 1)
    #expect(row["rejected"] as? [String: Int] == ["signature": 1, "json": 1])
    #expect(row["events_per_second"] is NSNumber)
    #expect(try String(contentsOfFile: rejects, encoding: .utf8).split(separator: "\n").count == 2)
    let second = try #require(try skep.run("import", file, "--json").rows().last)
    #expect(second["stored"] as? Int == 0)
    #expect(second["duplicates"] as? Int == 4)
  }

  @Test func `every refused line is among the rejects as it is, in its place, however long`() throws
  {
    let skep = try SkepProcess()
    let long = String(repeating: "x", count: 17 << 20)
    let other = String(repeating: "y", count: (16 << 20) + 1)
    let lines = ["{first", long, "{second", other, "{third", long + "z"]
    let file = try skep.scratch.file(
      "long.jsonl", try Vectors.goodLine() + "\n" + lines.joined(separator: "\n"))
    let rejects = skep.scratch.path + "/rejects"
    let outcome = try skep.run("import", file, "--rejects", rejects, "--json")
    #expect(outcome.code == 1)
    #expect(try outcome.rows().last?["rejected"] as? [String: Int] == ["json": 3, "size": 3])
    let kept = try Data(contentsOf: URL(filePath: rejects))
    #expect(kept == Data((lines.joined(separator: "\n") + "\n").utf8))
  }

  @Test func `an import without a bad line ends well`() throws {
    let skep = try SkepProcess()
    let outcome = try skep.run("import", "-", "--json", stdin: try Vectors.goodLine())
    #expect(outcome.code == 0)
    #expect(try outcome.rows().last?["stored"] as? Int == 1)
  }

  @Test func `an import creates the community of an address, offline`() throws {
    let skep = try SkepProcess()
    let outcome = try skep.run(
      "import", "-", "--community", "ws://relay.example.com:7000", stdin: try Vectors.goodLine())
    #expect(outcome.code == 0)
    let status = try #require(
      try skep.run("status", "--json", "--community", "relay.example.com").rows().first)
    let relays = try #require(status["relays"] as? [[String: Any]])
    #expect(relays.map { $0["url"] as? String } == ["ws://relay.example.com:7000"])
  }

  @Test func `with several communities one must be named`() throws {
    let skep = try SkepProcess()
    let good = try Vectors.goodLine()
    _ = try skep.run("import", "-", "--community", "ws://a.example", stdin: good)
    _ = try skep.run("import", "-", "--community", "ws://b.example", stdin: good)
    let refused = try skep.run("status")
    #expect(refused.code == 64)
    #expect(refused.stderr.contains("a.example") && refused.stderr.contains("b.example"))
    #expect(try skep.run("status", "--community", "a.example").code == 0)
  }

  @Test func `the same log gives the same export, and it verifies`() throws {
    let skep = try SkepProcess()
    let file = try Self.corpus(skep)
    #expect(try skep.run("import", file).code == 0)
    let out = skep.scratch.path + "/out.jsonl"
    let manifest = skep.scratch.path + "/manifest.json"
    #expect(try skep.run("export", "--out", out, "--manifest", manifest).code == 0)
    let stdout = try skep.run("export")
    #expect(try Data(contentsOf: URL(filePath: out)) == stdout.stdout)
    #expect(try skep.run("verify", out).code == 0)

    let other = try SkepProcess()
    let reversed = stdout.text.split(separator: "\n").reversed().joined(separator: "\n")
    #expect(try other.run("import", "-", stdin: reversed).code == 0)
    #expect(try other.run("export").stdout == stdout.stdout)

    let told = try #require(
      try JSONSerialization.jsonObject(with: Data(contentsOf: URL(filePath: manifest)))
        as? [String: Any])
    let keys = [
      "count", "sha256", "first", "last", "filter", "relays", "coverage", "gaps", "created_at",
    ]
    #expect(keys.allSatisfy { told[$0] != nil })
    #expect(told["count"] as? Int == stdout.text.split(separator: "\n").count)
    let left = try FileManager.default.contentsOfDirectory(atPath: skep.scratch.path)
    #expect(!left.contains { $0.contains(".part-") })
  }

  @Test func `an export is ordered by time and then by id`() throws {
    let skep = try SkepProcess()
    #expect(try skep.run("import", try Self.corpus(skep)).code == 0)
    let places = try skep.run("export").rows().map { row -> String in
      let time = try #require(row["created_at"] as? Int)
      return String(format: "%020d", time) + (try #require(row["id"] as? String))
    }
    #expect(places == places.sorted() && places.count > 300)
  }

  @Test func `a query answers like a relay and ends with its count`() throws {
    let skep = try SkepProcess()
    #expect(try skep.run("import", try Self.corpus(skep)).code == 0)
    let outcome = try skep.run("query", #"{"kinds":[9],"limit":7}"#, "--json")
    #expect(outcome.code == 0)
    let rows = try outcome.rows()
    #expect(rows.dropLast().count == 7)
    let times = rows.dropLast().compactMap { $0["created_at"] as? Int }
    #expect(times == times.sorted(by: >))
    #expect(rows.last?["type"] as? String == "end")
    #expect(rows.last?["count"] as? Int == 7)
    #expect(rows.last?["complete"] as? Bool == false)
    #expect(rows.last?["gaps"] is [Any])
    let whole = try skep.run("query", "{}", "--log", "--json").rows().last?["count"] as? Int
    let shown = try skep.run("query", "{}", "--json").rows().last?["count"] as? Int
    #expect(try #require(whole) > (try #require(shown)))
  }

  @Test(arguments: ["[1]", "{", #"{"kinds":["x"]}"#, #"{"search":"x"}"#, "[]"])
  func `what is no filter is a usage error`(word: String) throws {
    let skep = try SkepProcess()
    _ = try skep.run("import", "-", stdin: try Vectors.goodLine())
    #expect(try skep.run("query", word).code == 64)
  }

  @Test func `status has its keys`() throws {
    let skep = try SkepProcess()
    _ = try skep.run("import", "-", stdin: try Vectors.goodLine())
    let row = try #require(try skep.run("status", "--json").rows().first)
    #expect(row["relays"] is [Any] && row["coverage"] is [Any])
    let cache = try #require(row["cache"] as? [String: Any])
    #expect(cache["state"] as? String == "ok")
    #expect(cache["applied"] as? Int == cache["head"] as? Int)
    let log = try #require(row["log"] as? [String: Any])
    #expect(log["events"] as? Int == 1)
    #expect(log["bytes"] as? Int ?? 0 > 0)
    #expect((row["outbox"] as? [String: Int])?["queued"] == 0)
  }

  @Test func `a home in use is told with the number of the process`() throws {
    let skep = try SkepProcess()
    #expect(try skep.run("import", "-", stdin: try Vectors.goodLine()).code == 0)
    let lock = open(skep.home + "/archive/lock", O_RDWR)
    #expect(flock(lock, LOCK_EX | LOCK_NB) == 0)
    let refused = try skep.run("import", "-", stdin: try Vectors.goodLine())
    #expect(refused.code == 75)
    #expect(refused.stderr.contains("in use by process"))
    #expect(try skep.run("query", "{}", "--json").code == 0)
    #expect(try skep.run("status").code == 0)
    #expect(try skep.run("verify").code == 0)
    close(lock)
    #expect(try skep.run("import", "-", stdin: try Vectors.goodLine()).code == 0)
  }

  @Test func `a home that cannot be made is an error of the disk`() throws {
    let outcome = try SkepProcess().run(
      "import", "-", "--home", "/proc/nowhere", stdin: try Vectors.goodLine())
    #expect(outcome.code == 74)
    #expect(outcome.stderr.contains("/proc/nowhere"))
  }

  @Test func `a log of a later version is refused untouched`() throws {
    let skep = try SkepProcess()
    _ = try skep.run("import", "-", stdin: try Vectors.goodLine())
    let path = skep.home + "/archive/log.sqlite"
    // Bytes 60…63 of an SQLite file are its user_version.
    var bytes = try Data(contentsOf: URL(filePath: path))
    bytes.replaceSubrange(60..<64, with: [0, 0, 0x03, 0xe7])
    try bytes.write(to: URL(filePath: path))
    let refused = try skep.run("import", "-", stdin: try Vectors.goodLine())
    #expect(refused.code == 74)
    #expect(refused.stderr.contains("version"))
    #expect(try Data(contentsOf: URL(filePath: path)) == bytes)
  }

  @Test func `what is no log is refused untouched`() throws {
    let skep = try SkepProcess()
    _ = try skep.run("import", "-", stdin: try Vectors.goodLine())
    let path = skep.home + "/archive/log.sqlite"
    let noise = Data(repeating: 0x41, count: 8192)
    try noise.write(to: URL(filePath: path))
    for command in [["status"], ["verify"], ["query", "{}"], ["import", "/dev/null"]] {
      #expect(try skep.start(command).finish().code == 2)
    }
    #expect(try Data(contentsOf: URL(filePath: path)) == noise)
  }

  @Test func `a killed import is finished by the next one`() throws {
    let skep = try SkepProcess()
    let file = try Self.corpus(skep, 3000)
    let whole = try SkepProcess()
    #expect(try whole.run("import", file).code == 0)
    let expected = try whole.run("export").stdout
    for _ in 0..<3 {
      let running = try skep.start(["import", file])
      // As soon as events are on the disk the axe may fall.
      let log = skep.home + "/archive/log.sqlite-wal"
      func size() -> Int {
        let attributes = try? FileManager.default.attributesOfItem(atPath: log)
        return attributes?[.size] as? Int ?? 0
      }
      while running.process.isRunning, size() < 200_000 { sched_yield() }
      kill(running.process.processIdentifier, SIGKILL)
      _ = try running.finish()
      #expect(try skep.run("verify").code == 0)
    }
    #expect(try skep.run("import", file).code == 0)
    #expect(try skep.run("export").stdout == expected)
    #expect(try skep.run("verify").code == 0)
  }

  @Test(arguments: [(SIGINT, 130), (SIGTERM, 143)] as [(Int32, Int32)])
  func `a signal in the middle of an import loses nothing`(number: Int32, code: Int32) throws {
    let skep = try SkepProcess()
    let file = try Self.corpus(skep, 500)
    let (running, feeder) = try skep.importAndWait(file, "--json")
    let log = skep.home + "/archive/log.sqlite-wal"
    func size() -> Int {
      let attributes = try? FileManager.default.attributesOfItem(atPath: log)
      return attributes?[.size] as? Int ?? 0
    }
    while running.process.isRunning, size() < 4096 { sched_yield() }
    kill(running.process.processIdentifier, number)
    let stopped = try running.finish()
    #expect(stopped.code == code)
    let stored = try #require(try stopped.rows().last?["stored"] as? Int)
    #expect(try skep.run("export").text.split(separator: "\n").count == stored)
    feeder.process.terminate()
    _ = try feeder.finish()
    #expect(try skep.run("verify").code == 0)
    #expect(try skep.run("import", file).code == 0)
    let whole = try SkepProcess()
    _ = try whole.run("import", file)
    #expect(try skep.run("export").stdout == whole.run("export").stdout)
  }

  @Test func `the doctor's checks have names, verdicts and details`() throws {
    let skep = try SkepProcess()
    _ = try skep.run("import", "-", stdin: try Vectors.goodLine())
    let outcome = try skep.run("doctor", "--rebuild-cache", "--json")
    #expect(outcome.code == 0)
    let checks = try #require(try outcome.rows().first?["checks"] as? [[String: Any]])
    #expect(checks.count >= 5)
    #expect(checks.allSatisfy { $0["name"] is String && $0["detail"] is String })
    #expect(checks.allSatisfy { $0["ok"] as? Bool == true }, "\(checks)")
  }

  @Test func `a noisy cache changes no answer`() throws {
    let skep = try SkepProcess()
    #expect(try skep.run("import", try Self.corpus(skep)).code == 0)
    let before = try skep.run("query", "{}").stdout
    for name in try FileManager.default.contentsOfDirectory(atPath: skep.home + "/archive/cache") {
      try Data(repeating: 0x5a, count: 5000).write(
        to: URL(filePath: skep.home + "/archive/cache/" + name))
    }
    #expect(try skep.run("query", "{}").stdout == before)
    #expect(try skep.run("verify").code == 0)
  }

  @Test func `the import benchmark names its figures`() throws {
    let outcome = try SkepProcess().run("bench", "import", "--events", "300", "--json")
    #expect(outcome.code == 0)
    let row = try #require(try outcome.rows().first)
    #expect(row["name"] as? String == "import")
    #expect(row["unit"] as? String == "events/s")
    for key in ["value", "limit", "ratio", "peak_anonymous_bytes"] {
      #expect((row[key] as? NSNumber)?.doubleValue ?? 0 > 0, "\(key)")
    }
  }

  @Test func `benchmarks are listed, and unknown ones are errors`() throws {
    #expect(try SkepProcess().run("bench").text.hasPrefix("import"))
    #expect(try SkepProcess().run("bench", "imprt").stderr.contains("did you mean import?"))
  }

  /// Root may write everywhere, so the program is run as somebody who may not.
  private static let stranger = ["--reuid", "65534", "--regid", "65534", "--clear-groups"]

  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/setpriv")))
  func `a home that cannot be written is read, and not written to`() throws {
    let skep = try SkepProcess()
    #expect(try skep.run("import", try Self.corpus(skep)).code == 0)
    let open = try skep.run("query", "{}").stdout
    let tree = FileManager.default.enumerator(atPath: skep.home)?.compactMap { $0 as? String } ?? []
    for path in tree.reversed().map({ skep.home + "/" + $0 }) + [skep.home, skep.scratch.path] {
      var isFolder: ObjCBool = false
      _ = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
      #expect(chmod(path, isFolder.boolValue ? 0o555 : 0o444) == 0)
    }
    defer { _ = tree.map { chmod(skep.home + "/" + $0, 0o755) } }
    let isRoot = getuid() == 0
    let program = isRoot ? "/tmp/skep-\(getpid())" : SkepProcess.binary
    if isRoot {
      try? FileManager.default.removeItem(atPath: program)
      try FileManager.default.copyItem(atPath: SkepProcess.binary, toPath: program)
      #expect(chmod(program, 0o755) == 0)
    }
    defer { if isRoot { try? FileManager.default.removeItem(atPath: program) } }
    let outputs = try SkepProcess.Scratch()
    func run(_ arguments: String...) throws -> SkepProcess.Outcome {
      // Its output goes to files that this test opens, so nobody else has to.
      try skep.start(
        isRoot ? Self.stranger + [program] + arguments : arguments,
        program: isRoot ? "/usr/bin/setpriv" : program, outputFolder: outputs.path
      ).finish()
    }
    #expect(try run("query", "{}").stdout == open)
    #expect(try run("status").code == 0)
    #expect(try run("verify").code == 0)
    let refused = try run("import", "/dev/null")
    #expect(refused.code == 74)
    #expect(refused.stderr.contains("choose another home"))
    #expect(chmod(skep.scratch.path, 0o755) == 0)
  }
}
