import EventLog
import Foundation
import Glibc
import HotCache
import Nostr
import NostrCrypto
import Platform
import SyncCore
import SyncEngine

/// `skep doctor`.
enum DoctorCommand: Command {
  static let spec = CommandSpec(
    "doctor",
    options: [
      .flag("rebuild-cache", "throw the cache away and fold it from the log"),
      .flag("offline", "ask no relay what time it is"),
    ],
    about: "Checks the libraries, the permissions, the log, the cache and the clock.",
    examples: ["skep doctor", "skep doctor --rebuild-cache --json"])

  static func run(_ context: Context) async throws -> ExitCode {
    let home = try context.home()
    var checks = [await HealthCheck.libraries(context), HealthCheck.permissions(home)]
    checks += HealthCheck.keys(home)
    for folder in try folders(context, home) {
      if context.invocation.has("rebuild-cache") { try await rebuild(folder, context) }
      checks += await HealthCheck.stores(folder, context)
      if !context.invocation.has("offline") {
        checks += await ClockCheck.relays(of: folder, context)
      }
    }
    let faults = Set(checks.filter { !$0.isOK }.map(\.code))
    let code = Self.gravest.first { faults.contains($0) } ?? (faults.isEmpty ? .done : .partial)
    try report(checks, context)
    return context.stop.code ?? code
  }

  /// Which of several faults names the end.
  private static let gravest: [ExitCode] = [.invalid, .key, .io, .busy]

  /// The community that is named, or every one.
  private static func folders(_ context: Context, _ home: Home) throws -> [CommunityFolder] {
    if context.invocation.value("community") != nil { return [try CommunityFolder.chosen(context)] }
    return home.communities().map { CommunityFolder(home: home, name: $0) }
  }

  private static func rebuild(_ folder: CommunityFolder, _ context: Context) async throws {
    let store = try await folder.openStore(context)
    do throws(CacheError) {
      try await store.cache.rebuild()
    } catch {
      await store.close()
      throw Failure(error)
    }
    await store.close()
    context.talk.say("the cache of \(SafeText.line(folder.name.text, cells: 60)) was made anew")
  }

  private static func report(_ checks: [HealthCheck], _ context: Context) throws {
    if context.wantsJSON {
      try context.out.write(
        row: [
          "checks": .array(
            checks.map {
              ["name": JSON($0.name), "ok": JSON($0.isOK), "detail": JSON($0.detail)]
            })
        ])
      return
    }
    for check in checks {
      let detail = SafeText.line(check.detail, cells: 300)
      try context.out.write(line: "\(check.isOK ? "ok  " : "BAD ") \(check.name): \(detail)")
    }
  }
}

/// One question of the doctor's, and its answer.
struct HealthCheck {
  let name: String
  let isOK: Bool
  /// What was found and, where it is not right, what to do.
  let detail: String
  /// What the program ends with where this is not right.
  var code = ExitCode.partial

  /// Uses each library once, in a scratch folder.
  static func libraries(_ context: Context) async -> HealthCheck {
    let folder = NSTemporaryDirectory() + "/skep-doctor-\(getpid())"
    defer { try? FileManager.default.removeItem(atPath: folder) }
    do {
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      let signer = LocalSigner(SecretKey.generate())
      let secret = try await signer.encryptToSelf("skep")
      guard try await signer.decryptFromSelf(secret) == "skep" else {
        return HealthCheck(
          name: "libraries", isOK: false, detail: "libcrypto does not decrypt what it encrypted")
      }
      let event = try await signer.sign(
        EventDraft(createdAt: 1, kind: .message, tags: Tags([["h", "a"]]), content: "skep"))
      let log = try await EventLog.open(
        path: folder + "/log.sqlite", executor: ThreadExecutor(),
        clock: context.clock)
      _ = try await log.ingest(IngestBatch(events: [event], receivedAt: 1))
      let cache = await HotCache.open(
        directory: folder + "/cache", log: log.reader, executor: ThreadExecutor())
      try await cache.catchUp()
      let state = cache.views.state
      await cache.close()
      await log.close()
      return HealthCheck(
        name: "libraries", isOK: state == .ok,
        detail: state == .ok
          ? "secp256k1, libcrypto, SQLite and LMDB work"
          : "LMDB does not work here: \(state); check the free space of \(NSTemporaryDirectory())")
    } catch {
      return HealthCheck(
        name: "libraries", isOK: false, detail: "\(Failure(error)); run make setup again")
    }
  }

