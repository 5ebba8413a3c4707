import Foundation
import Testing

@Suite(.live, .serialized) struct MirrorTests {
  @Test(arguments: Relay.Kind.allCases)
  func `a mirror holds exactly what an independent client pages out, and a second run adds nothing`(
    kind: Relay.Kind
  ) async throws {
    let data = try Scratch()
    try await Relay.with(kind, in: data.path("data")) { relay in
      try await relay.publish(try await Corpus.file())
      let served = try await relay.ids()
      let skep = try Skep()

      let first = try await skep.mirror(relay)
      #expect(first.status == 0, "\(first.story)")
      #expect(first.summary["complete"] as? Bool == true, "\(first.story)")
      #expect(first.summary["stored"] as? Int == served.count, "\(first.story)")
      let held = try await skep.ids()
      #expect(held.subtracting(served) == [] && served.subtracting(held) == [])

      let second = try await skep.mirror(relay)
      #expect(second.status == 0, "\(second.story)")
      #expect(second.summary["stored"] as? Int == 0, "\(second.story)")
      try await skep.expectSound()
    }
  }

  @Test func `a mirror with bounds holds what the relay has between them`() async throws {
    let data = try Scratch()
    try await Relay.with(.nostrRelaySQLite, in: data.path("data")) { relay in
      try await relay.publish(try await Corpus.file(1000))
      let now = Int(Date().timeIntervalSince1970)
      let (since, until) = (now - 50 * 86_400, now - 20 * 86_400)
      let all = try await Live.peer("page.py", [relay.url, "--events"]).rows
      let wanted = all.filter { row in
        let date = row["created_at"] as? Int ?? 0
        return since <= date && date <= until
      }
      let skep = try Skep()
      let run = try await skep.mirror(
        relay, ["--all", "--since", "\(since)", "--until", "\(until)"])
      #expect(run.status == 0, "\(run.story)")
      // What says which groups there are, what they are like and who people are has no bounds.
      let standing = all.filter { [0, 39000, 39001, 39002, 39003].contains($0["kind"] as? Int) }
      let ids = Set((wanted + standing).compactMap { $0["id"] as? String })
      #expect(try await skep.ids() == ids)
      #expect(!wanted.isEmpty && wanted.count < all.count)
    }
  }

  @Test(arguments: [Relay.Kind.nostrRelaySQLite, .localRelay])
  func `a relay that needs AUTH is mirrored with a key, and without one it is said how to make it`(
    kind: Relay.Kind
  ) async throws {
    let data = try Scratch()
    let reader = String(repeating: "0", count: 63) + "7"
    try await Relay.with(kind, in: data.path("data"), needsAuth: true) { relay in
      // The public key of the secret 7, for the independent client.
      try await relay.admit("5cbdf0646e5db4eaa398f365f2ea7a0e3d419b7e0330e39ce92bddedcac4f9bc")
      try await relay.publish(try await Corpus.file(), secret: reader)
      let served = try await relay.ids(secret: reader)
      let skep = try Skep()

      let without = try await skep.mirror(relay)
      #expect(without.status == 1, "\(without.story)")
      #expect(without.errors.contains("key new"), "\(without.story)")

      try await relay.admit(try await skep.newKey())
      let with = try await skep.mirror(relay)
      #expect(with.status == 0, "\(with.story)")
      #expect(with.summary["complete"] as? Bool == true, "\(with.story)")
      #expect(try await skep.ids() == served)
    }
  }

  @Test func `a key made for one mirror alone opens a relay that takes any`() async throws {
    let data = try Scratch()
    let writer = String(repeating: "0", count: 63) + "7"
    try await Relay.with(.localRelay, in: data.path("data"), needsAuth: true) { relay in
      try await relay.publish(try await Corpus.file(), secret: writer)
      let skep = try Skep()
      let run = try await skep.mirror(relay, ["--all", "--throwaway-key"])
      #expect(run.status == 0, "\(run.story)")
      #expect(try await skep.ids() == (try await relay.ids(secret: writer)))
    }
  }

  @Test func `a relay that nobody runs is exit 3, and the copy is kept`() async throws {
    let data = try Scratch()
    let skep = try Skep()
    let port = try await Relay.with(.nostrRelaySQLite, in: data.path("data")) { relay in
      try await relay.publish(try await Corpus.file(1000))
      #expect(try await skep.mirror(relay).status == 0)
      return relay.port
    }
    let before = try await skep.ids()
    let run = try await skep.run([
      "mirror", "ws://127.0.0.1:\(port)", "--all", "--json", "--fail-after", "3s",
    ])
    #expect(run.status == 3, "\(run.story)")
    #expect(try await skep.ids() == before)
  }
}
