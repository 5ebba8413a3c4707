import EventLog
import Foundation
import HotCache
import Nostr

/// Where one community lives on the disk.
struct CommunityFolder: Sendable {
  let home: Home
  let name: CommunityName

  var path: String { home.folder(of: name) }
  var logPath: String { path + "/log.sqlite" }
  var cachePath: String { path + "/cache" }

  var exists: Bool { FileManager.default.fileExists(atPath: logPath) }

  /// The community that `--community` names, or the only one there is.
  static func chosen(_ context: Context) throws -> CommunityFolder {
    let home = try context.home()
    let known = home.communities()
    guard let word = context.invocation.value("community") else {
      if known.count == 1 { return CommunityFolder(home: home, name: known[0]) }
      throw context.usage(
        known.isEmpty
          ? "there is no community in \(home.path) yet: “skep mirror URL” or “skep join URL” adds one"
          : "which community? Say one with --community: " + list(known))
    }
    let choice = try CommunityChoice(word)
    let folder = CommunityFolder(home: home, name: choice.name)
    if folder.exists { return folder }
    // A host alone is enough where only one community is there.
    let near = known.filter { $0.text.hasPrefix(choice.name.text + ":") }
    if case .name = choice, near.count == 1 { return CommunityFolder(home: home, name: near[0]) }
    throw context.usage(
      "there is no community \(SafeText.line(choice.name.text, cells: 60)) here; "
        + (known.isEmpty ? "there is none yet" : "known: " + list(known)))
  }

  private static func list(_ names: [CommunityName]) -> String {
    names.map { SafeText.line($0.text, cells: 60) }.joined(separator: ", ")
  }
}

/// A community opened for reading alone: beside a process that writes, or on a disk that cannot be
/// written.
struct ReadingCommunity {
  let folder: CommunityFolder
  let log: LogReader

  init(_ folder: CommunityFolder) throws {
    self.folder = folder
    log = try LogReader.open(path: folder.logPath)
  }

  static func chosen(_ context: Context) throws -> ReadingCommunity {
    try ReadingCommunity(CommunityFolder.chosen(context))
  }

  /// The cache as it stands; what it lacks is folded in memory.
  func views() throws -> CacheViews {
    try CacheReader.open(directory: folder.cachePath, log: log)
  }

  func relays() throws -> [RelayURL] { try CommunitySettings.relays(log) }

  func completeness(now: Timestamp) throws -> Completeness {
    Completeness(coverage: try log.coverage(), gaps: try log.gaps(), now: now)
  }
}

/// What the program keeps about a community in its log.
enum CommunitySettings {
  static let relaysKey = "community.relays"

  /// The relays of a community; the first is its home.
  static func relays(_ log: LogReader) throws -> [RelayURL] {
    guard let bytes = try log.setting(relaysKey) else { return [] }
    return decode(bytes)
  }

  static func decode(_ bytes: [UInt8]) -> [RelayURL] {
    String(decoding: bytes, as: UTF8.self).split(separator: "\n").compactMap { RelayURL($0) }
  }

  static func encode(_ relays: [RelayURL]) -> [UInt8] {
    Array(relays.map(\.description).joined(separator: "\n").utf8)
  }
}
