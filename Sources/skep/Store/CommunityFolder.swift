import EventLog
import HotCache
import Nostr
import Platform
import RelaySocket
import SyncCore
import SyncEngine

/// Where one community lives on the disk.
struct CommunityFolder: Sendable {
  let home: Home
  let name: CommunityName

  var path: String { home.folder(of: name) }
  var logPath: String { path + "/log.sqlite" }
  var cachePath: String { path + "/cache" }

  /// The community that `--community` names, or the only one there is.
  static func chosen(_ context: Context) throws -> CommunityFolder {
    let home = try context.home()
    do throws(HomeError) {
      let name = try home.community(named: context.invocation.value("community"))
      return CommunityFolder(home: home, name: name)
    } catch {
      let advice =
        switch error {
        case .none: ": “skep mirror URL” or “skep join URL” adds one"
        case .several: "; say one with --community"
        case .unknown, .malformed: ""
        }
      throw context.usage(SafeText.line("\(error)\(advice)", cells: 600))
    }
  }

  /// The community that `--community` names, which is made where it is an address that is not known
  /// yet; else the only one; else the archive.
  static func forImport(_ context: Context) throws -> (CommunityFolder, RelayURL?) {
    let home = try context.home()
    guard let word = context.invocation.value("community") else {
      guard home.communities().isEmpty else { return (try chosen(context), nil) }
      return (CommunityFolder(home: home, name: .archive), nil)
    }
    if let url = RelayURL(word) {
      return (CommunityFolder(home: home, name: home.community(of: url)), url)
    }
    if word == CommunityName.archive.text {
      return (CommunityFolder(home: home, name: .archive), nil)
    }
    return (try chosen(context), nil)
  }

  /// Opens the stores for writing, by this process alone; makes them where there are none.
  ///
  /// - Parameter relay: The home relay of a community that has none yet.
  func openStore(relay: RelayURL? = nil, _ context: Context) async throws -> CommunityStore {
    var options = LogOptions()
    options.isChecked = true
    let store = try await CommunityStore.open(
      folder: path, clock: context.clock, tasks: SystemTasks(), logOptions: options)
    guard let relay else { return store }
    var settings = try CommunitySettings(store.reader)
    guard settings.relays.isEmpty else { return store }
    settings.relays = [relay]
    try await settings.save(to: store.log)
    return store
  }
}

/// A community opened for reading alone: beside a process that writes, or on a disk that cannot be
/// written.
struct ReadingCommunity {
  let folder: CommunityFolder
  let log: LogReader

  init(_ folder: CommunityFolder) throws {
    self.folder = folder
    try CommunityStore.refuseLost(folder: folder.path)
    var options = LogOptions()
    options.isMissingEmpty = true
    log = try LogReader.open(path: folder.logPath, options: options)
  }

  static func chosen(_ context: Context) throws -> ReadingCommunity {
    try ReadingCommunity(CommunityFolder.chosen(context))
  }

  /// The cache as it stands; what it lacks is folded in memory.
  func views() throws -> CacheViews {
    let views = try CacheReader.open(directory: folder.cachePath, log: log)
    views.setBlocked(try Blocks(log).keys)
    return views
  }

  /// Whether a process is at work here that may send something.
  var isAtWork: Bool { CommunityStore.isInUse(folder: folder.path) == true }

  /// The outbox, as far as it can be told from outside the process that works on it.
  ///
  /// What is marked as being sent where no process is at work is not being sent: its process was
  /// killed. A relay that was handed it may have it, and another cannot.
  func deliveries(includingSent: Bool) throws -> [Delivery] {
    let wasAtWork = isAtWork
    let deliveries = try log.deliveries(includingSent: includingSent)
    guard !wasAtWork, deliveries.contains(where: { $0.state == .sending }), !isAtWork else {
      return deliveries
    }
    return deliveries.map { delivery in
      var delivery = delivery
      if delivery.state == .sending {
        delivery.state = delivery.handedAt == nil ? .queued : .unknown
      }
      return delivery
    }
  }

  func relays() throws -> [RelayURL] { try CommunitySettings(log).relays }

  func completeness(now: Timestamp) throws -> Completeness {
    try Completeness(log, relays: relays(), now: now)
  }
}
