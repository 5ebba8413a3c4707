import Foundation
import Glibc
import Testing

/// What a command writes never takes the place of what it reads, nor of what Skep keeps.
@Suite struct OutputPathTests {
  enum Way: CaseIterable { case itself, symbolicLink, hardLink }

  @Test(arguments: Way.allCases)
  func `the rejects never replace the file that is read`(way: Way) throws {
    let skep = try SkepProcess()
    let content = try Vectors.goodLine() + "\nno JSON\n"
    let file = try skep.scratch.file("in.jsonl", content)
    let other = skep.scratch.path + "/other"
    switch way {
    case .itself: break
    case .symbolicLink: #expect(symlink(file, other) == 0)
    case .hardLink: #expect(link(file, other) == 0)
    }
    let rejects = way == .itself ? file : other
    let outcome = try skep.run("import", file, "--rejects", rejects)
    #expect(outcome.code == 64 && outcome.stderr.contains("the file that is read"))
    let piped = try skep.shell("\"$0\" import - --rejects '\(rejects)' < '\(file)'")
    #expect(piped.code == 64)
    #expect(try String(contentsOfFile: file, encoding: .utf8) == content)
    #expect(try skep.run("import", file, "--rejects", skep.scratch.path + "/elsewhere").code == 1)
  }

  @Test func `nothing is written among the files of a community or the keys`() throws {
    let skep = try SkepProcess()
    _ = try skep.run("import", "-", stdin: try Vectors.goodLine())
    _ = try skep.run("key", "new")
    let log = skep.home + "/archive/log.sqlite"
    let before = try Data(contentsOf: URL(filePath: log))
    let alias = skep.scratch.path + "/alias"
    #expect(symlink(log, alias) == 0)
    for path in [
      log, skep.home + "/archive/new", skep.home + "/archive/cache/new", alias,
      skep.home + "/../home/./archive/x", skep.home + "/identity/default.key",
    ] {
      for arguments in [["export", "--out", path], ["export", "--manifest", path]] {
        let outcome = try skep.start(arguments).finish()
        #expect(outcome.code == 64 && outcome.stderr.contains("files of Skep's own"), "\(path)")
      }
      #expect(try skep.run("import", "/dev/null", "--rejects", path).code == 64)
      // Another home's files are no less needed.
      let elsewhere = skep.scratch.path + "/elsewhere"
      guard !path.contains("identity") else { continue }
      #expect(
        try skep.run("import", "/dev/null", "--home", elsewhere, "--rejects", path).code == 64)
    }
    #expect(try Data(contentsOf: URL(filePath: log)) == before)
    #expect(try skep.run("key", "show").code == 0)
    #expect(try skep.run("export", "--out", skep.home + "/export.jsonl").code == 0)
  }

  @Test func `a hyphen is stdout, and an empty name none`() throws {
    let skep = try SkepProcess()
    _ = try skep.run("import", "-", stdin: try Vectors.goodLine())
    let plain = try skep.run("export").text
    #expect(!plain.isEmpty)
    let file = skep.scratch.path + "/out"
    let folder = skep.scratch.path
    let hyphen = try skep.shell("cd '\(folder)'; \"$0\" export --out -")
    #expect(hyphen.code == 0 && hyphen.text == plain)
    let manifest = try skep.shell("cd '\(folder)'; \"$0\" export --out out --manifest -")
    #expect(manifest.code == 0)
    #expect(try manifest.rows().last?["count"] as? Int == 1)
    #expect(try String(contentsOfFile: file, encoding: .utf8) == plain)
    #expect(access(folder + "/-", F_OK) != 0)
    for arguments in [
      ["export", "--manifest", "-"], ["export", "--out", ""], ["export", "--manifest", ""],
      ["import", "/dev/null", "--rejects", ""], ["import", "/dev/null", "--rejects", "-"],
    ] {
      #expect(try skep.start(arguments).finish().code == 64, "\(arguments)")
    }
  }

  @Test(arguments: [
    "wss://..", "wss://.", "wss://..:443", "wss://...", "wss://../x", "wss://-a", "wss://256.1.1.1",
  ])
  func `an address that is none makes no folder`(address: String) throws {
    let skep = try SkepProcess()
    #expect(try skep.run("import", "/dev/null", "--community", address).code == 64)
    #expect(try skep.run("mirror", address).code == 64)
    #expect(access(skep.scratch.path + "/log.sqlite", F_OK) != 0)
    #expect(access(skep.home, F_OK) != 0)
  }

  @Test(arguments: ["identity", "default", "archive"])
  func `a community called as something of the home's has a folder and a key of its own`(
    host: String
  ) throws {
    let skep = try SkepProcess()
    let (own, other) = (try skep.run("key", "new").text, "wss://\(host)")
    _ = try skep.run("import", "/dev/null")
    #expect(
      try skep.run("import", "-", "--community", other, stdin: try Vectors.goodLine()).code == 0)
    #expect(access(skep.home + "/\(host):443/log.sqlite", F_OK) == 0)
    #expect(access(skep.home + "/identity/log.sqlite", F_OK) != 0)
    #expect(try skep.run("export", "--community", "archive").text.isEmpty)
    #expect(try !skep.run("export", "--community", other).text.isEmpty)
    #expect(try skep.run("key", "new", "--community", other).code == 0)
    #expect(try skep.run("key", "show").text == own)
    #expect(try skep.run("key", "show", "--community", other).text != own)
  }
}
