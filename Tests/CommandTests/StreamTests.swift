import Foundation
import Glibc
import Testing

@Suite struct StreamTests {
  @Test func `a closed stdin is an unreadable input, not one without an end`() throws {
    let skep = try SkepProcess()
    #expect(try skep.shell("exec timeout 20 \"$0\" import - <&-").code == 74)
    #expect(try skep.shell("exec timeout 20 \"$0\" verify - <&-").code == 74)
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
}
