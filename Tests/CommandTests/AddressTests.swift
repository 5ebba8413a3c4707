import Foundation
import Glibc
import Testing

/// A community is one relay, and a relay is one address.
@Suite struct AddressTests {
  private func summary(_ outcome: SkepProcess.Outcome) throws -> (stored: Int?, relays: [String]) {
    let row = try #require(try outcome.rows().last)
    let relays = (row["relays"] as? [[String: Any]] ?? []).compactMap { $0["url"] as? String }
    return (row["stored"] as? Int, relays)
  }

  @Test func `another path or scheme at the same port is asked for itself`() throws {
    let skep = try SkepProcess()
    let relay = try DemoProcess(skep)
    for path in ["/a", "/b", "", "/A", "/a/"] {
      let outcome = try skep.run("mirror", relay.url + path, "--all", "--json")
      #expect(outcome.code == 0)
      let told = try summary(outcome)
      #expect(told.relays == [relay.url + path])
      #expect(try #require(told.stored) > 300)
      #expect(try summary(skep.run("mirror", relay.url + path, "--all", "--json")).stored == 0)
    }
    let secure = relay.url.replacingOccurrences(of: "ws://", with: "wss://")
    #expect(try skep.run("mirror", secure, "--all", "--fail-after", "1s").code == 3)
    #expect(try skep.run("status", "--community", relay.url + "/c").code == 64)
    let row = try skep.run("status", "--json", "--community", relay.url + "/b").rows().first
    let named = (row?["relays"] as? [[String: Any]])?.compactMap { $0["url"] as? String }
    #expect(named == [relay.url + "/b"])
  }

  @Test func `a folder stays that of the address that it holds`() throws {
    let skep = try SkepProcess()
    let good = try Vectors.goodLine()
    let (old, other) = ("ws://127.0.0.1:9/a", "ws://127.0.0.1:9")
    #expect(try skep.run("import", "-", "--community", old, stdin: good).code == 0)
    // So it was called before paths told communities apart.
    #expect(rename(skep.home + "/127.0.0.1:9+a", skep.home + "/127.0.0.1:9") == 0)
    let again = try skep.run("import", "-", "--community", old, "--json", stdin: good)
    #expect(try again.rows().last?["duplicates"] as? Int == 1)
    for url in [other, "wss://127.0.0.1:9"] {
      let fresh = try skep.run("import", "-", "--community", url, "--json", stdin: good)
      #expect(try fresh.rows().last?["stored"] as? Int == 1)
      #expect(try skep.run("mirror", url, "--fail-after", "1s").code == 3)
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: skep.home).sorted()
    #expect(names == ["127.0.0.1:9", "127.0.0.1:9=ws", "127.0.0.1:9=wss"])
  }

  @Test func `a mirror of a replica reads that replica into its community`() throws {
    let skep = try SkepProcess()
    let relay = try DemoProcess(skep)
    let (home, replica) = (relay.url, relay.url + "/replica")
    #expect(try skep.run("import", "/dev/null", "--community", home).code == 0)
    #expect(try skep.run("relay", "add", replica).code == 0)
    let told = try summary(skep.run("mirror", replica, "--all", "--json"))
    #expect(told.relays == [replica])
    #expect(try FileManager.default.contentsOfDirectory(atPath: skep.home).count == 1)
    #expect(try skep.run("status", "--community", replica).code == 0)
  }
}
