import EventLog
import Foundation
import Nostr
import Platform
import SyncCore
import Testing

@testable import HotCache

struct FileTests {
  private let log = History(seed: 11, count: 500).log(order: 2)
  private let scratch = Scratch()
  private var folder: String { scratch.path + "/cache" }
  private var data: String { folder + "/data.mdb" }

  private func open(_ source: ArrayLog? = nil, options: CacheOptions = CacheOptions()) async
    -> HotCache
  {
    await HotCache.open(
      directory: folder, source: source ?? log, executor: ThreadExecutor(), options: options)
  }

  /// A cache that is caught up and closed.
  private func build(_ source: ArrayLog? = nil) async throws {
    let cache = await open(source)
    try await cache.catchUp()
    await cache.close()
  }

  private func expectRightAnswers(_ cache: HotCache, _ source: ArrayLog? = nil) async throws {
    try await cache.catchUp()
    let right = try views(source ?? log)
    #expect(try dump(cache.views) == dump(right))
    #expect(try digest(of: cache.views) == digest(of: right))
  }

  @Test func `a closed cache is gone on with, and nothing is folded again`() async throws {
    try await build()
    let cache = await open()
    #expect(await cache.applied == (try log.head()))
    #expect(cache.views.state == .ok)
    try await expectRightAnswers(cache)
    log.append([message("later", at: 1050)])
    try await expectRightAnswers(cache)
    await cache.close()
  }

  enum Vandalism: CaseIterable, Sendable {
    case deleted, emptied, cutShort, noise, noiseInTheMiddle, oneByte, sealDeleted, sealNoise
    case folderDeleted, directory
  }

