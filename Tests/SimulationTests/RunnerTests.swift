import Foundation
import Nostr
import Testing

/// The program itself, in processes of its own.
@Suite struct RunnerTests {
  private struct Finished {
    let code: Int32
    let data: String
    let talk: String
  }

  /// The program that was built beside these tests.
  private static var program: URL {
    let tests = URL(filePath: CommandLine.arguments[0])
    return tests.deletingLastPathComponent().appending(path: "skep-sim")
  }

  private func run(_ arguments: String...) throws -> Finished {
    let process = Process()
    let data = Pipe()
    let talk = Pipe()
    process.executableURL = RunnerTests.program
    process.arguments = arguments
    process.standardOutput = data
    process.standardError = talk
    try process.run()
    let output = data.fileHandleForReading.readDataToEndOfFile()
    let errors = talk.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return Finished(
      code: process.terminationStatus, data: String(decoding: output, as: UTF8.self),
      talk: String(decoding: errors, as: UTF8.self))
  }

  @Test(arguments: ["capped-relay", "flaky-links", "calm"])
  func `the same seed gives the same line and trace in two processes`(scenario: String) throws {
    let first = FileManager.default.temporaryDirectory.appending(path: "trace-\(UUID())").path()
    let second = first + "-again"
    defer {
      try? FileManager.default.removeItem(atPath: first)
      try? FileManager.default.removeItem(atPath: second)
    }
    let one = try run("run", scenario, "--seed", "9", "--json", "--trace", first)
    let two = try run("run", scenario, "--seed", "9", "--json", "--trace", second)
    #expect(one.code == 0 && two.code == 0)
    #expect(one.data == two.data)
    let trace = try Data(contentsOf: URL(filePath: first))
    #expect(try trace == Data(contentsOf: URL(filePath: second)))
    let line = try JSONValue.parse(Array(one.data.utf8).dropLast())
    #expect(line["scenario"]?.string == Text(scenario) && line["seed"]?.int == 9)
    #expect(line["verdict"]?.string == "pass" && line["faults"]?.members != nil)
    #expect(line["steps"]?.int ?? 0 > 0 && line["virtual_seconds"]?.int ?? 0 > 0)
    #expect(line["trace_hash"]?.string?.count == 64)
  }

  @Test func `a broken rule exits with 2, tells the last steps and how to replay`() throws {
    let caught = try run("run", "capped-relay", "--seed", "3", "--json", "--flaw", "loses-events")
    #expect(caught.code == 2)
    #expect(caught.data.contains("\"verdict\":\"safety\""))
    #expect(caught.talk.contains("replay: skep-sim run capped-relay --seed 3"))
  }

  @Test(arguments: [
    ["run", "nothing", "--seed", "1"], ["run", "capped-relay", "--seed", "x"],
    ["run", "capped-relay", "--seed", "-1"], ["run", "capped-relay"], ["run"], [],
    ["run", "capped-relay", "--seed", "1", "--wrong"], ["list", "--seed", "1"],
    ["shrink", "capped-relay", "--seed", "1"], ["shrink", "swarm"], ["kept", "/nonexistent"],
    ["run", "capped-relay", "--seed", "1", "--flaw", "none"],
    ["run", "capped-relay", "--seed", "18446744073709551616"], ["run", "/nonexistent"],
    ["run", "calm", "--seed", "1", "--flaw", "loses-events"], ["soak", "--minutes", "0"],
    ["soak", "--seeds", "5..1"], ["soak", "--seeds", "5"], ["soak", "nothing"],
    ["soak", "--minutes", "1", "--seeds", "1..2"], ["soak", "--threads", "0"],
  ])
  func `what is not understood is refused as usage`(arguments: [String]) throws {
    let process = Process()
    process.executableURL = RunnerTests.program
    process.arguments = arguments
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    #expect(process.terminationStatus == 64)
  }

  @Test func `a soak runs each seed once and says how fast`() throws {
    let soak = try run(
      "soak", "calm", "capped-relay", "--seeds", "1..3", "--threads", "2", "--json")
    #expect(soak.code == 0, "\(soak.talk)")
    let lines = soak.data.split(separator: "\n")
    #expect(lines.count == 7)
    #expect(lines.last?.contains("\"worlds\":6,\"failed\":0") == true)
  }

  @Test func `a storm in a file is run, and a malformed one is refused`() throws {
    let file = FileManager.default.temporaryDirectory.appending(path: "\(UUID()).storm").path()
    defer { try? FileManager.default.removeItem(atPath: file) }
    try Data("# remark\nscenario swarm\nseed 4\nminutes 2\nwrites 3\n".utf8).write(
      to: URL(filePath: file))
    let kept = try run("run", file, "--json")
    #expect(kept.code == 0 && kept.data.contains("\"scenario\":\"swarm\",\"seed\":4"))
    try Data("scenario swarm\nseed 4\nminutes many\n".utf8).write(to: URL(filePath: file))
    let refused = try run("run", file)
    #expect(refused.code == 64 && refused.talk.contains("minutes is a number from 0 to"))
  }

  @Test func `the scenarios are listed`() throws {
    let list = try run("list")
    #expect(list.code == 0)
    #expect(list.data.split(separator: "\n").count >= 20)
    #expect(list.data.contains("capped-relay") && list.data.contains("swarm"))
  }

  @Test func `kept seeds are run, remarks are skipped`() throws {
    let file = FileManager.default.temporaryDirectory.appending(path: "seeds-\(UUID())").path()
    defer { try? FileManager.default.removeItem(atPath: file) }
    try Data("# remark\ncapped-relay 1 # why\n\nflaky-links 2\n".utf8).write(
      to: URL(filePath: file))
    let kept = try run("kept", file, "--json")
    #expect(kept.code == 0)
    #expect(kept.data.split(separator: "\n").count == 2)
    try Data("capped-relay\n".utf8).write(to: URL(filePath: file))
    #expect(try run("kept", file).code == 64)
  }
}
