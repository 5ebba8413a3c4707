import EventLog
import Foundation
import HotCache
import Nostr
import NostrCrypto
import SearchStore
import SyncCore
import SyncEngine
import Testing

@Suite struct CommunityStoreTests {
  @Test func `a second opening is told who holds the folder, until the first lets go`()
    async throws
  {
    let bench = try StoreBench()
    let store = try await bench.open()
    let pid = ProcessInfo.processInfo.processIdentifier
    await #expect(throws: StoreError.inUse(folder: bench.folder, pid: pid)) {
      _ = try await bench.open()
    }
    await store.close()
    try await bench.open().close()
  }

  @Test func `a folder whose log cannot be used is given free again`() async throws {
    let bench = try StoreBench()
    try bench.home.makeFolder(of: .archive)
    let path = bench.folder + "/log.sqlite"
    try Data("nothing like a database".utf8).write(to: URL(filePath: path))
    for _ in 0..<2 {
      let damage = LogError.damaged("\(path) does not begin as a log does")
      await #expect(throws: StoreError.log(damage)) { _ = try await bench.open() }
    }
    try FileManager.default.removeItem(atPath: path)
    try await bench.open().close()
  }

  @Test func `what is written is shown once the store has caught up`() async throws {
    let bench = try StoreBench()
    let store = try await bench.open()
    let home = try #require(RelayURL("ws://127.0.0.1:7777"))
    let signer = LocalSigner(SecretKey.generate())
    let event = try signer.signed(
      EventDraft(
        createdAt: 1_600_000_000, kind: 9, tags: Tags([["h", "garden"]]), content: "hello"))
    let message = try await store.enqueue(event, to: [home])
    await store.caughtUp()
    let row = try store.views.read { view throws(CacheError) in
      try view.message(event.event.id, now: bench.clock.now())
    }
    #expect(row?.text == "hello")
    try await store.discard(message.id)
    await store.caughtUp()
    let shown = try store.views.read { view throws(CacheError) in
      try view.query([Filter(kinds: [9])], now: bench.clock.now())
    }
    #expect(shown == [])
    #expect(await store.cacheFailure() == nil)
    await store.close()
  }

  @Test func `what could not be made searchable is told, not passed over`() async throws {
    let bench = try StoreBench()
    let author = Author()
    let store = try await bench.open()
    let now = bench.clock.now()
    _ = try await bench.pipeline(store).run(Chunks(try author.lines(0..<3)))
    #expect(try await store.find(SearchQuery("hello"), now: now).count == 3)
    await store.search?.close()
    _ = try await bench.pipeline(store).run(Chunks(try author.lines(3..<4)))
    await #expect(throws: CacheError.unavailable("it is closed")) {
      _ = try await store.find(SearchQuery("hello"), now: now)
    }
    await store.close()
  }

  @Test func `a store opened again shows everything, also without its cache`() async throws {
    let bench = try StoreBench()
    let author = Author()
    var store = try await bench.open()
    _ = try await bench.pipeline(store).run(Chunks(try author.lines(0..<30)))
    await store.close()
    try FileManager.default.removeItem(atPath: bench.folder + "/cache")
    store = try await bench.open()
    await store.caughtUp()
    let count = try store.views.read { view throws(CacheError) in
      try view.count([Filter(kinds: [9])], now: bench.clock.now())
    }
    #expect(count == 30)
    await store.close()
  }

  @Test func `settings are read back as they were saved`() async throws {
    let bench = try StoreBench()
    let store = try await bench.open()
    #expect(try CommunitySettings(store.reader) == CommunitySettings())
    let relays = ["wss://home.example", "ws://127.0.0.1:4848/path"].compactMap { RelayURL($0) }
    let key = SecretKey.generate().publicKey
    let settings = CommunitySettings(
      relays: relays, identity: "other", relaySelf: key)
    try await settings.save(to: store.log)
    #expect(try CommunitySettings(store.reader) == settings)
    #expect(settings.home == relays[0])
    try await CommunitySettings().save(to: store.log)
    #expect(try CommunitySettings(store.reader) == CommunitySettings())
    await store.close()
  }
}

@Suite struct HomeTests {
  private func home(with relays: [String]) async throws -> StoreBench {
    let bench = try StoreBench()
    for relay in relays {
      let name = try #require(RelayURL(relay).map { CommunityName($0) })
      try await CommunityStore.open(
        folder: bench.home.folder(of: name), clock: bench.clock, tasks: bench.tasks
      ).close()
    }
    return bench
  }

  @Test(arguments: ["identity", "default", "archive"])
  func `a machine called as the home's own things does not share their names`(host: String) throws {
    let plain = CommunityName(try #require(RelayURL("ws://\(host)")))
    let secure = CommunityName(try #require(RelayURL("wss://\(host)")))
    #expect(plain.text == host + ":80" && secure.text == host + ":443")
    #expect(CommunityName(try #require(RelayURL("wss://\(host).test"))).text == host + ".test")
  }

  @Test func `a community is named by its URL, its host and port, or a host that is enough`()
    async throws
  {
    let bench = try await home(with: [
      "wss://relay.example", "ws://127.0.0.1:7000", "ws://127.0.0.1:7001",
      "ws://other.example:8080",
    ])
    let home = bench.home
    #expect(
      home.communities().map(\.text) == [
        "127.0.0.1:7000", "127.0.0.1:7001", "other.example:8080", "relay.example",
      ])
    #expect(try home.community(named: "wss://RELAY.example/").text == "relay.example")
    #expect(try home.community(named: "Relay.Example").text == "relay.example")
    #expect(try home.community(named: "127.0.0.1:7001").text == "127.0.0.1:7001")
    #expect(try home.community(named: "other.example").text == "other.example:8080")
    #expect(throws: HomeError.self) { _ = try home.community(named: "127.0.0.1") }
    #expect(throws: HomeError.several(home.communities())) { _ = try home.community(named: nil) }
    #expect(throws: HomeError.malformed("a@b")) { _ = try home.community(named: "a@b") }
    #expect(throws: HomeError.malformed("../up")) { _ = try home.community(named: "../up") }
  }

  @Test func `without a name the only community is meant`() async throws {
    let bench = try await home(with: [])
    #expect(throws: HomeError.none(home: bench.home.path)) {
      _ = try bench.home.community(named: nil)
    }
    try await bench.open().close()
    #expect(try bench.home.community(named: nil) == .archive)
  }

  @Test func `only its owner may enter a community's folder`() async throws {
    let bench = try await home(with: ["wss://relay.example"])
    let path = bench.home.path + "/relay.example"
    let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    #expect(mode == 0o700)
  }

  @Test func `what is no community is not listed`() throws {
    let bench = try StoreBench()
    for name in ["identity", ".hidden", "empty"] {
      try FileManager.default.createDirectory(
        atPath: bench.home.path + "/" + name, withIntermediateDirectories: false)
    }
    try Data().write(to: URL(filePath: bench.home.path + "/identity/log.sqlite"))
    #expect(bench.home.communities() == [])
  }
}
