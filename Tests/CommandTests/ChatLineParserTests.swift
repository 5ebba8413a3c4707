import Nostr
import Testing

@testable import skep_cli

@Suite struct ChatLineParserTests {
  private static let id = String(repeating: "0123456789abcdef", count: 4)

  @Test(arguments: [
    ("hello there", ChatLine.text("hello there")), ("//shrug", .text("/shrug")),
    ("   ", .nothing), ("", .nothing), ("/channels", .channels),
    ("/open  dev talk ", .open("dev talk")),
    ("/history", .history(count: nil, before: nil)),
    ("/history 5 --before #3", .history(count: 5, before: .number(3))),
    ("/history --before #3 5", .history(count: 5, before: .number(3))),
    ("/thread #12", .thread(.number(12))), ("/show 0123abcd", .show(.prefix("0123abcd"))),
    ("/reply #2  two  words ", .reply(.number(2), "two  words")),
    ("/wait", .wait(.outbox)), ("/wait live", .wait(.live)), ("/wait 5", .wait(.time(.seconds(5)))),
    ("/profile", .profile(nil)), ("/profile Ada L", .profile("Ada L")),
    ("/react #3 🐝", .react(.number(3), "🐝")), ("/unreact #3", .unreact(.number(3), nil)),
    ("/edit #3 new text", .edit(.number(3), "new text")), ("/delete #3", .delete(.number(3))),
    ("/activity", .activity), ("/block", .block(nil)), ("/block Ada L", .block("Ada L")),
    ("/unblock Ada", .unblock("Ada")),
    ("/help /wait", .help("wait")), ("/quit", .quit),
  ])
  func `a line is understood`(line: String, expected: ChatLine) throws {
    #expect(try ChatLineParser.parse(line) == expected)
  }

  @Test func `a whole id is an id`() throws {
    let id = try #require(EventID(hex: Self.id))
    #expect(try ChatLineParser.parse("/retry \(Self.id)") == .retry(.id(id)))
  }

  @Test(arguments: [
    ("/thread", 8, "#n"), ("/thread x", 9, "#n"), ("/thread #0", 9, "#n"),
    ("/show 0123abc", 7, "8 digits"), ("/reply #2", 10, "text"), ("/reply  hi", 9, "#n"),
    ("/history 0", 10, "number"), ("/history 5 6", 12, "number"), ("/history --before", 18, "#n"),
    ("/react #2", 10, "emoji"), ("/react 🐝", 8, "#n"), ("/edit #2", 9, "text"),
    ("/unblock", 9, "name"), ("/react #2 🐝 🐝", 13, "end of the line"),
    ("/wait soon", 7, "outbox"), ("/quit now", 7, "end of the line"), ("/open", 6, "channel"),
  ])
  func `a bad line says where and what was expected`(
    line: String, column: Int, expected: String
  ) throws {
    let error = try #require(throws: ChatLineError.self) { try ChatLineParser.parse(line) }
    #expect(error.column == column)
    #expect(error.expected.contains(expected))
    #expect(error.code == "syntax")
  }

  @Test(arguments: [("/hstory", "/history"), ("/chanels", "/channels"), ("/exit!", "/help")])
  func `an unknown command is named, with what was probably meant`(line: String, near: String)
    throws
  {
    let error = try #require(throws: ChatLineError.self) { try ChatLineParser.parse(line) }
    #expect(error.code == "unknown-command")
    #expect(error.expected.contains(near))
  }
}
