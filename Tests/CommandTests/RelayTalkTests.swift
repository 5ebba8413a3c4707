import Foundation
import Nostr
import Platform
import Testing

/// What relays say, and what is shown of it.
@Suite struct RelayTalkTests {
  private static let hostile = #"\u001b]52;c;aGk=\u0007\u009b2J forged\u202e"#

  private static func isHarmless(_ text: String) -> Bool {
    text.unicodeScalars.allSatisfy {
      $0 == "\n" || $0.value >= 0x20 && !(0x7f..<0xa0).contains($0.value) && $0.value != 0x202e
    }
  }

  /// Refuses every request in words that would take over a terminal.
  private static func refusing(_ prefix: String) async throws -> ScriptedRelay {
    try await ScriptedRelay(greeting: [#"["NOTICE","said \#(hostile)"]"#]) { frame in
      guard frame.first as? String == "REQ", let id = frame[1] as? String else { return [] }
      return [#"["CLOSED","\#(id)","\#(prefix): \#(hostile)"]"#]
    }
  }

  @Test(arguments: ["auth-required", "restricted", "error", "blocked"])
  func `no word of a relay's reaches the terminal as it is`(prefix: String) async throws {
    let skep = try SkepProcess()
    let relay = try await Self.refusing(prefix)
    let mirror = try skep.run("mirror", relay.url, "--verbose")
    #expect([1, 4].contains(mirror.code), "\(mirror.code)")
    #expect(Self.isHarmless(mirror.text), "\(mirror.text.debugDescription)")
    #expect(Self.isHarmless(mirror.stderr), "\(mirror.stderr.debugDescription)")
    let chat = try skep.run("chat", stdin: "/wait 1\n/status\n/gaps\n/sync\n")
    #expect(Self.isHarmless(chat.text), "\(chat.text.debugDescription)")
    #expect(Self.isHarmless(try skep.run("status").text))
  }

  @Test func `status tells what a relay said and what is next`() async throws {
    let skep = try SkepProcess()
    let relay = try await Self.refusing("restricted")
    _ = try skep.run("mirror", relay.url)
    let lines = try skep.run("chat", stdin: "/wait 1\n/status\n").text.split(separator: "\n")
    #expect(lines.contains { $0.contains("it said") && $0.contains("forged") })
    #expect(lines.contains { $0.contains("next") })
    let rows = try skep.run("chat", "--offline", "--json", stdin: "/status\n").rows()
    let row = try #require((rows.first?["relays"] as? [[String: Any]])?.first)
    #expect(row["next"] as? String == "nothing until /online")
  }

  @Test(arguments: [[], ["--follow"]])
  func `a run that waits for a relay is ended by a signal, cleanly`(options: [String]) async throws
  {
    let skep = try SkepProcess()
    // Waited for on this thread: others of the pool may be busy with programs.
    let asked = DispatchSemaphore(value: 0)
    func waitUntilAsked() { asked.wait() }
    let relay = try await ScriptedRelay { frame in
      if frame.first as? String == "REQ" { asked.signal() }
      return []
    }
    let running = try skep.start(["mirror", relay.url, "--json"] + options)
    waitUntilAsked()
    running.process.interrupt()
    let outcome = try running.finish()
    #expect(outcome.code == 130)
    let told = try #require(try outcome.rows().last)
    #expect(told["type"] as? String == "summary" && told["complete"] as? Bool == false)
    #expect(try skep.run("verify").code == 0)
  }
}
