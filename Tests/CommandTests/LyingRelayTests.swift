import Foundation
import Testing

/// What a relay does wrong is told of by every later process.
@Suite struct LyingRelayTests {
  /// Answers each REQ with a page that holds one valid event, and four things that are wrong.
  private static func relay() async throws -> ScriptedRelay {
    let good = try Vectors.goodLine()
    let swapped = good.replacingOccurrences(of: #""content":""#, with: #""content":"not "#)
    return try await ScriptedRelay { frame in
      guard frame.first as? String == "REQ", let id = frame[1] as? String,
        let filter = frame[2] as? [String: Any]
      else { return [] }
      // All that it holds is of kind 1; a filter for other kinds did not ask for it.
      let isAsked = (filter["kinds"] as? [Int])?.contains(1) ?? true
      let isFirstPage = filter["until"] == nil
      return [
        #"["EVENT","nobody-opened-this",\#(good)]"#, #"["EVENT"]"#, "not JSON at all",
        isAsked && !isFirstPage ? nil : #"["EVENT","\#(id)",\#(good)]"#,
        isAsked && isFirstPage ? #"["EVENT","\#(id)",\#(swapped)]"# : nil,
        #"["EOSE","\#(id)"]"#,
      ].compactMap { $0 }
    }
  }

  @Test func `lies are counted under their relay, and a later status tells of them`() async throws {
    let skep = try SkepProcess()
    let relay = try await Self.relay()
    for options in [[], ["--all"]] {
      let mirror = try skep.start(["mirror", relay.url, "--json"] + options).finish()
      #expect([0, 4].contains(mirror.code), "\(mirror.stderr)")
    }
    let status = try #require(try skep.run("status", "--json").rows().first)
    let row = try #require((status["relays"] as? [[String: Any]])?.first)
    let faults = try #require(row["faults"] as? [String: Int])
    #expect((faults["unknown-subscription"] ?? 0) > 0)
    #expect((faults["malformed-frame"] ?? 0) >= 2 * (faults["unknown-subscription"] ?? 0))
    #expect((faults["foreign-event"] ?? 0) > 0)
    #expect(((row["rejected"] as? [String: Int])?["id"] ?? 0) > 0)
    let told = try skep.run("status").text
    for reason in faults.keys { #expect(told.contains(reason), "\(reason) in \(told)") }
    let again = try skep.run("chat", "--offline", "--json", stdin: "/status\n/quit\n").rows()
    let chat = try #require(again.first { $0["type"] as? String == "status" })
    #expect((chat["relays"] as? [[String: Any]])?.first?["faults"] as? [String: Int] == faults)
  }

  @Test func `an honest relay has no faults`() async throws {
    let skep = try SkepProcess()
    let relay = try await ScriptedRelay { frame in
      guard frame.first as? String == "REQ", let id = frame[1] as? String else { return [] }
      return [#"["EOSE","\#(id)"]"#]
    }
    let mirror = try skep.run("mirror", relay.url, "--json")
    #expect(mirror.code == 0, "\(mirror.text) \(mirror.stderr)")
    let status = try #require(try skep.run("status", "--json").rows().first)
    let row = try #require((status["relays"] as? [[String: Any]])?.first)
    #expect(row["faults"] as? [String: Int] == [:])
  }
}
