import Foundation
import Nostr
import Testing

/// What is said to be complete, and what is said to be lacking, after runs that asked for a part only.
@Suite struct ProvedAnswerTests {
  private func end(_ skep: SkepProcess, _ filter: String) throws -> (isComplete: Bool, gaps: Int) {
    let row = try #require(try skep.run("query", filter, "--json").rows().last)
    #expect(row["type"] as? String == "end")
    let isComplete = try #require(row["complete"] as? Bool)
    let gaps = try #require(row["gaps"] as? [[String: Any]])
    #expect(isComplete == gaps.isEmpty, "\(filter): \(gaps)")
    #expect(gaps.allSatisfy { ($0["why"] as? String)?.isEmpty == false })
    #expect(isComplete == (row["as_of"] is Int), "\(filter)")
    return (isComplete, gaps.count)
  }

  private func expect(
    _ skep: SkepProcess, complete: [String], open: [String],
    _ location: SourceLocation = #_sourceLocation
  ) throws {
    for filter in complete {
      #expect(try end(skep, filter).isComplete, "\(filter)", sourceLocation: location)
    }
    for filter in open {
      #expect(try !end(skep, filter).isComplete, "\(filter)", sourceLocation: location)
    }
  }

  private func manifestGaps(_ skep: SkepProcess, _ options: String...) throws -> Int {
    let path = skep.scratch.path + "/manifest.json"
    let outcome = try skep.start(["export", "--manifest", path] + options).finish()
    #expect(outcome.code == 0, "\(outcome.stderr)")
    let data = try Data(contentsOf: URL(filePath: path))
    let manifest = try JSONSerialization.jsonObject(with: data) as? [String: Any]
    return try #require(manifest?["gaps"] as? [[String: Any]]).count
  }