  @Test(arguments: Vandalism.allCases)
  func `files that somebody touched are folded again`(vandalism: Vandalism) async throws {
    try await build()
    try destroy(vandalism)
    let cache = await open()
    if vandalism != .directory { #expect(await cache.applied == .start) }
    try await expectRightAnswers(cache)
    let isGone = [.deleted, .folderDeleted].contains(vandalism)
    #expect((cache.views.notice == nil) == isGone)
    await cache.close()
  }

  private func destroy(_ vandalism: Vandalism) throws {
    let files = FileManager.default
    var bytes = try Data(contentsOf: URL(fileURLWithPath: data))
    var dice = Dice(3)
    switch vandalism {
    case .deleted: try files.removeItem(atPath: data)
    case .emptied: bytes = Data()
    case .cutShort: bytes = bytes.prefix(bytes.count / 2)
    case .noise: bytes = Data((0..<bytes.count).map { _ in UInt8(dice.below(256)) })
    case .noiseInTheMiddle:
      for index in 8192..<bytes.count { bytes[index] = UInt8(dice.below(256)) }
    case .oneByte: bytes[bytes.count / 2] ^= 1
    case .sealDeleted: try files.removeItem(atPath: folder + "/seal")
    case .sealNoise: try Data([1, 2, 3]).write(to: URL(fileURLWithPath: folder + "/seal"))
    case .folderDeleted: try files.removeItem(atPath: folder)
    case .directory:
      try files.removeItem(atPath: data)
      try files.createDirectory(atPath: data, withIntermediateDirectories: false)
    }
    switch vandalism {
    case .emptied, .cutShort, .noise, .noiseInTheMiddle, .oneByte:
      // In place, as a fault or a stray program would do it.
      let file = try FileHandle(forWritingTo: URL(fileURLWithPath: data))
      try file.truncate(atOffset: UInt64(bytes.count))
      try file.seek(toOffset: 0)
      try file.write(contentsOf: bytes)
      try file.close()
    default: break
    }
  }

  @Test func `last week's file is folded again, and a whole copy of last week goes on`()
    async throws
  {
    try await build(log.prefix(200))
    let old = scratch.path + "/old"
    try run("/bin/cp", "-a", folder, old)
    try await build()
    try run("/bin/cp", "-a", old + "/data.mdb", data)
    let mixed = await open()
    #expect(await mixed.applied == .start)
    try await expectRightAnswers(mixed)
    await mixed.close()
    try run("/bin/rm", "-r", folder)
    try run("/bin/cp", "-a", old, folder)
    let whole = await open()
    #expect(await whole.applied.number == 200)
    try await expectRightAnswers(whole)
    await whole.close()
  }

  @Test func `a log that is shorter, another, or went another way is folded from its beginning`()
    async throws
  {
    try await build()
    let shorter = log.prefix(100)
    let cache = await open(shorter)
    #expect(await cache.applied == .start)
    try await expectRightAnswers(cache, shorter)
    await cache.close()
    let branch = log.prefix(99)
    branch.append([message("another way", at: 5)])
    let second = await open(branch)
    #expect(await second.applied == .start)
    try await expectRightAnswers(second, branch)
    await second.close()
    let other = History(seed: 12, count: 300).log(order: 0, name: "other")
    let third = await open(other)
    #expect(await third.applied == .start)
    try await expectRightAnswers(third, other)
    await third.close()
  }

  @Test func `a map that is too small gives the same answers from memory, and says so`()
    async throws
  {
    let cache = await open(options: CacheOptions(mapBytes: 64 << 10, mapBytesMax: 64 << 10))
    try await expectRightAnswers(cache)
    #expect(cache.views.state.name == "degraded")
    let roomy = Scratch()
    let other = await HotCache.open(
      directory: roomy.path, source: log, executor: ThreadExecutor(),
      options: CacheOptions(mapBytes: 64 << 10))
    try await expectRightAnswers(other)
    #expect(other.views.state == .ok)
    await cache.close()
    await other.close()
  }

  @Test func `a folder that cannot be made or is in use gives the same answers from memory`()
    async throws
  {
    try Data().write(to: URL(fileURLWithPath: scratch.path + "/file"))
    let blocked = await HotCache.open(
      directory: scratch.path + "/file/cache", source: log, executor: ThreadExecutor())
    try await expectRightAnswers(blocked)
    #expect(blocked.views.state.name == "degraded")
    let first = await open()
    let second = await open()
    #expect(second.views.state.name == "degraded")
    try await expectRightAnswers(second)
    try await expectRightAnswers(first)
    #expect(first.views.state == .ok)
    await first.close()
    await second.close()
  }

  @Test func `a cache in memory moves back once there is room, and is fed meanwhile`()
    async throws
  {
    let small = CacheOptions(mapBytes: 64 << 10, mapBytesMax: 64 << 10, batchEntries: 50)
    let cache = await open(options: small)
    try await cache.catchUp()
    #expect(cache.views.state.name == "degraded")
    #expect(!FileManager.default.fileExists(atPath: data), "room is short")
    while await cache.restore(limit: 50) == .underway {}
    #expect(cache.views.state.name == "degraded", "there is no more room than before")
    #expect(!FileManager.default.fileExists(atPath: data))
    await cache.setMapBytesMax(1 << 30)
    #expect(await cache.restore(limit: 50) == .underway)
    log.append([message("meanwhile", at: 1050)])
    try await cache.catchUp()
    #expect(cache.views.state.name == "degraded")
    #expect(try dump(cache.views) == dump(views(log)))
    while await cache.restore(limit: 50) == .underway {}
    #expect(cache.views.state == .ok)
    try await expectRightAnswers(cache)
    log.append([message("later", at: 1060)])
    try await expectRightAnswers(cache)
    await cache.close()
    let again = await open()
    #expect(await again.applied == (try log.head()))
    await again.close()
  }

  @Test func `a cache that is closed while it moves back leaves nothing half done`() async throws {
    let cache = await open(options: CacheOptions(mapBytes: 64 << 10, mapBytesMax: 64 << 10))
    try await cache.catchUp()
    await cache.setMapBytesMax(1 << 30)
    #expect(await cache.restore(limit: 50) == .underway)
    await cache.close()
    #expect(await cache.restore(limit: 50) == .done)
    let again = await open()
    #expect(await again.applied == .start)
    try await expectRightAnswers(again)
    await again.close()
  }

  @Test func `a writer killed behind the log goes on from its watermark, and in a commit anew`()
    async throws
  {
    let cache = await open(options: CacheOptions(batchEntries: 50))
    try await cache.catchUp(limit: 200)
    // What a kill leaves behind: the files as they are now.
    let killed = scratch.path + "/killed"
    try run("/bin/cp", "-a", folder, killed)
    let behind = await HotCache.open(
      directory: killed, source: log, executor: ThreadExecutor())
    #expect(await behind.applied.number == 200)
    try await expectRightAnswers(behind)
    await behind.close()
    // Killed between the rows and the note that speaks of them.
    let torn = scratch.path + "/torn"
    try run("/bin/cp", "-a", folder, torn)
    try await cache.catchUp()
    try run("/bin/cp", "-a", data, torn + "/data.mdb")
    let anew = await HotCache.open(directory: torn, source: log, executor: ThreadExecutor())
    #expect(await anew.applied == .start)
    try await expectRightAnswers(anew)
    await anew.close()
    await cache.close()
  }

  @Test func `a reader uses the files, and folds into memory what they lack`() async throws {
    try await build()
    let right = try dump(views(log))
    let views = try CacheReader.open(directory: folder, source: log)
    #expect(views.state == .ok)
    #expect(try dump(views) == right)
    log.append(History(seed: 13, count: 50).events)
    let ahead = try CacheReader.open(directory: folder, source: log)
    #expect(ahead.state == .ok)
    let whole = try HotCacheTests.views(log)
    #expect(try dump(ahead) == dump(whole))
    #expect(try digest(of: ahead) == digest(of: whole))
    try destroy(.noise)
    let lost = try CacheReader.open(directory: folder, source: log)
    #expect(lost.state.name == "degraded")
    #expect(try dump(lost) == dump(whole))
  }

  @Test func `a row that rots while the cache is open is never shown, and is folded again`()
    async throws
  {
    let source = ArrayLog()
    source.append((0..<40).map { message("text number \($0) of many", at: Int64($0)) })
    let cache = await open(source)
    try await cache.catchUp()
    var bytes = try Data(contentsOf: URL(fileURLWithPath: data))
    while let place = bytes.firstRange(of: Data("text number 17".utf8)) {
      bytes.replaceSubrange(place, with: Data("lies number 17".utf8))
    }
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: data))
    try file.write(contentsOf: bytes)
    try file.close()
    #expect(throws: CacheError.self) { try dump(cache.views) }
    try await expectRightAnswers(cache, source)
    #expect(cache.views.state == .ok)
    await cache.close()
  }

  @Test func `a reader in the writer's own process reads in memory`() async throws {
    let cache = await open()
    try await cache.catchUp()
    let views = try CacheReader.open(directory: folder, source: log)
    #expect(views.state.name == "degraded")
    #expect(try dump(views) == dump(cache.views))
    await cache.close()
    #expect(throws: CacheError.self) { try dump(cache.views) }
    await #expect(throws: CacheError.self) { try await cache.catchUp() }
    #expect(try CacheReader.open(directory: folder, source: log).state == .ok)
  }

  @Test func `closing waits for a read that is running, and a later read is refused`() async throws
  {
    let cache = await open()
    try await cache.catchUp()
    let views = cache.views
    let isInside = DispatchSemaphore(value: 0)
    let letGo = DispatchSemaphore(value: 0)
    let hasRead = Lock(false)
    Thread.detachNewThread {
      // A failure shows as a read that never ended.
      try? views.read { view throws(CacheError) in
        isInside.signal()
        letGo.wait()
        _ = try view.query([Filter()], now: noon)
        hasRead.withLock { $0 = true }
      }
    }
    await Task.detached { isInside.wait() }.value
    let closing = Task {
      await cache.close()
      return hasRead.withLock { $0 }
    }
    letGo.signal()
    #expect(await closing.value)
    #expect(throws: CacheError.self) { try dump(views) }
  }

  @Test func `a cache caught up in steps is the cache caught up at once`() async throws {
    let cache = await open(options: CacheOptions(batchEntries: 10))
    for _ in 0..<7 { try await cache.catchUp(limit: 25) }
    #expect(await cache.applied.number == 175)
    #expect(cache.views.state.name == "rebuilding")
    try await expectRightAnswers(cache)
    #expect(cache.views.state == .ok)
    await cache.close()
  }

  @Test func `readers see whole transactions while the writer works and the map grows`()
    async throws
  {
    let source = ArrayLog()
    source.append((0..<3000).map { message("number \($0)", at: Int64($0 / 7)) })
    let cache = await open(
      source, options: CacheOptions(mapBytes: 128 << 10, batchEntries: 100))
    let wrong = Lock(0)
    let isDone = Lock(false)
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        // A failure shows as a cache that is not caught up.
        _ = try? await cache.catchUp()
        isDone.withLock { $0 = true }
      }
      group.addTask {
        await WorkPool(width: 3).run(count: 3) { _ in
          while !isDone.withLock({ $0 }) {
            let isWhole = try? cache.views.read { view throws(CacheError) in
              try view.count([Filter(kinds: [9])], now: noon) == Int(view.applied.number)
            }
            if isWhole != true { wrong.withLock { $0 += 1 } }
          }
        }
      }
    }
    #expect(wrong.withLock { $0 } == 0)
    #expect(await cache.applied.number == 3000)
    #expect(cache.views.state == .ok)
    await cache.close()
  }

  private func run(_ program: String, _ arguments: String...) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    try process.run()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
  }
}
