import Foundation
import Testing

/// What the line client answers, over pipes and at a terminal.
@Suite struct ChatTests {
  @Test func `any event of the log is found by the first digits of its id`() throws {
    let skep = try SkepProcess()
    _ = try skep.run("import", "-", stdin: try Vectors.goodLine())
    let event = try #require(
      JSONSerialization.jsonObject(with: Data(Vectors.goodLine().utf8)) as? [String: Any])
    let id = try #require(event["id"] as? String)
    let rows = try skep.run(
      "chat", "--json", stdin: "/show \(id.prefix(8))\n/show \(id.prefix(11))\n/show 00000000\n"
    ).rows()
    #expect(rows.compactMap { $0["ok"] as? Bool } == [true, true, false])
    #expect(rows.compactMap { ($0["event"] as? [String: Any])?["id"] as? String } == [id, id])
  }

  @Test func `what is new appears above the line that is being typed`() throws {
    let skep = try SkepProcess()
    let relay = try DemoProcess(skep)
    let other = try SkepProcess()
    for person in [skep, other] {
      _ = try person.run("key", "new")
      #expect(try person.run("mirror", relay.url, "--all").code == 0)
    }
    let terminal = try Terminal(skep, ["chat"], columns: 30)
    try terminal.shows("> ")
    terminal.type("/open general\n")
    try terminal.shows("▸ General")
    try terminal.shows("> ")
    terminal.type("half a line that wraps, with ümlauts")
    try terminal.shows("mlauts")
    let sent = try other.run(
      "chat", "--json", stdin: "/open general\nnews from afar\n/wait outbox\n")
    #expect(sent.code == 0)
    // At 30 columns it is broken where a word ends.
    let above = try terminal.shows("news from\r\n            afar\r\n")
    // The row above the cursor's was taken off too.
    #expect(above.contains("\u{1b}[1A\r\u{1b}[J"))
    #expect(try terminal.shows("mlauts").contains("> half a line"))
    terminal.type("!\n")
    try terminal.shows("with ümlauts!")
    terminal.type("/quit\n")
    #expect(terminal.finish() == 0)
  }

  @Test(arguments: [false, true])
  func `the end of the input and a signal end a chat at a terminal`(isSignal: Bool) throws {
    let skep = try SkepProcess()
    _ = try skep.run("import", "-", stdin: try Vectors.goodLine())
    let terminal = try Terminal(skep, ["chat", "--offline"])
    try terminal.shows("> ")
    terminal.type("x\u{8}")
    if isSignal { terminal.interrupt() } else { terminal.type("\u{4}") }
    #expect(terminal.finish() == (isSignal ? 130 : 0))
  }
}

@Suite struct ClockTests {
  @Test(arguments: [(0, true), (-400, false), (400, false), (45, false), (20, true)])
  func `the doctor compares the clock with the relay's`(offset: Int, isOK: Bool) throws {
    let skep = try SkepProcess()
    let relay = try DemoProcess(skep, clockOffset: offset)
    _ = try skep.run("import", "-", "--community", relay.url, stdin: try Vectors.goodLine())
    let outcome = try skep.run("doctor", "--json")
    let checks = try #require(try outcome.rows().first?["checks"] as? [[String: Any]])
    let check = try #require(
      checks.first { ($0["name"] as? String)?.hasPrefix("clock against") == true })
    #expect(check["ok"] as? Bool == isOK)
    #expect(outcome.code == (isOK ? 0 : 1))
    if !isOK {
      let side = offset > 0 ? "behind" : "ahead of"
      #expect((check["detail"] as? String)?.contains(side) == true)
    }
    try relay.stop()
    let later = try skep.run("doctor", "--json").text
    #expect(later.contains("not known"))
    #expect(try !skep.run("doctor", "--json", "--offline").text.contains("clock against"))
  }
}
