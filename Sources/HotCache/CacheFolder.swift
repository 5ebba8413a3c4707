import Glibc
import Nostr

/// How large the cache may become, and in what steps it works.
public struct CacheOptions: Sendable {
  /// The first size of the map: address space, not memory and not disk.
  public var mapBytes: Int
  /// The size beyond which the cache moves into memory.
  public var mapBytesMax: Int
  /// How many log entries are folded in one transaction.
  public var batchEntries: Int

  public init(
    mapBytes: Int = 1 << 30, mapBytesMax: Int = 64 << 30, batchEntries: Int = 2000
  ) {
    self.mapBytes = mapBytes
    self.mapBytesMax = mapBytesMax
    self.batchEntries = max(1, batchEntries)
  }
}

/// The folder of one cache: opening it, and throwing its files away on any doubt.
final class CacheFolder: Sendable {
  private let path: String
  private let options: CacheOptions
  private let seal: Seal

  private init(path: String, options: CacheOptions, seal: Seal) {
    self.path = path
    self.options = options
    self.seal = seal
  }

  /// Takes the folder for writing, making it where it is missing; the failure says why not.
  static func take(_ path: String, options: CacheOptions) -> Result<CacheFolder, Refusal> {
    if mkdir(path, 0o700) != 0, errno != EEXIST {
      return .failure(Refusal(reason: "\(path) cannot be made: \(lastError())"))
    }
    switch Seal.openForWriting(data: path + "/data.mdb", seal: path + "/seal") {
    case .opened(let seal):
      return .success(CacheFolder(path: path, options: options, seal: seal))
    case .inUse:
      return .failure(Refusal(reason: "\(path) is in use by another writer"))
    case .unavailable(let why):
      return .failure(Refusal(reason: "\(path) cannot be written: \(why)"))
    }
  }

  struct Refusal: Error, Sendable { let reason: String }

  /// Opens what is there, if it is as it was left; a second value says why it was thrown away.
  func open() throws(StoreError) -> (store: LMDBStore, discarded: String?) {
    // Left over where a rebuild was cut short.
    if access(next, F_OK) == 0 { removeNext() }
    let hadData = access(path + "/data.mdb", F_OK) == 0
    if seal.takeOver() {
      do throws(StoreError) {
        return (try openEnvironment(), nil)
      } catch .damaged(let why) {
        return (try fresh(), why)
      }
    }
    let reason = hadData ? "its files were not as they were left" : nil
    return (try fresh(), reason)
  }

  /// Throws the files away and begins anew. They are unlinked and never cut short, because
  /// another process may still be reading their pages.
  func fresh() throws(StoreError) -> LMDBStore {
    for name in Self.names {
      guard unlink(path + name) == 0 || errno == ENOENT else {
        throw .unavailable("\(path)\(name) cannot be removed: \(Self.lastError())")
      }
    }
    return try openEnvironment()
  }

  /// Fresh files beside those in use, to be filled while readers keep what there is.
  func prepareNext() throws(StoreError) -> LMDBStore {
    removeNext()
    guard mkdir(next, 0o700) == 0 || errno == EEXIST else {
      throw .unavailable("\(next) cannot be made: \(Self.lastError())")
    }
    return LMDBStore(
      environment: try LMDBEnvironment(
        path: next, access: .writing, mapBytes: options.mapBytes,
        mapBytesMax: options.mapBytesMax))
  }

  /// Puts the files that were filled in the place of those in use, which live on for whoever still
  /// reads them.
  ///
  /// The lock file goes first: a process that opens in between reads the old data, which nobody
  /// changes any more.
  func promoteNext() throws(StoreError) {
    for name in Self.names.reversed() {
      guard rename(next + name, path + name) == 0 else {
        throw .unavailable("\(next)\(name) cannot be moved: \(Self.lastError())")
      }
    }
    rmdir(next)
    seal.note(isSynced: false)
  }

  func removeNext() {
    for name in Self.names { unlink(next + name) }
    rmdir(next)
  }

  private var next: String { path + "/next" }

  /// Makes room; what cannot be removed now is thrown away by the next opening.
  func removeFiles() {
    for name in Self.names { unlink(path + name) }
  }

  private static let names = ["/data.mdb", "/lock.mdb"]

  private func openEnvironment() throws(StoreError) -> LMDBStore {
    let environment = try LMDBEnvironment(
      path: path, access: .writing, mapBytes: options.mapBytes, mapBytesMax: options.mapBytesMax)
    seal.note(isSynced: false)
    return LMDBStore(environment: environment)
  }

  /// Notes the files after a commit, before anybody hears of it.
  func committed() { seal.note(isSynced: false) }

  /// Closes the store so that even a power cut leaves it trusted.
  func close(_ store: LMDBStore) {
    do throws(StoreError) {
      try store.sync()
      seal.note(isSynced: true)
    } catch {
      // Not synced is what the seal says already; at worst the cache is rebuilt.
    }
    store.close()
  }

  private static func lastError() -> String {
    strerror(errno).map { String(cString: $0) } ?? "error \(errno)"
  }
}
