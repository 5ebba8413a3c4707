import Foundation
import Testing

/// Lines typed at a terminal reach the log as they were typed, or not at all.
@Suite struct TypedLineTests {
  private static func community() throws -> SkepProcess {
    let skep = try SkepProcess()
    _ = try skep.run("key", "new")
    try skep.importDemo()
    return skep
  }

  private static func written(_ skep: SkepProcess) throws -> [String] {
    let npub = try #require(try skep.run("key", "show", "--json").rows().first?["pubkey"])
    return try skep.run("query", "{\"authors\":[\"\(npub)\"],\"kinds\":[9]}").rows()
      .compactMap { $0["content"] as? String }
  }

  @Test(arguments: ["", "C", "POSIX", "en_US.UTF-8", "xx_XX"])
  func `what is typed is what is signed, in every locale`(locale: String) throws {
    let skep = try Self.community()
    let terminal = try Terminal(
      skep, ["chat", "--offline"], variables: locale.isEmpty ? [:] : ["LC_ALL": locale])
    try terminal.shows("> ")
    terminal.type("/open general\n")
    try terminal.shows("General")
    try terminal.shows("> ")
    let text = "été 日本 🔥 👨‍👩‍👧"
    terminal.type(text + "\n")
    try terminal.shows("> ")
    terminal.type("/quit\n")
    #expect(terminal.finish() == 0)
    #expect(try Self.written(skep) == [text])
  }

  @Test(arguments: [
    [0xe9], [0xc3, 0x28], [0xf0, 0x9f, 0x94], [0xff], [0xc2, 0x85], [0xed, 0xa0, 0x80],
  ])
  func `a line with a byte that cannot be taken is refused as a whole`(bytes: [UInt8]) throws {
    let skep = try Self.community()
    let terminal = try Terminal(skep, ["chat", "--offline"])
    try terminal.shows("> ")
    terminal.type("/open general\n")
    try terminal.shows("General")
    try terminal.shows("> ")
    terminal.type(bytes: Array("caf".utf8) + bytes + Array(" noir\n".utf8))
    try terminal.shows("UTF-8")
    try terminal.shows("> ")
    terminal.type("thé\n")
    try terminal.shows("> ")
    terminal.type("/quit\n")
    #expect(terminal.finish() == 0)
    #expect(try Self.written(skep) == ["thé"])
  }

  @Test func `the quit key of the terminal does not end up in a debugger`() throws {
    let skep = try Self.community()
    let terminal = try Terminal(skep, ["chat", "--offline"])
    try terminal.shows("> ")
    terminal.quit()
    terminal.type("/quit\n")
    #expect(terminal.finish() == 0)
  }
}
