import Foundation
import Platform
import Testing

/// Relays that answer in ways of their own, over real sockets.
@Suite struct ContraryRelayTests {
  private struct Seen {
    var isAuthenticated = false
    var ids: [String] = []
    var dead: Set<String> = []
  }

  @Test func `a relay that asks for AUTH by CLOSED, and where used ids are dead, is mirrored`()
    async throws
  {
    let skep = try SkepProcess()
    let good = try Vectors.goodLine()
    let seen = Lock(Seen())
    let relay = try await ScriptedRelay { frame in
      seen.withLock { seen in
        switch frame.first as? String {
        case "AUTH":
          let id = (frame[1] as? [String: Any])?["id"] as? String ?? ""
          seen.isAuthenticated = true
          return [#"["OK","\#(id)",true,""]"#]
        case "REQ":
          let id = frame[1] as? String ?? ""
          seen.ids.append(id)
          guard seen.isAuthenticated else {
            seen.dead.insert(id)
            return [#"["CLOSED","\#(id)","auth-required: who are you"]"#, #"["AUTH","abc"]"#]
          }
          guard !seen.dead.contains(id) else { return [] }
          let filter = frame[2] as? [String: Any] ?? [:]
          let isHead = filter["until"] == nil && filter["kinds"] == nil
          return [isHead ? #"["EVENT","\#(id)",\#(good)]"# : nil, #"["EOSE","\#(id)"]"#]
            .compactMap { $0 }
        default: return []
        }
      }
    }
    _ = try skep.run("key", "new")
    let mirror = try skep.run("mirror", relay.url, "--all", "--json")
    let summary = try #require(try mirror.rows().last)
    #expect(mirror.code == 0 && summary["stored"] as? Int == 1, "\(mirror.text) \(mirror.stderr)")
    let ids = seen.withLock { $0.ids }
    #expect(Set(ids).count == ids.count && ids.allSatisfy { $0.utf8.count <= 32 })
  }

  @Test func `a relay that refuses by NOTICE alone is a gap with its words, and no wait`()
    async throws
  {
    let skep = try SkepProcess()
    let relay = try await ScriptedRelay { frame in
      guard frame.first as? String == "REQ" else { return [] }
      return [#"["NOTICE","ERROR: bad req: no such thing here"]"#]
    }
    let mirror = try skep.run("mirror", relay.url, "--json")
    #expect(mirror.code == 4, "\(mirror.stderr)")
    #expect(mirror.text.contains("no such thing here"), "\(mirror.text)")
  }

  @Test func `a refused channel is told, and the others are brought over`() async throws {
    let skep = try SkepProcess()
    let relay = try await ScriptedRelay { frame in
      guard frame.first as? String == "REQ", let id = frame[1] as? String else { return [] }
      let filter = frame[2] as? [String: Any] ?? [:]
      guard (filter["#h"] as? [String])?.contains("closed") == true else {
        return [#"["EOSE","\#(id)"]"#]
      }
      return [#"["CLOSED","\#(id)","restricted: not a channel member"]"#]
    }
    let mirror = try skep.run(
      "mirror", relay.url, "--group", "open", "--group", "closed", "--json")
    #expect(mirror.code == 4)
    let gaps = try #require(try mirror.rows().last?["gaps"] as? [[String: Any]])
    #expect(!gaps.isEmpty && gaps.allSatisfy { $0["group"] as? String == "closed" })
    #expect(mirror.text.contains("not a channel member"))
  }
}