  private func statusScopes(_ skep: SkepProcess) throws -> [String] {
    let row = try #require(try skep.run("status", "--json").rows().first)
    let gaps = try #require(row["gaps"] as? [[String: Any]])
    return try gaps.map { gap in
      let data = try JSONSerialization.data(withJSONObject: try #require(gap["scope"]))
      return String(decoding: data, as: UTF8.self)
    }
  }

  @Test func `what was never asked of the relay is not complete, however wide the filter`() throws {
    let skep = try SkepProcess()
    let relay = try DemoProcess(skep)
    #expect(try skep.run("mirror", relay.url, "--group", "kitchen").code == 0)
    let id = String(repeating: "1", count: 64)
    try expect(
      skep,
      complete: [
        ##"{"#h":["kitchen"],"kinds":[9]}"##, ##"{"#h":["kitchen"],"kinds":[9,7],"limit":5}"##,
      ],
      open: [
        ##"{"#h":["garden"],"kinds":[9]}"##, ##"{"#h":["garden"]}"##, #"{"kinds":[9]}"#, "{}",
        #"{"ids":["\#(id)"]}"#, ##"{"#h":["kitchen","garden"]}"##,
      ])
    #expect(try manifestGaps(skep) > 0)
    #expect(try manifestGaps(skep, "--group", "garden") > 0)
    #expect(try manifestGaps(skep, "--group", "kitchen") == 0)
    #expect(try statusScopes(skep) == [#"{"kinds":[39000]}"#])
    let chat = try skep.run("chat", "--offline", "--json", stdin: "/gaps\n/quit\n").rows()
    #expect(chat.count { $0["type"] as? String == "gap" } == 1)

    #expect(try skep.run("mirror", relay.url).code == 0)
    try expect(
      skep, complete: [##"{"#h":["garden"]}"##, ##"{"#h":["kitchen","garden"],"kinds":[9]}"##],
      open: [
        ##"{"#h":["zz"]}"##, #"{"kinds":[30023]}"#, #"{"kinds":[1059]}"#, "{}",
        #"{"ids":["\#(id)"]}"#,
      ])
    #expect(try statusScopes(skep) == [])

    #expect(try skep.run("mirror", relay.url, "--all").code == 0)
    try expect(
      skep,
      complete: [
        "{}", #"{"kinds":[9]}"#, #"{"kinds":[1059]}"#, #"{"ids":["\#(id)"]}"#, ##"{"#h":["zz"]}"##,
        #"{"since":1000}"#,
      ], open: [#"{"until":4102444800}"#])
    #expect(try manifestGaps(skep) == 0)
  }

  @Test func `what came after the end of a run that had one is not proved`() throws {
    let skep = try SkepProcess()
    let relay = try DemoProcess(skep)
    #expect(try skep.run("mirror", relay.url, "--all").code == 0)
    let dates = try skep.run("query", "{}", "--json").rows()
      .compactMap { $0["created_at"] as? Int }.sorted()
    let (from, to) = (dates[dates.count / 4], dates[dates.count / 2])
    let part = try SkepProcess()
    #expect(
      try part.run(
        "mirror", relay.url, "--all", "--since", String(from), "--until", String(to)
      ).code == 0)
    try expect(
      part, complete: [#"{"since":\#(from),"until":\#(to)}"#],
      open: [
        #"{"since":\#(to + 1)}"#, #"{"since":\#(to + 1),"until":\#(to + 500)}"#, "{}",
        #"{"since":\#(from)}"#, #"{"until":\#(to)}"#,
      ])
    #expect(try end(part, "{}").gaps == 2)
    #expect(try statusScopes(part) == ["{}", "{}"])
    #expect(try manifestGaps(part) == 2)
    #expect(try part.run("mirror", relay.url, "--all").code == 0)
    try expect(part, complete: ["{}", #"{"since":\#(to + 1)}"#], open: [])
  }

  @Test func `an archive that has no relay says so in its manifest`() throws {
    let skep = try SkepProcess()
    #expect(try skep.run("import", "-", stdin: try Vectors.goodLine()).code == 0)
    #expect(try manifestGaps(skep) == 1)
    #expect(try statusScopes(skep) == ["{}"])
    #expect(try end(skep, "{}").gaps == 1)
  }

  @Test func `proofs made while the clock was ahead are no damage`() throws {
    var skep = try SkepProcess()
    let relay = try DemoProcess(skep)
    skep.environment["SKEP_CLOCK_OFFSET"] = "8640000"
    #expect(try skep.run("mirror", relay.url, "--all").code == 0)
    skep.environment = [:]
    let told = try skep.run("verify", "--json")
    #expect(told.code == 0, "\(told.text) \(told.stderr)")
    let row = try #require(try told.rows().last)
    #expect((row["problems"] as? [Any])?.isEmpty == true)
    let notes = try #require(row["notes"] as? [String])
    #expect(notes.count == 1 && notes[0].contains("clock"), "\(notes)")
    #expect(try !end(skep, "{}").isComplete)
    #expect(try skep.run("mirror", relay.url, "--all").code == 0)
    #expect(try skep.run("verify", "--json").rows().last?["notes"] as? [String] == [])
    #expect(try end(skep, "{}").isComplete)
  }

  /// Frames that stand in the place of an event that the relay has, before its neighbours.
  static let holes = [
    #"["EVENT","ID",null]"#, #"["EVENT","ID",[]]"#, #"["EVENT","ID"]"#, #"["EVENT","ID",{"id":1"#,
    #"["EVENT","ID",{}"#, #"["EVENT","ID",{"kind":"9"}]"#, #"["EVENT",7,{}]"#, #"["EVENT","ID"#,
  ]

  @Test(arguments: holes + [""])
  func `an event that cannot be read leaves its page incomplete`(hole: String) async throws {
    let skep = try SkepProcess()
    let end = Scripted.now() - 60
    let events = try Scripted.messages(6, until: end)
    let relay = try await ScriptedRelay { frame in
      guard frame.first as? String == "REQ", let id = frame[1] as? String,
        let filter = frame[2] as? [String: Any]
      else { return [] }
      let until = filter["until"] as? Int64 ?? .max
      let page = events.filter { $0.createdAt.seconds <= until }
      let lines = page.map { event in
        if event == events[3], !hole.isEmpty { return hole.replacing("ID", with: id) }
        return #"["EVENT","\#(id)",\#(String(decoding: event.json(), as: UTF8.self))]"#
      }
      return lines + [#"["EOSE","\#(id)"]"#]
    }
    let outcome = try await skep.runAside("mirror", relay.url, "--all", "--json")
    let summary = try #require(try outcome.rows().last)
    #expect(outcome.code == (hole.isEmpty ? 0 : 4), "\(outcome.text) \(outcome.stderr)")
    #expect(summary["complete"] as? Bool == hole.isEmpty)
    let query = try #require(
      try await skep.runAside("query", "{}", "--json").rows().last)
    #expect(query["complete"] as? Bool == hole.isEmpty)
  }
}
