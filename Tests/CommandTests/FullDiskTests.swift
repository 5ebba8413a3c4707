import Foundation
import Glibc
import Testing

/// A disk without any room left: what is held can be read, and each answer says how it ended.
@Suite struct FullDiskTests {
  /// A small disk in memory, where one can be mounted.
  private final class Disk {
    let path: String

    static let canBeMade: Bool = {
      guard getuid() == 0, let folder = try? SkepProcess.Scratch() else { return false }
      return run(["/bin/mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder.path])
        && run(["/bin/umount", folder.path])
    }()

    init(_ skep: SkepProcess, megabytes: Int = 8) throws {
      path = skep.scratch.path + "/disk"
      try #require(mkdir(path, 0o700) == 0)
      try #require(
        Self.run(["/bin/mount", "-t", "tmpfs", "-o", "size=\(megabytes)m", "tmpfs", path]))
    }

    deinit { _ = Self.run(["/bin/umount", "-l", path]) }

    /// Takes every page that is left.
    func fill() {
      let descriptor = open(path + "/ballast", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
      guard descriptor >= 0 else { return }
      defer { close(descriptor) }
      let block = [UInt8](repeating: 0x78, count: 4096)
      while write(descriptor, block, block.count) > 0 {}
    }

    private static func run(_ words: [String]) -> Bool {
      let process = Process()
      process.executableURL = URL(filePath: words[0])
      process.arguments = Array(words.dropFirst())
      process.standardError = FileHandle.nullDevice
      guard (try? process.run()) != nil else { return false }
      process.waitUntilExit()
      return process.terminationStatus == 0
    }
  }

  private static let questions = [
    ["status"], ["query", "{}"], ["export"], ["verify"], ["outbox", "list"],
  ]

  @Test(.enabled(if: Disk.canBeMade, "nothing can be mounted here"))
  func `what is held is read from a disk without room`() throws {
    var skep = try SkepProcess()
    let disk = try Disk(skep)
    skep.environment["SKEP_HOME"] = disk.path + "/home"
    try skep.importDemo()
    let exported = try skep.run("export").text
    #expect(exported.split(separator: "\n").count >= 600)
    let found = try skep.run("query", "{}").text
    // Readers leave an index behind, with which there would be nothing to make.
    let log = disk.path + "/home/127.0.0.1:9/log.sqlite"
    #expect(try Data(contentsOf: URL(filePath: log + "-wal")).isEmpty)
    for name in ["-wal", "-shm"] { #expect(unlink(log + name) == 0) }
    disk.fill()
    for question in Self.questions {
      let outcome = try skep.start(question).finish()
      #expect(outcome.code == 0, "\(question): \(outcome.stderr)")
    }
    #expect(try skep.run("export").text == exported)
    #expect(try skep.run("query", "{}").text == found)
    let out = skep.scratch.path + "/out.jsonl"
    #expect(try skep.run("export", "--out", out).code == 0)
    #expect(try String(contentsOfFile: out, encoding: .utf8) == exported)
    let refused = try skep.run("import", "-", stdin: try Vectors.goodLine())
    #expect(
      refused.code == 74 && refused.stderr.contains("disk is full"),
      "\(refused.code) \(refused.stderr)")
  }

  @Test(.enabled(if: Disk.canBeMade, "nothing can be mounted here"))
  func `what a killed writer left in its write-ahead log is read without room too`() throws {
    var skep = try SkepProcess()
    let disk = try Disk(skep)
    let home = disk.path + "/home"
    skep.environment["SKEP_HOME"] = home
    let file = try skep.scratch.file("one.jsonl", Vectors.goodLine() + "\n")
    let (running, feeder) = try skep.importAndWait(file)
    func held() throws -> String { try skep.run("export").text }
    while running.process.isRunning, try held().isEmpty { sched_yield() }
    kill(running.process.processIdentifier, SIGKILL)
    _ = try running.finish()
    feeder.process.terminate()
    _ = try feeder.finish()
    let log = home + "/archive/log.sqlite"
    #expect(unlink(log + "-shm") == 0)
    let pending = try Data(contentsOf: URL(filePath: log + "-wal"))
    #expect(!pending.isEmpty)
    disk.fill()
    let line = try Vectors.goodLine() + "\n"
    for _ in 0..<2 { #expect(try held() == line) }
    for question in Self.questions {
      let outcome = try skep.start(question).finish()
      #expect(outcome.code == 0, "\(question): \(outcome.stderr)")
    }
    #expect(try Data(contentsOf: URL(filePath: log + "-wal")) == pending)
    #expect(unlink(disk.path + "/ballast") == 0)
    #expect(try skep.run("import", file).code == 0)
    #expect(try held() == line)
  }

  @Test func `each answer of a chat says how it ended, also where nothing can be written`() throws {
    let skep = try SkepProcess()
    try skep.importDemo()
    _ = try skep.run("key", "new")
    let text = String(repeating: "x", count: 20_000)
    let lines = ["/open general"] + (0..<100).map { "\($0) \(text)" } + ["/history 2", "/channels"]
    let file = try skep.scratch.file("lines", lines.joined(separator: "\n") + "\n")
    // Writes beyond so many blocks fail, as they do on a full disk.
    let outcome = try skep.shell(
      "trap '' XFSZ; ulimit -f 1500; exec \"$0\" chat --offline --json < '\(file)'")
    let ends = try outcome.rows().filter { $0["type"] as? String == "done" }
    #expect(ends.count == lines.count, "\(outcome.stderr)")
    let failed = ends.filter { $0["ok"] as? Bool == false }
    #expect(!failed.isEmpty)
    let codes = failed.map { ($0["error"] as? [String: Any])?["code"] as? String }
    #expect(codes.allSatisfy { $0 == "store" })
    #expect(ends.suffix(2).map { $0["ok"] as? Bool } == [true, true], "\(outcome.stderr)")
  }
}
