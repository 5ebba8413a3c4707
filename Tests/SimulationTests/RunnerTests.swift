import Foundation
import Nostr
import Testing

/// The program itself, in processes of its own.
@Suite struct RunnerTests {
  @Test(arguments: ["capped-relay", "flaky-links", "calm"])
  func `the same seed gives the same line and trace in two processes`(scenario: String) throws {
    let first = Simulator.temporaryFile("trace")
    let second = first + "-again"
    defer {
      try? FileManager.default.removeItem(atPath: first)
      try? FileManager.default.removeItem(atPath: second)
    }
    let one = try Simulator.run("run", scenario, "--seed", "9", "--json", "--trace", first)
    let two = try Simulator.run("run", scenario, "--seed", "9", "--json", "--trace", second)
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
    let caught = try Simulator.run(
      "run", "capped-relay", "--seed", "3", "--json", "--flaw", "loses-events")
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
    #expect(try Simulator.run(arguments).code == 64)
  }

  @Test func `a soak runs each seed once and says how fast`() throws {
    let soak = try Simulator.run(
      "soak", "calm", "capped-relay", "--seeds", "1..3", "--threads", "2", "--json")
    #expect(soak.code == 0, "\(soak.talk)")
    let lines = soak.data.split(separator: "\n")
    #expect(lines.count == 7)
    #expect(lines.last?.contains("\"worlds\":6,\"failed\":0") == true)
  }

  @Test func `a storm in a file is run, and a malformed one is refused`() throws {
    let kept = try Simulator.run(
      storm: "# remark\nscenario swarm\nseed 4\nminutes 2\nwrites 3\n", "--json")
    #expect(kept.code == 0 && kept.data.contains("\"scenario\":\"swarm\",\"seed\":4"))
    let refused = try Simulator.run(storm: "scenario swarm\nseed 4\nminutes many\n")
    #expect(refused.code == 64 && refused.talk.contains("minutes is a number from 0 to"))
  }

  @Test func `the scenarios are listed`() throws {
    let list = try Simulator.run("list")
    #expect(list.code == 0)
    #expect(list.data.split(separator: "\n").count >= 20)
    #expect(list.data.contains("capped-relay") && list.data.contains("swarm"))
  }

  @Test func `kept seeds are run, remarks are skipped`() throws {
    let file = Simulator.temporaryFile("seeds")
    defer { try? FileManager.default.removeItem(atPath: file) }
    try Data("# remark\ncapped-relay 1 # why\n\nflaky-links 2\n".utf8).write(
      to: URL(filePath: file))
    let kept = try Simulator.run("kept", file, "--json")
    #expect(kept.code == 0)
    #expect(kept.lines.count == 3)
    #expect(try kept.worlds().map(\.seed).sorted() == [1, 2])
    try Data("capped-relay\n".utf8).write(to: URL(filePath: file))
    #expect(try Simulator.run("kept", file).code == 64)
  }
}
