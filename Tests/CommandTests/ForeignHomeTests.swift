import Foundation
import Glibc
import Testing

/// What may not be read is not called empty.
@Suite(
  .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/setpriv") && getuid() == 0))
struct ForeignHomeTests {
  /// Runs the program as somebody who owns nothing here.
  private struct Stranger {
    let skep: SkepProcess
    let program: String
    let outputs: SkepProcess.Scratch

    init(_ skep: SkepProcess) throws {
      self.skep = skep
      outputs = try SkepProcess.Scratch()
      program = outputs.path + "/skep"
      // Copied by another process: a neighbour that is started meanwhile would inherit the file while
      // it is written to, and what is written to cannot be started.
      let copied = try skep.start([SkepProcess.binary, program], program: "/bin/cp").finish()
      try #require(copied.code == 0, "\(copied.stderr)")
      try #require(chmod(program, 0o755) == 0 && chmod(outputs.path, 0o755) == 0)
      try #require(chmod(skep.scratch.path, 0o755) == 0)
    }

    func run(_ arguments: [String]) throws -> SkepProcess.Outcome {
      let who = ["--reuid", "65534", "--regid", "65534", "--clear-groups", program]
      return try skep.start(
        who + arguments, program: "/usr/bin/setpriv", outputFolder: outputs.path
      ).finish()
    }
  }

  private static let commands: [[String]] = [
    ["status"], ["query", "{}"], ["key", "show"], ["import", "/dev/null"], ["doctor"], ["verify"],
    ["export"], ["outbox"], ["chat", "--offline"], ["relay", "list"],
  ]

  @Test(arguments: commands)
  func `a home that may not be read is not called empty`(command: [String]) throws {
    let skep = try SkepProcess()
    _ = try skep.run("import", "-", stdin: try Vectors.goodLine())
    let stranger = try Stranger(skep)
    #expect(chmod(skep.home, 0o700) == 0)
    let outcome = try stranger.run(command)
    #expect(outcome.code == 74)
    #expect(outcome.stderr.contains("permission denied") && outcome.stderr.contains(skep.home))
  }

  @Test func `a community that may not be read is not called unknown`() throws {
    let skep = try SkepProcess()
    _ = try skep.run("import", "-", stdin: try Vectors.goodLine())
    let stranger = try Stranger(skep)
    #expect(chmod(skep.home, 0o755) == 0 && chmod(skep.home + "/archive", 0o700) == 0)
    for command in [["status"], ["query", "{}"], ["verify"]] {
      let outcome = try stranger.run(command)
      #expect(outcome.code == 74, "\(outcome.stderr)")
      #expect(outcome.stderr.contains("/archive") && outcome.stderr.contains("ermission denied"))
    }
  }

  @Test(arguments: [0o700, 0o755])
  func `a key that may not be read is not called missing`(folder: mode_t) throws {
    let skep = try SkepProcess()
    _ = try skep.run("key", "new")
    let stranger = try Stranger(skep)
    #expect(chmod(skep.home, 0o755) == 0 && chmod(skep.home + "/identity", folder) == 0)
    let outcome = try stranger.run(["key", "show"])
    #expect(outcome.code == 77)
    #expect(outcome.stderr.contains("permission denied") && outcome.stderr.contains("default.key"))
    #expect(try stranger.run(["doctor"]).code == 77)
  }
}
