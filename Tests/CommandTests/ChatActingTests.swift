import Foundation
import Testing

/// What is done to messages that are there, through the program, with and without a relay.
@Suite struct ChatActingTests {
  @Test func `reactions, edits and deletions show at once and reach the relay`() throws {
    let skep = try SkepProcess()
    let relay = try DemoProcess(skep)
    _ = try skep.run("key", "new")
    #expect(try skep.run("mirror", relay.url, "--all").code == 0)
    let rows = try chat(
      skep,
      "/open general\nhello hornets\n/wait outbox\n")
    let own = try #require(rows.last { $0["text"] as? String == "hello hornets" })
    let id = try #require(own["id"] as? String)
    let other = try SkepProcess()
    func atRelay() throws -> Set<Int> {
      #expect(try other.run("mirror", relay.url, "--all").code == 0)
      let filter = ##"{"kinds":[5,7,40003],"#e":["\##(id)"]}"##
      return Set(
        try other.run("query", filter, "--json").rows().compactMap { $0["kind"] as? Int })
    }
    let changed = try chat(
      skep,
      """
      /react \(id) 🐝
      /react \(id) 🐝
      /react \(id) :nosuch:
      /edit \(id) hello wasps
      /wait outbox
      """, code: 1)
    #expect(try atRelay() == [7, 40003])
    let gone = try chat(
      skep,
      "/unreact \(id)\n/unreact \(id)\n/delete \(id)\n/edit \(id) too late\n/wait outbox\n", code: 1
    )
    #expect(try atRelay().contains(5))
    let shown = (changed + gone).filter { $0["type"] as? String == "message" }
    let reactions = shown.map { ($0["reactions"] as? [[String: Any]])?.first?["emoji"] as? String }
    #expect(reactions == ["🐝", "🐝", nil, nil])
    #expect(
      shown.map { $0["text"] as? String } == ["hello hornets", "hello wasps", "hello wasps", ""])
    #expect(shown.map { $0["edited"] as? Bool } == [false, true, true, false])
    #expect(shown.map { $0["deleted"] as? Bool } == [false, false, false, true])
    let done = (changed + gone).filter { $0["type"] as? String == "done" }
    let codes = done.map { ($0["error"] as? [String: Any])?["code"] as? String }
    #expect(
      codes == [
        nil, "already", "unknown-emoji", nil, nil, nil, "no-reaction", nil, "deleted", nil,
      ])
  }

  @Test func `what is blocked is gone from pages and search, here alone`() throws {
    let skep = try SkepProcess()
    try skep.importDemo()
    let page = try chat(skep, "/open general\n", offline: true)
    let message = try #require(page.first { $0["type"] as? String == "message" })
    let author = try #require((message["author"] as? [String: Any])?["pubkey"] as? String)
    func authors(_ rows: [[String: Any]]) -> Set<String> {
      Set(
        rows.filter { $0["type"] as? String == "message" }
          .compactMap { ($0["author"] as? [String: Any])?["pubkey"] as? String })
    }
    #expect(authors(page).contains(author))
    // A part of words that many have: who is blocked is not among those that are found.
    let words = try #require(
      (message["text"] as? String)?.split(separator: " ").last.map(String.init))
    #expect(try found(skep, words).contains(author))
    let blocked = try chat(skep, "/block \(author)\n/block\n/open general\n", offline: true)
    #expect(
      blocked.contains { $0["type"] as? String == "blocked" && $0["pubkey"] as? String == author })
    #expect(!authors(blocked).contains(author) && !authors(blocked).isEmpty)
    #expect(try !found(skep, words).contains(author))
    let later = try chat(skep, "/open general\n/unblock \(author)\n/history\n", offline: true)
    let place = try #require(later.firstIndex { $0["command"] as? String == "unblock" })
    #expect(!authors(Array(later[..<place])).contains(author))
    #expect(authors(Array(later[place...])).contains(author))
    let count = try skep.run("query", #"{"authors":["\#(author)"],"kinds":[9]}"#, "--json").rows()
    #expect((count.last?["count"] as? Int ?? 0) > 0)
  }

  /// Who wrote what a search finds.
  private func found(_ skep: SkepProcess, _ words: String) throws -> [String] {
    try skep.run("search", words, "--limit", "1000", "--json").rows()
      .compactMap { $0["author"] as? String }
  }

  private func chat(
    _ skep: SkepProcess, _ lines: String, offline: Bool = false, code: Int32 = 0
  ) throws -> [[String: Any]] {
    let arguments = ["chat", "--json"] + (offline ? ["--offline"] : [])
    let outcome = try skep.start(arguments, stdin: lines).finish()
    #expect(outcome.code == code, "\(outcome.stderr)")
    return try outcome.rows()
  }
}

/// `skep search` and `/search`, through the program.
@Suite struct SearchCommandTests {
  @Test func `search answers the same with its file, without it, and beside a chat`() throws {
    let skep = try SkepProcess()
    try skep.importDemo()
    let found = try skep.run("search", "the", "--json", "--limit", "20").rows()
    #expect(found.count == 20)
    for row in found {
      #expect(Set(row.keys).isSuperset(of: ["id", "group", "author", "created_at", "text"]))
      #expect((row["text"] as? String)?.lowercased().contains("the") == true)
    }
    let times = found.compactMap { $0["created_at"] as? Int }
    #expect(times == times.sorted(by: >))
    let chat = try skep.run("chat", "--offline", "--json", stdin: "/search the\n").rows()
    let ids = chat.filter { $0["type"] as? String == "message" }.compactMap { $0["id"] as? String }
    #expect(Array(ids.prefix(20)) == found.compactMap { $0["id"] as? String })
    let names = try FileManager.default.subpathsOfDirectory(atPath: skep.home)
    let place = try #require(names.first { $0.hasSuffix("search.sqlite") }, "\(names)")
    try FileManager.default.removeItem(atPath: skep.home + "/" + place)
    let again = try skep.run("search", "the", "--json", "--limit", "20").rows()
    #expect(again.compactMap { $0["id"] as? String } == found.compactMap { $0["id"] as? String })
    let group = try #require(found.first?["group"] as? String)
    let inGroup = try skep.run("search", "the", "--group", group, "--json").rows()
    #expect(!inGroup.isEmpty && inGroup.allSatisfy { $0["group"] as? String == group })
    #expect(try skep.run("search", "!!").code == 64)
    #expect(try skep.run("search", "nothing-says-this-word", "--json").text.isEmpty)
  }
}

/// The benchmarks that nothing else runs, on very little.
@Suite struct BenchCommandTests {
  @Test func `every benchmark of the stores gives a figure and its limit`() throws {
    let skep = try SkepProcess()
    let rows = try skep.run(
      "bench", "rebuild", "page", "export", "size", "--events", "3000", "--json"
    ).rows()
    #expect(rows.map { $0["name"] as? String } == ["rebuild", "page", "export", "size"])
    for row in rows {
      #expect((row["value"] as? Double ?? 0) > 0, "\(row)")
      #expect((row["limit"] as? Double ?? 0) > 0, "\(row)")
    }
    #expect((rows[3]["cache_ratio"] as? Double ?? 9) < 1.5)
    #expect((rows[3]["log_ratio"] as? Double ?? 9) < 1.5)
  }
}