  static func permissions(_ home: Home) -> HealthCheck {
    var status = stat()
    guard stat(home.path, &status) == 0 else {
      return HealthCheck(
        name: "home", isOK: true, detail: "\(home.path) is not there yet; the first use makes it")
    }
    let mode = status.st_mode & 0o777
    guard access(home.path, W_OK | X_OK) == 0 else {
      return HealthCheck(
        name: "home", isOK: false,
        detail: "\(home.path) cannot be written: reading works; choose another --home to sync")
    }
    guard mode & 0o022 == 0 else {
      return HealthCheck(
        name: "home", isOK: false,
        detail: "others may write to \(home.path): run chmod 700 on it")
    }
    return HealthCheck(name: "home", isOK: true, detail: home.path)
  }

  static func keys(_ home: Home) -> [HealthCheck] {
    let folder = home.identityFolder
    if access(folder, R_OK | X_OK) != 0, errno == EACCES {
      return [
        HealthCheck(
          name: "key", isOK: false, detail: "\(folder) may not be read: permission denied",
          code: .key)
      ]
    }
    // A home without keys has no such folder.
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return names.filter { $0.hasSuffix(".key") }.sorted().map { name in
      let path = home.identityFolder + "/" + name
      do throws(KeyFileError) {
        let isEncrypted = try KeyFile.isEncrypted(path: path)
        return HealthCheck(
          name: "key \(name)", isOK: true, detail: isEncrypted ? "encrypted" : "not encrypted")
      } catch {
        return HealthCheck(name: "key \(name)", isOK: false, detail: error.description, code: .key)
      }
    }
  }

  static func stores(_ folder: CommunityFolder, _ context: Context) async -> [HealthCheck] {
    let name = folder.name.text
    do {
      let community = try ReadingCommunity(folder)
      var options = LogOptions()
      options.isMissingEmpty = true
      try SoundnessCheck.pass(path: folder.logPath, options: options)
      let problems = try community.log.integrity()
      let counts = try community.log.counts()
      let log = HealthCheck(
        name: "log \(name)", isOK: problems.isEmpty,
        detail: problems.isEmpty
          ? "\(Progress.grouped(counts.events)) events, sound in structure; “skep verify” checks each"
          : problems.joined(separator: "; ")
            + ": keep a copy of the folder, then mirror into a new home", code: .invalid)
      let digests = try await LogCheck.digests(of: community, clock: context.clock)
      let isSame = digests.live == digests.rebuilt
      let cache = HealthCheck(
        name: "cache \(name)", isOK: isSame,
        detail: isSame
          ? "digest \(digests.live)"
          : "it differs from a fold of the log: run “skep doctor --rebuild-cache”",
        code: .invalid)
      return [log, cache, try clock(community, context)]
    } catch {
      let failure = Failure(error)
      return [
        HealthCheck(
          name: "log \(name)", isOK: false, detail: failure.message, code: failure.code)
      ]
    }
  }

  /// A clock that is wrong shows itself: what arrived earlier seems to have come later.
  private static func clock(
    _ community: ReadingCommunity, _ context: Context
  ) throws -> HealthCheck {
    let now = context.clock.now()
    let name = "clock \(community.folder.name.text)"
    let head = try community.log.head()
    let last = try community.log.entries(after: LogSequence(max(0, head.number - 1)), limit: 1)
      .first
    if case .event(let logged) = last?.body, logged.receivedAt > now + 120 {
      return HealthCheck(
        name: name, isOK: false,
        detail:
          "the last event arrived at \(TimeWords.rfc3339(logged.receivedAt)) by this machine's"
          + " clock, which now says \(TimeWords.rfc3339(now)): set the clock")
    }
    let earliest = Timestamp(1_700_000_000)
    guard now > earliest else {
      return HealthCheck(
        name: name, isOK: false,
        detail: "the clock says \(TimeWords.rfc3339(now)), which is long past: set it")
    }
    return HealthCheck(name: name, isOK: true, detail: TimeWords.rfc3339(now))
  }

}
