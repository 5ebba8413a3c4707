import Foundation
import Glibc
import Testing

@testable import skep_cli

@Suite struct StreamTests {
  @Test func `a closed stdin is an unreadable input, not one without an end`() throws {
    let skep = try SkepProcess()
    #expect(try skep.shell("exec timeout 20 \"$0\" import - <&-").code == 74)
    #expect(try skep.shell("exec timeout 20 \"$0\" verify - <&-").code == 74)
  }

  @Test(arguments: [["verify", "-", "--json"], ["import", "-", "--json"], ["chat", "--offline"]])
  func `half a line before a stop is no line`(arguments: [String]) throws {
    let skep = try SkepProcess()
    _ = try skep.run("key", "new")
    _ = try skep.run("import", "-", stdin: Vectors.goodLine())
    let path = skep.scratch.path + "/pipe"
    #expect(mkfifo(path, 0o600) == 0)
    // Opened for both, so that neither side waits for the other and the reader sees no end.
    let pipe = open(path, O_RDWR | O_CLOEXEC)
    defer { close(pipe) }
    let running = try skep.start(
      [
        "-c", "exec \"$0\" \(arguments.joined(separator: " ")) < '\(path)'",
        SkepProcess.binary,
      ],
      program: "/bin/sh")
    let half = Array("/open garden\nhalf a line".utf8)
    let given = arguments[0] == "chat" ? half : Array((try Vectors.goodLine() + "\n{\"half").utf8)
    #expect(write(pipe, given, given.count) == given.count)
    var waiting: Int32 = 1
    while running.process.isRunning, waiting > 0 {
      #expect(ioctl(pipe, UInt(FIONREAD), &waiting) == 0)
      sched_yield()
    }
    running.process.terminate()
    let outcome = try running.finish()
    #expect(outcome.code == 143)
    #expect(!outcome.text.contains("half"))
    #expect(!outcome.text.contains(#""verdict":"rejected""#))
    #expect(try !skep.run("outbox", "list", "--all", "--json").text.contains("half"))
  }

  @Test func `a closed stdout is an error of the disk, and a closed stderr none`() throws {
    let skep = try SkepProcess()
    #expect(try skep.shell("exec timeout 20 \"$0\" --help >&-").code == 74)
    let file = try skep.scratch.file("in.jsonl", try Vectors.goodLine() + "\nno JSON\n")
    #expect(try skep.shell("exec timeout 20 \"$0\" import '\(file)' 2>&- <&-").code == 1)
    #expect(try skep.run("verify").code == 0)
  }

  @Test(arguments: ["--out", "--manifest"])
  func `an export to what is no file leaves it what it is`(option: String) throws {
    let skep = try SkepProcess()
    _ = try skep.run("import", "-", stdin: Vectors.goodLine())
    let pipe = skep.scratch.path + "/pipe"
    #expect(mkfifo(pipe, 0o600) == 0)
    let outcome = try skep.shell(
      "timeout 20 cat '\(pipe)' & timeout 20 \"$0\" export \(option) '\(pipe)' >&2; wait")
    #expect(!outcome.text.isEmpty)
    var status = stat()
    #expect(lstat(pipe, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO)
  }

  @Test(arguments: [true, false])
  func `an export to a link replaces or makes what the link names`(isThere: Bool) throws {
    let skep = try SkepProcess()
    _ = try skep.run("import", "-", stdin: Vectors.goodLine())
    let file = try skep.scratch.file("file", "old")
    if !isThere { try FileManager.default.removeItem(atPath: file) }
    let link = skep.scratch.path + "/link"
    #expect(symlink("file", link) == 0)
    #expect(try skep.run("export", "--out", link).code == 0)
    #expect(try String(contentsOfFile: file, encoding: .utf8).hasPrefix("{"))
    var status = stat()
    #expect(lstat(link, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
  }

  @Test func `an export that replaces a private file is as private`() throws {
    let skep = try SkepProcess()
    _ = try skep.run("import", "-", stdin: Vectors.goodLine())
    let file = try skep.scratch.file("file", "old")
    #expect(chmod(file, 0o600) == 0)
    #expect(try skep.run("export", "--out", file).code == 0)
    var status = stat()
    #expect(stat(file, &status) == 0 && status.st_mode & 0o777 == 0o600)
  }

  @Test func `an export that is not finished leaves nothing, whatever ends it`() throws {
    let skep = try SkepProcess()
    let path = skep.scratch.path + "/out/whole"
    let folder = skep.scratch.path + "/out"
    #expect(mkdir(folder, 0o700) == 0)
    func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: folder) }
    let file = try AtomicFile(path)
    try file.write([UInt8](repeating: 0x61, count: 3 << 20))
    // A kill at this point has nothing to clean up.
    #expect(try names().isEmpty)
    try file.finish()
    #expect(try names() == ["whole"])
    #expect(try Data(contentsOf: URL(filePath: path)).count == 3 << 20)
  }

  @Test func `what dead processes left of an export is swept by the next one`() throws {
    let skep = try SkepProcess()
    _ = try skep.run("import", "-", stdin: Vectors.goodLine())
    let dead = try skep.start(["--version"])
    _ = try dead.finish()
    let left = try skep.scratch.file("o.jsonl.part-\(dead.process.processIdentifier)", "left")
    let living = try skep.scratch.file("o.jsonl.part-\(getpid())", "at work")
    let other = try skep.scratch.file("p.jsonl.part-\(dead.process.processIdentifier)", "another")
    let out = skep.scratch.path + "/o.jsonl"
    #expect(try skep.run("export", "--out", out).code == 0)
    #expect(access(left, F_OK) != 0 && access(living, F_OK) == 0 && access(other, F_OK) == 0)
  }

  @Test func `an export and its manifest cannot be one file`() throws {
    let skep = try SkepProcess()
    _ = try skep.run("import", "-", stdin: Vectors.goodLine())
    let file = skep.scratch.path + "/m1"
    let link = skep.scratch.path + "/link"
    #expect(symlink("m1", link) == 0)
    for isThere in [false, true] {
      if isThere { _ = try skep.scratch.file("m1", "kept") }
      for other in [file, link, skep.scratch.path + "/./m1"] {
        let refused = try skep.run("export", "--out", file, "--manifest", other)
        #expect(refused.code == 64 && refused.stderr.contains("same file"))
      }
    }
    #expect(try String(contentsOfFile: file, encoding: .utf8) == "kept")
    #expect(try skep.run("export", "--out", file, "--manifest", file + "2").code == 0)
  }
}
