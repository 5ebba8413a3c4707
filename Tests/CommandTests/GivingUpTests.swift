import EventLog
import Foundation
import Nostr
import NostrCrypto
import Platform
import RelaySocket
import SyncCore
import Testing

@testable import skep_cli

/// What can be given up, and how it is named.
@Suite struct GivingUpTests {
  @Test func `what was sent is not given up, neither by the command nor in a chat`() throws {
    let skep = try SkepProcess()
    let relay = try DemoProcess(skep)
    _ = try skep.run("key", "new")
    #expect(try skep.run("mirror", relay.url, "--all").code == 0)
    let said = try skep.run("chat", "--json", stdin: "/open general\nhello hornets\n/wait outbox\n")
      .rows()
    let own = try #require(said.last { $0["text"] as? String == "hello hornets" })
    let id = try #require(own["id"] as? String)
    for name in [id, String(id.prefix(8)), "1"] {
      let refused = try skep.run("outbox", "discard", name)
      #expect(refused.code == 1, "\(name): \(refused.text)")
      #expect(refused.stderr.contains("was sent"), "\(refused.stderr)")
    }
    let chat = try skep.run("chat", "--offline", "--json", stdin: "/discard \(id)\n/quit\n").rows()
    let codes = chat.map { ($0["error"] as? [String: Any])?["code"] as? String }
    #expect(codes == ["already-sent", nil])
    let found = try skep.run("query", ##"{"ids":["\##(id)"]}"##, "--json").rows()
    #expect(found.count == 2, "\(found)")
    try relay.stop()
  }

  @Test func `deleting what never left gives it up, and the relay hears of none of it`() throws {
    let skep = try SkepProcess()
    _ = try skep.run("key", "new")
    let relay = try DemoProcess(skep)
    #expect(try skep.run("mirror", relay.url, "--all").code == 0)
    let rows = try skep.run(
      "chat", "--offline", "--json", stdin: "/open general\na slip\nmeant\n/quit\n"
    ).rows().filter { $0["state"] as? String == "queued" }
    let ids = rows.compactMap { $0["id"] as? String }
    try #require(ids.count == 2)
    let gone = try skep.run(
      "chat", "--offline", "--json",
      stdin: "/react \(ids[0]) 🐝\n/unreact \(ids[0])\n/edit \(ids[0]) worse\n/delete \(ids[0])\n")
    #expect(try gone.rows().last?["discarded"] as? Bool == true, "\(gone.text)")
    #expect(try skep.run("outbox", "--json").rows().count == 1)
    let sent = try #require(try skep.run("sync", "--json").rows().last)
    #expect(sent["sent"] as? Int == 1)
    let key = try #require(try skep.run("key", "show", "--json").rows().first?["pubkey"] as? String)
    let other = try SkepProcess()
    #expect(try other.run("mirror", relay.url, "--all").code == 0)
    let seen = try other.run("query", #"{"authors":["\#(key)"]}"#, "--log", "--json").rows()
    #expect(seen.compactMap { $0["id"] as? String } == [ids[1]])
    try relay.stop()
  }

  @Test func `a message is found by an event's first digits, also where all are decimal`()
    async throws
  {
    let scratch = try SkepProcess().scratch
    let log = try await EventLog.open(
      path: scratch.path + "/log", executor: ThreadExecutor(), clock: SystemClock())
    let signer = LocalSigner(try Scripted.key("author"))
    let relay = try #require(RelayURL("ws://relay.example:1"))
    func write(_ date: Int64) async throws -> Message {
      let event = try await signer.sign(
        EventDraft(
          createdAt: Timestamp(date), kind: .message, tags: Tags([["h", "g"]]), content: "digits"))
      return try await log.enqueue(event, to: [relay])
    }
    var decimal: String?
    var date: Int64 = 0
    while decimal == nil, date < 2000 {
      let digits = String(try await write(date).eventID.hex.prefix(8))
      if Int64(digits) != nil { decimal = digits }
      date += 1
    }
    let digits = try #require(decimal)
    let reader = log.reader
    #expect(try OutboxChange.find(digits, in: reader)?.eventID.hex.hasPrefix(digits) == true)
    #expect(try OutboxChange.find("1", in: reader)?.id == MessageID(1))
    #expect(try OutboxChange.find(String(digits.prefix(7)) + "g", in: reader) == nil)
    #expect(try OutboxChange.find("99999999", in: reader) == nil)
    await log.close()
  }
}
