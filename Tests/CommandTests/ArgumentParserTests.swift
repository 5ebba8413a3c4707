import Nostr
import Testing

@testable import skep_cli

@Suite struct ArgumentParserTests {
  private let parser = ArgumentParser(commands: [
    CommandSpec(
      "copy", "URL", count: 1...1,
      options: [
        .flag("all", "everything"), .value("group", "ID", "a group", repeats: true),
        .value("since", "T", "a time"),
      ], about: "copies", examples: []),
    CommandSpec(
      "box", about: "a box", examples: [],
      verbs: [
        CommandSpec("list", options: [.flag("full", "more")], about: "", examples: []),
        CommandSpec("take", "ID", count: 1...1, about: "", examples: []),
      ], defaultVerb: "list"),
  ])

  private func message(_ words: [String]) -> String {
    do throws(UsageError) {
      _ = try parser.parse(words)
      return "understood"
    } catch {
      return error.message
    }
  }

  @Test(arguments: [
    ["--json", "--home", "h", "copy", "u"], ["copy", "u", "--json", "--home=h"],
    ["copy", "--home", "h", "u", "--json"],
  ])
  func `common options stand before or after the command`(words: [String]) throws {
    let parsed = try parser.parse(words)
    #expect(parsed.command == ["copy"])
    #expect(parsed.operands == ["u"])
    #expect(parsed.value("home") == "h")
    #expect(parsed.wantsJSON)
  }

  @Test func `a value may be attached or follow`() throws {
    let parsed = try parser.parse(["copy", "--group=a=b", "u", "--group", "c"])
    #expect(parsed.values("group") == ["a=b", "c"])
  }

  @Test func `after two dashes everything is an operand`() throws {
    #expect(try parser.parse(["copy", "--", "--all"]).operands == ["--all"])
  }

  @Test func `a single dash is an operand`() throws {
    #expect(try parser.parse(["copy", "-"]).operands == ["-"])
  }

  @Test(arguments: [
    (["copy", "u", "--sicne", "1"], "did you mean --since?"),
    (["copy", "u", "--jsn"], "did you mean --json?"),
    (["cpoy"], "did you mean copy?"),
    (["box", "lits"], "did you mean list?"),
  ])
  func `a slip of the finger gets a suggestion`(words: [String], suggestion: String) {
    #expect(message(words).contains(suggestion))
  }

  @Test func `a word that is near to nothing gets no suggestion`() {
    #expect(!message(["copy", "u", "--zzzzzz"]).contains("did you mean"))
  }

  @Test(arguments: [
    ["copy"], ["copy", "a", "b"], ["copy", "u", "--all=1"], ["copy", "u", "--since"],
    ["copy", "u", "--since", "--all"], ["copy", "u", "--since", "1", "--since", "2"],
    ["box", "take"], ["--all", "copy", "u"], ["copy", "u", "-x"],
  ])
  func `what is not in the table is refused`(words: [String]) {
    #expect(message(words) != "understood")
  }

  @Test func `a verb that was left out is the usual one, with its options`() throws {
    let parsed = try parser.parse(["box", "--full"])
    #expect(parsed.command == ["box", "list"])
    #expect(parsed.has("full"))
  }

  @Test func `help is given whatever else is wrong with the operands`() throws {
    #expect(try parser.parse(["copy", "--help"]).wantsHelp)
  }

  @Test func `nothing at all is an invocation of no command`() throws {
    #expect(try parser.parse([]) == Invocation())
  }

  @Test func `every command has two examples that begin with its name`() {
    for spec in CommandTable.specs {
      for one in [spec] + spec.verbs {
        #expect(one.examples.count == 2, "\(spec.name) \(one.name)")
        #expect(one.examples.allSatisfy { $0.contains("skep \(spec.name)") }, "\(spec.name)")
      }
    }
  }

  @Test func `the examples are understood`() throws {
    let parser = ArgumentParser(commands: CommandTable.specs)
    for spec in CommandTable.specs {
      for example in (spec.examples + spec.verbs.flatMap(\.examples)) where !example.contains("'") {
        let words = example.split(separator: " ").map(String.init)
        guard let start = words.firstIndex(of: "skep") else { continue }
        let own = words[(start + 1)...].prefix { !["<", ">", "|"].contains($0) }
        #expect(throws: Never.self, "\(example)") { try parser.parse(Array(own)) }
      }
    }
  }
}

@Suite struct TimeWordTests {
  @Test(arguments: [
    ("30s", 30), ("5m", 300), ("2h", 7200), ("7d", 604_800), ("12", 12), ("0s", 0),
  ])
  func `durations have a unit or are seconds`(word: String, seconds: Int) {
    #expect(TimeWords.duration(word) == .seconds(seconds))
  }

  @Test(arguments: ["", "s", "-5s", "5x", "1.5h", "5 m", "٣s", "9223372036854775807d"])
  func `other words are no duration`(word: String) {
    #expect(TimeWords.duration(word) == nil)
  }

  @Test(arguments: [
    ("1700000000", 1_700_000_000), ("2023-11-14T22:13:20Z", 1_700_000_000),
    ("2023-11-14T23:13:20+01:00", 1_700_000_000), ("2023-11-14T22:13:20.75Z", 1_700_000_000),
    ("1970-01-01", 0), ("2024-02-29", 1_709_164_800), ("2000-03-01T00:00:00Z", 951_868_800),
  ])
  func `times are Unix seconds or RFC 3339`(word: String, seconds: Int64) {
    #expect(TimeWords.time(word)?.seconds == seconds)
  }

  @Test(arguments: [
    "", "-1", "2023-02-29", "2023-13-01", "2023-11-14T24:00:00Z", "2023-11-14T22:13:20",
    "yesterday", "2023-11-14T22:13:20+1:00", "1969-12-31T23:59:59Z", "2023-1é-14",
  ])
  func `other words are no time`(word: String) {
    #expect(TimeWords.time(word) == nil)
  }

  @Test(arguments: ["2023-11-14T22:13:20Z", "2024-02-29T00:00:00Z", "1970-01-01T00:00:00Z"])
  func `a time that is written can be read again`(word: String) throws {
    #expect(TimeWords.rfc3339(try #require(TimeWords.time(word))) == word)
  }
}
