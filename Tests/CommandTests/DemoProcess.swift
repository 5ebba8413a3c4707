import Foundation
import Testing

/// A demo relay of this test's own, ended with the value.
final class DemoProcess {
  let url: String
  private let running: SkepProcess.Running

  init(
    _ skep: SkepProcess, port: String = "0", clockOffset: Int = 0, _ options: String...
  ) throws {
    var skep = skep
    skep.environment["SKEP_CLOCK_OFFSET"] = String(clockOffset)
    running = try skep.start(
      [
        "demo-relay", "--listen", "127.0.0.1:\(port)", "--events", "400", "--home",
        skep.scratch.path + "/demo" + options.joined(), "--json",
      ] + options)
    let line = try running.waitForLine()
    let row = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
    #expect(row?["type"] as? String == "listening")
    url = try #require(row?["url"] as? String)
  }

  var port: String { String(url.split(separator: ":").last ?? "") }

  func stop() throws {
    running.process.terminate()
    #expect(try running.finish().code == 143)
  }

  deinit { if running.process.isRunning { running.process.terminate() } }
}

extension SkepProcess {
  /// A home with a whole mirror of a demo relay that is gone.
  static func withMirror() throws -> SkepProcess {
    let skep = try SkepProcess()
    let relay = try DemoProcess(skep)
    #expect(try skep.run("mirror", relay.url, "--all").code == 0)
    try relay.stop()
    return skep
  }

  /// Fills a community with a made-up one, as if from an archive: 600 events, the group `general`
  /// among them.
  /// An import from a pipe that stays open after `file`, so that it waits for more.
  func importAndWait(
    _ file: String, _ options: String...
  ) throws -> (running: Running, feeder: Running) {
    let pipe = scratch.path + "/pipe"
    #expect(mkfifo(pipe, 0o600) == 0)
    let feeder = try start(
      ["-c", "exec 3>\"$0\"; cat \"$1\" >&3; exec sleep 60", pipe, file], program: "/bin/sh")
    return (try start(["import", pipe] + options), feeder)
  }

  func importDemo(community: String = "ws://127.0.0.1:9") throws {
    let demo = scratch.path + "/made-up"
    let relay = try start([
      "demo-relay", "--listen", "127.0.0.1:0", "--events", "600", "--home", demo, "--json",
    ])
    try relay.waitForLine()
    relay.process.terminate()
    _ = try relay.finish()
    #expect(
      try run("import", demo + "/demo-relay-1.jsonl", "--community", community).code == 0)
  }
}
